"""Chapters in JupyterLab as `make edit` opens them: pairs open, and a save reaches the Markdown and no more."""

import copy
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import urllib.parse
from pathlib import Path

import pytest
from lab_server import jupyter_lab, requests
from processes import call

from isonb_lab.pages.chapters import Book

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = Book(ROOT).chapters
some_chapters = pytest.mark.parametrize("chapter", CHAPTERS[::5], ids=lambda chapter: chapter.slug)


def pair(chapter):
    return f"_build/edit/{chapter.name.removeprefix('book/')}.ipynb", f"{chapter.name}.md"


def git(root, *arguments):
    return call("git", *arguments, cwd=root)


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """What `git clone` gives of the book, with the notebooks that `make edit` writes."""
    root = tmp_path_factory.mktemp("clone")
    for name in ("pyproject.toml", ".gitignore", *(f"{chapter.name}.md" for chapter in CHAPTERS)):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "book")
    sync, _ = edit_commands()
    subprocess.run(sync, shell=True, cwd=root, check=True)
    assert git(root, "status", "--short") == ""
    return root


def edit_commands():
    """What `make edit` does: the pairing, and the words that follow `jupyter lab`."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    (sync,) = re.findall(r"\$\(BIN\)/jupytext (.*)", text)
    (lab,) = re.findall(r"/jupyter lab (--ServerApp.*) \$\(ARGS\)", text)
    return f"{Path(sys.executable).with_name('jupytext')} {sync.replace('$$', '$')}", shlex.split(lab)


@pytest.fixture(scope="module")
def lab(clone, tmp_path_factory):
    """A running JupyterLab, as `make edit` starts it; a function that asks its contents API, or saves a notebook."""
    with jupyter_lab(clone, tmp_path_factory.mktemp("jupyter"), *edit_commands()[1]) as url:

        def ask(name, model=None):
            body = model and {"type": "notebook", "format": "json", "content": model}
            return requests(url, f"contents/{urllib.parse.quote(name)}", "PUT" if model else "GET", body)["content"]

        yield ask


@some_chapters
def test_it_opens(lab, clone, chapter):
    """Also when the notebook is the newer of the two, as after `make edit`, or the older, as after `git pull`."""
    for older, newer in [pair(chapter), pair(chapter)[::-1]]:
        os.utime(clone / older, (time.time() - 100,) * 2)
        os.utime(clone / newer)
        assert lab(older)["cells"]
        assert lab(newer)["cells"]


@some_chapters
def test_a_saved_edit_is_in_the_source_and_nothing_else_is(lab, clone, chapter):
    """Saved twice from one open notebook, as autosave does, with what a run and the server leave in a notebook."""
    name = pair(chapter)[0]
    content = lab(name)
    source = (clone / f"{chapter.name}.md").read_text(encoding="utf-8")
    line = max((line for line in source.splitlines() if "}`" in line and not line.startswith((":", "#"))), key=len)
    edited = copy.deepcopy(content)
    (cell,) = [item for item in edited["cells"] if line in item["source"].splitlines()]
    whole = cell["source"]
    first = next(entry for entry in edited["cells"] if entry["cell_type"] == "code")
    first |= {"execution_count": 1, "outputs": [{"output_type": "stream", "name": "stdout", "text": "made\n"}]}
    first["metadata"]["trusted"] = True
    edited["metadata"]["language_info"] = {"name": "python", "version": "3.11.1", "file_extension": ".py"}
    for number in (1, 2):
        cell["source"] = whole.replace(line, f"{line} Said {number} times.")
        lab(name, edited)
        shown = [
            one for one in git(clone, "diff", "-U0").splitlines() if one[0] in "-+" and one[:3] not in ("---", "+++")
        ]
        assert shown == [f"-{line}", f"+{line} Said {number} times."]
        assert git(clone, "status", "--short").split() == ["M", f"{chapter.name}.md"]
    assert lab(name)["cells"][edited["cells"].index(first)]["outputs"][0]["text"] == "made\n"
    lab(name, content)
    assert git(clone, "diff") == ""
