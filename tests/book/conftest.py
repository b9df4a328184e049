"""A small book in a temporary folder: the project's configuration, one chapter, three plain pages."""

import os
import re
import shutil
from pathlib import Path

import pytest

from isonb_lab.pages import chapters
from isonb_lab.pages.chapters import Book
from isonb_lab.runtime.locks import file_lock

REPOSITORY = Path(__file__).resolve().parents[2]
CODE = "https://github.com/o/r"
PUBLISHED = {"repository": CODE, "address": "https://o.github.io/r/", "notebooks": f"{CODE}/blob/pages/_sources/"}
SAMPLE = Path(__file__).parent / "sample"


def make_book(root, **addresses):
    shutil.copytree(SAMPLE, root, dirs_exist_ok=True)
    config = (REPOSITORY / "_config.yml").read_text(encoding="utf-8")
    static = (REPOSITORY / "book" / "isonb_lab" / "pages" / "static").as_posix()
    config = re.sub(r"isonb_moved:.*\n(?: {6}.*\n)*", "isonb_moved: {book/former/page: book/sample#part}\n", config)
    for name, value in addresses.items():
        config = config.replace(f'{name}: ""', f"{name}: {value}")
    (root / "_config.yml").write_text(config.replace("book/isonb_lab/pages/static", static), encoding="utf-8")
    return Book(root)


@pytest.fixture(scope="session")
def stand_in(tmp_path_factory):
    """A stand-in for the package in the keys: the real one may be edited while the tests run."""
    package = tmp_path_factory.mktemp("package")
    (package / "maths.py").write_text("x = 1\n", encoding="utf-8")
    return package


@pytest.fixture(autouse=True)
def frozen_package(monkeypatch, stand_in):
    """Keys of the stand-in, in each test of this folder."""
    monkeypatch.setattr(chapters, "PACKAGE", stand_in)


@pytest.fixture
def book(tmp_path):
    """A fresh copy of the sample book."""
    return make_book(tmp_path)


@pytest.fixture(scope="session")
def built(tmp_path_factory, stand_in):
    """The sample book as it is published, executed and built once whatever the number of workers; not to be changed."""
    from isonb_lab.pages.__main__ import main

    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent  # which holds the folders of all workers
    root, done = shared / "built", shared / "built.done"
    with file_lock([shared / "built.lock"]), pytest.MonkeyPatch.context() as patch:
        patch.setattr(chapters, "PACKAGE", stand_in)
        if not done.exists():
            make_book(root, **PUBLISHED)
            assert main(["--root", str(root), "build", "--quiet"]) == 0
            done.touch()
    return Book(root)


@pytest.fixture(scope="module")
def browser():
    """A browser for the tests of a file."""
    from browser import launch
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright, launch(playwright) as launched:
        yield launched
