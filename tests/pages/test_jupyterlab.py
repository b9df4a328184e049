"""Chapters in JupyterLab: its server opens every source and notebook, and a save reaches the Markdown."""

import copy
import json
import os
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import pytest
from lab_server import TOKEN, jupyter_lab

from isonb.pages.__main__ import main
from isonb.pages.chapters import Book

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = Book(ROOT).chapters
FILES = [f"{chapter.name}{end}" for chapter in CHAPTERS for end in (".ipynb", ".md")]


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """What `git clone` gives of the book, with the notebooks that `make edit` writes."""
    root = tmp_path_factory.mktemp("clone")
    for chapter in CHAPTERS:
        target = root / chapter.source.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(chapter.source, target)
    for name in ("_toc.yml", ".gitignore", "book/references.bib"):
        shutil.copy(ROOT / name, root / name)
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "book")
    assert main(["--root", str(root), "pair"]) == 0
    return root


def git(root, *words):
    return subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def lab(clone, tmp_path_factory):
    """A running JupyterLab, as `make edit` starts it; a function that asks its contents API."""
    (words,) = re.findall(r"/jupyter lab (book .*) \$\(ARGS\)", (ROOT / "Makefile").read_text(encoding="utf-8"))
    with jupyter_lab(clone, tmp_path_factory.mktemp("jupyter"), *words.split()) as url:
        yield lambda name, model=None: ask(f"{url}/api/contents/", name, model)


def ask(url, name, model=None):
    """The content of a file; with ``model``, save that content."""
    path = url + urllib.parse.quote(name.removeprefix("book/"))
    body = None if model is None else json.dumps({"type": "notebook", "format": "json", "content": model}).encode()
    headers = {"Authorization": f"token {TOKEN}", "Content-Type": "application/json"}
    request = urllib.request.Request(path, body, headers, method="GET" if model is None else "PUT")
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)["content"]


@pytest.mark.parametrize("name", FILES)
def test_it_opens(lab, clone, name):
    """Also when the notebook is the newer of the two, as after `make edit`, or the older, as after `git pull`."""
    source, notebook = (clone / name).with_suffix(".md"), (clone / name).with_suffix(".ipynb")
    for older, newer in [(source, notebook), (notebook, source)]:
        os.utime(older, (time.time() - 100,) * 2)
        os.utime(newer)
        assert lab(name)["cells"]


def changes(clone):
    """The lines that differ from what was committed."""
    lines = git(clone, "diff", "-U0").splitlines()
    return [line for line in lines if not line.startswith(("@@", "diff ", "index ", "---", "+++"))]


@pytest.mark.parametrize("chapter", CHAPTERS[::5], ids=lambda chapter: chapter.slug)
def test_a_line_between_roles_is_saved_as_it_is_written(lab, clone, chapter):
    """The longest line with a role, saved twice from one open notebook, as autosave does."""
    content = lab(f"{chapter.name}.ipynb")
    source = (clone / f"{chapter.name}.md").read_text(encoding="utf-8").splitlines()
    line = max((line for line in source if "}`" in line and not line.startswith((":", "#"))), key=len)
    word = max(re.findall(r"\b[a-z]+\b", re.sub(r"\{[^`]*`[^`]*`", "", line)), key=len)
    (cell,) = [c for c in content["cells"] if c["cell_type"] == "markdown" and shows(c["source"], line)]
    (shown,) = [one for one in cell["source"].splitlines() if shows(one, line)]
    for number in (1, 2):
        edited = copy.deepcopy(content)
        at = content["cells"].index(cell)
        edited["cells"][at]["source"] = cell["source"].replace(shown, f"{shown}, said {word} {number} times")
        lab(f"{chapter.name}.ipynb", edited)
        assert changes(clone) == [f"-{line}", f"+{line}, said {word} {number} times"]
    lab(f"{chapter.name}.ipynb", content)
    assert changes(clone) == []


def shows(text, line):
    """Whether a text has all words of a written line that aren't in roles, in their order."""
    words = re.split(r"\{[\w:]+\}`[^`]*`", line)
    return re.search(r"[^\n]*?".join(map(re.escape, words)), text) is not None


def test_a_source_edited_meanwhile_is_not_overwritten(lab, clone):
    chapter = CHAPTERS[1]
    content = lab(f"{chapter.name}.ipynb")
    path = clone / f"{chapter.name}.md"
    before = path.read_text(encoding="utf-8")
    path.write_text(before + "\nWritten elsewhere.\n", encoding="utf-8")
    content["cells"][0]["source"] += " Written here."
    with pytest.raises(urllib.error.HTTPError) as refused:
        lab(f"{chapter.name}.ipynb", content)
    assert f"{chapter.source.name} was edited since" in refused.value.read().decode()
    assert path.read_text(encoding="utf-8") == before + "\nWritten elsewhere.\n"
    path.write_text(before, encoding="utf-8")


def test_a_saved_edit_is_in_the_source_and_nothing_else_is(lab, clone):
    chapter = CHAPTERS[0]
    content = lab(f"{chapter.name}.ipynb")
    edited = copy.deepcopy(content)
    (cell,) = [cell for cell in edited["cells"] if cell["source"].startswith("# ")]
    cell["source"] += ", and back"
    first = next(cell for cell in edited["cells"] if cell["cell_type"] == "code")  # as after a run in Lab
    first |= {"execution_count": 1, "outputs": [{"output_type": "stream", "name": "stdout", "text": "made\n"}]}
    first["metadata"]["trusted"] = True
    edited["metadata"]["language_info"] = {"name": "python", "version": "3.11.1", "file_extension": ".py"}
    assert git(clone, "diff") == ""
    lab(f"{chapter.name}.ipynb", edited)
    last = next(c.source for c in chapter.cells.cells if c.source.startswith("# ")).splitlines()[-1]
    assert changes(clone) == [f"-{last}", f"+{last}, and back"]
    assert git(clone, "status", "--short").split() == ["M", f"{chapter.name}.md"]
    lab(f"{chapter.name}.ipynb", content)
    assert git(clone, "diff") == ""
