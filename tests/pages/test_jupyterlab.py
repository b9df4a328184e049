"""Chapters in JupyterLab: its server opens every source and notebook, and a save reaches the Markdown."""

import copy
import json
import os
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from pathlib import Path

import jupytext.cli
import pytest
from lab_server import TOKEN, jupyter_lab

from isonb.pages.__main__ import main
from isonb.pages.chapters import Book

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = Book(ROOT).chapters
FILES = [f"{chapter.name}{end}" for chapter in CHAPTERS for end in (".ipynb", ".md")]


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """What `git clone` gives of the book, with the notebooks that `make lab` writes."""
    root = tmp_path_factory.mktemp("clone")
    for chapter in CHAPTERS:
        target = root / chapter.source.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(chapter.source, target)
    for name in ("_toc.yml", ".gitignore"):
        shutil.copy(ROOT / name, root / name)
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "book")
    assert main(["--root", str(root), "pair"]) == 0
    return root


def git(root, *words):
    return subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, text=True).stdout


def test_jupytext_changes_nothing_in_untouched_pairs(clone):
    files = [clone / name for name in FILES]
    for newer in (".md", ".ipynb"):
        for path in files:
            os.utime(path, (1e9, 1e9 + 100 * (path.suffix == newer)))
        before = [path.read_bytes() for path in files]
        assert jupytext.cli.jupytext(["--sync", "--quiet", *map(str, files[::2])]) == 0
        assert [path.read_bytes() for path in files] == before


@pytest.fixture(scope="module")
def lab(clone, tmp_path_factory):
    """A running JupyterLab, as `make lab` starts it; a function that asks its contents API."""
    with jupyter_lab(clone, tmp_path_factory.mktemp("jupyter"), "book") as url:
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
    """Also when the notebook is the newer of the two, as after `make lab`, or the older, as after `git pull`."""
    source, notebook = (clone / name).with_suffix(".md"), (clone / name).with_suffix(".ipynb")
    for older, newer in [(source, notebook), (notebook, source)]:
        os.utime(older, (time.time() - 100,) * 2)
        os.utime(newer)
        assert lab(name)["cells"]


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
    changed = [line for line in git(clone, "diff", "-U0").splitlines()[4:] if not line.startswith("@@")]
    last = cell["source"].removesuffix(", and back").splitlines()[-1]
    assert changed == [f"-{last}", f"+{last}, and back"]
    assert git(clone, "status", "--short").split() == ["M", f"{chapter.name}.md"]
    lab(f"{chapter.name}.ipynb", content)
    assert git(clone, "diff") == ""
