"""From a source to a page: outputs, status page, strictness, the notebook beside it."""

import json
import re
import shutil

import nbformat
import pytest
from reading import prose, rewrite

import isonb
from isonb_lab.pages.__main__ import main
from isonb_lab.pages.build import html, write_pages
from isonb_lab.pages.chapters import Book
from isonb_lab.pages.errors import BuildError, PairingError
from isonb_lab.pages.lint import canonical
from isonb_lab.pages.notebooks.plain import put_outputs
from isonb_lab.pages.notebooks.references import Index
from isonb_lab.pages.outputs import collect_outputs
from isonb_lab.pages.run import Job
from isonb_lab.pages.vendor import mathjax

PACKAGES = {"isonb": "isonb", "isonb-lab": "isonb_lab"}  # distributions, and how the names of their wheels begin


@pytest.fixture
def copy(built, tmp_path):
    """A copy of the built book to change."""
    shutil.copytree(built.root, tmp_path / "copy")
    return Book(tmp_path / "copy")


def page(book, name):
    return (book.build / "html" / "book" / f"{name}.html").read_text(encoding="utf-8")


def plain_text(book, name):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", page(book, name)))


def test_a_page_shows_what_its_run_made(built):
    assert "Points on a circle, cut off by a slider" in plain_text(built, "sample")
    status = plain_text(built, "status")
    assert "A sample chapter" in status
    assert "n=40" in status
    assert re.search(r"torch\s+2\.", status)


def test_page_has_no_widget_no_bar_and_no_folder_of_this_machine(built):
    text = page(built, "sample")
    assert text.count('class="isonb-vega"') == 1, "the chart, and not the live control"
    assert '<th scope="col" class="num">score</th>' in text
    text += (built.root / "book" / "sample.ipynb").read_text(encoding="utf-8")
    assert not re.findall(rf"vnd\.jupyter\.widget|0/3|{re.escape(str(built.root))}", text)
    assert "./book" in text, "what os.getcwd() printed, without the folder"
    assert Job(built, built.chapters[0]).key in page(built, "status")


def test_scripts_are_beside_the_pages(built):
    folder = built.build / "html"
    assert (folder / "index.html").is_file()
    assert (folder / "mathjax" / "tex-svg.js").read_bytes() == mathjax()
    assert "window.vegaEmbed" in (folder / "vega" / "vega.js").read_text(encoding="utf-8")
    assert "vega/vega.js" not in page(built, "intro"), "a page without charts doesn't load Vega"


def test_other_parameters_are_said_on_the_page(copy):
    chapter = copy.chapters[0]
    job = Job(copy, chapter, chapter.validate({"n": 20}))
    job.cached.write_bytes(Job(copy, chapter).cached.read_bytes())
    write_pages(copy, [job])
    text = chapter.notebook.read_text(encoding="utf-8")
    assert "This page was run with n = 20 (default 40)." in text
    assert "injected-parameters" not in text


def test_warnings_fail_the_build_and_are_all_told(copy):
    changes = ("{numref}`fig-sample`", "{numref}`fig-nowhere`"), ("sample-share`.", "sample-gone`.")
    rewrite(copy.root / "book" / "sample.md", *changes)
    rewrite(copy.root / "_config.yml", ("book/sample#part", "book/gone"))
    book = Book(copy.root)
    write_pages(book, [Job(book, book.chapters[0])])
    with pytest.raises(BuildError, match=r"(?s)(?=.*fig-nowhere)(?=.*sample-gone).*former/page leads to 'book/gone'"):
        html(book)


def test_the_notebook_says_what_the_page_says(copy):
    """The value of the run, the number of the figure and of the exercises as sphinx counts them; its outputs stay."""
    notebook = nbformat.read(copy.chapters[0].notebook, as_version=4)
    text = prose(notebook)
    built = plain_text(copy, "sample")
    (figure,) = set(re.findall(r"Fig\. [\d.]*\d", text))
    assert f"See {figure}, and the number 0.33." in text
    assert f"See {figure}, and the number 0.33." in built
    assert f"{figure} Points on a circle" in built
    exercises = re.findall(r"(Exercise [\d.]*\d) \(\w+ · easy\)", text)
    assert len(exercises) == 2
    assert all(f"{exercise} (" in built for exercise in exercises)
    assert "Sample (2024)." in text
    assert not re.search(r"\{[\w:-]+\}`|```\{|~~~\{", text)
    downloaded = copy.build / "html" / "_sources" / "book" / "sample.ipynb"
    assert downloaded.read_bytes() == copy.chapters[0].notebook.read_bytes(), "the page offers the plain notebook"


def test_a_built_notebook_that_was_run_is_written_anew_and_one_that_was_edited_is_not(copy):
    """Papermill, run in place, leaves cells of its own: no edit."""
    (chapter,) = copy.chapters
    source, before = chapter.source.read_text(encoding="utf-8"), chapter.notebook.read_bytes()
    assert canonical(source) == source
    notebook = nbformat.read(chapter.notebook, as_version=4)
    notebook.cells.insert(2, nbformat.v4.new_code_cell("# Parameters", metadata={"tags": ["injected-parameters"]}))
    for edit, stands in [("", False), ("\n\nAn edit.", True)]:
        notebook.cells[-1].source += edit
        nbformat.write(notebook, chapter.notebook)
        if stands:
            with pytest.raises(PairingError, match=r"sample\.ipynb was edited.*make edit"):
                put_outputs(Job(copy, chapter), Index(copy))
        else:
            put_outputs(Job(copy, chapter), Index(copy))
            assert chapter.notebook.read_bytes() == before
    assert "An edit." in chapter.notebook.read_text(encoding="utf-8")
    chapter.notebook.unlink()
    put_outputs(Job(copy, chapter), Index(copy))
    assert chapter.notebook.read_bytes() == before, "with what the last run made"
    assert chapter.source.read_text(encoding="utf-8") == source


def test_outputs_do_not_depend_on_how_a_stream_was_cut(tmp_path):
    def executed(chunks):
        streams = [nbformat.v4.new_output("stream", name="stdout", text=chunk) for chunk in chunks]
        return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("print()", outputs=streams)])

    once, twice = collect_outputs(executed(["ab\n"]), tmp_path), collect_outputs(executed(["a", "b\n"]), tmp_path)
    assert once == twice
    (outputs,) = once[0]
    assert json.dumps(outputs) == '[{"output_type": "stream", "name": "stdout", "text": "ab\\n"}]'


def test_params_lists_the_grammar(book, capsys):
    assert main(["--root", str(book.root), "params", "sample"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["n", "=", "40", "int", "from", "5", "to", "500", "points"]


def test_pages_to_hand_out_have_exercises_and_no_solution_and_lie_apart(copy, monkeypatch):
    """Here no address is configured."""
    monkeypatch.setenv("ISONB_SOLUTIONS", "no")
    before, config = page(copy, "sample"), copy.root / "_config.yml"
    text = re.sub(r"\b(repository|address|notebooks): https\S+", r'\1: ""', config.read_text(encoding="utf-8"))
    config.write_text(text, encoding="utf-8")
    assert html(copy) == copy.build / "handout" / "index.html"
    text = (copy.build / "handout" / "book" / "sample.html").read_text(encoding="utf-8")
    assert "Exercise 1.1" in text
    assert "Solution to" not in text
    assert "Four." not in text, "what the second solution says"
    assert not list((copy.build / "handout").rglob("*sample.ipynb")), "its solutions would lie there"
    assert page(copy, "sample") == before, "those with solutions stay"
    assert sorted(path.name for path in copy.build.iterdir() if path.name.startswith("handout")) == ["handout"]
    assert "colab" not in text
    assert "issues/new" not in text
    assert f"isonb {isonb.__version__} · licence Apache-2.0 · a mistake? Tell whoever gave you these pages" in text


def test_published_pages_have_badges_and_buttons(built):
    text = page(built, "sample")
    assert re.search(r"Last updated on \d{4}-\d\d-\d\d", text)
    assert '<meta property="og:title" content="A sample chapter">' in text
    assert '<meta property="og:description" content="The answer. It works.' in text
    assert '<meta property="og:url" content="https://o.github.io/r/book/sample.html">' in text
    prose, _, _ = (built.build / "html" / "searchindex.js").read_text(encoding="utf-8").partition("\n")
    assert "the number 0.33" in prose
    assert "Open in Colab" not in prose, "badges aren't the text of a page"
    where = "o/r/blob/pages/_sources/book/sample.ipynb"
    assert re.findall(r'href="(https://[^"]*\.ipynb)"', text) == [
        f"https://colab.research.google.com/github/{where}",
        "https://mybinder.org/v2/gh/o/r/pages?labpath=_sources/book/sample.ipynb",
        f"https://kaggle.com/kernels/welcome?src=https://github.com/{where}",
    ]
    assert 'href="https://github.com/o/r/issues/new?title=Mistake%20on%20book/sample"' in text
    assert '<a href="https://github.com/o/r" ' in text
    (install,) = [cell.source for cell in nbformat.read(built.chapters[0].notebook, 4).cells if cell.id == "install"]
    for name, file in PACKAGES.items():
        assert f'"{name} @ https://o.github.io/r/{file}-{isonb.__version__}-py3-none-any.whl"' in install


def test_a_former_page_leads_to_where_its_text_stands(built):
    assert 'url=../sample.html#part"' in page(built, "former/page")
