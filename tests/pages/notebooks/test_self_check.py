"""A parameters cell checks itself wherever it runs: in Lab, by papermill as it is, by jupyter execute."""

import re
from pathlib import Path

import nbclient
import nbformat
import papermill
import pytest
from nbclient.exceptions import CellExecutionError
from nbformat.v4 import new_code_cell, new_notebook
from papermill.exceptions import PapermillExecutionError

from isonb.pages.chapters import Book

ROOT = Path(__file__).resolve().parents[3]
DECLARED = """\
# how the cloud is made
n_topics: int = 4  # topics; range 3..10
cloud: str = "cls"  # points; one of mean|cls
rate: float = 0.5  # a share; range 0..1
told: bool = False  # whether it is told"""
WRONG = {
    "too large": ("n_topics", 99, "n_topics must be int, 3..10; got 99. It means: topics."),
    "a word nearly right": ("cloud", "men", "must be str, one of mean|cls; got 'men'. Did you mean mean?"),
    "nothing": ("told", None, "told must be bool; got None"),
}


def notebook(declared=DECLARED, between=()):
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    cells = [
        new_code_cell("from isonb import pages"),
        new_code_cell(declared, metadata={"tags": ["parameters"]}),
        *map(new_code_cell, between),
        new_code_cell("pages.check_parameters()"),
        new_code_cell("print(n_topics, cloud, rate, type(rate).__name__, told)"),
    ]
    return new_notebook(cells=cells, metadata=kernel)


def printed(executed):
    return "".join(out.get("text", "") for out in executed.cells[-1].outputs)


@pytest.fixture
def by_papermill(tmp_path):
    nbformat.write(notebook(), tmp_path / "n.ipynb")

    def run(**parameters):
        options = {"progress_bar": False, "parameters": parameters}
        return papermill.execute_notebook(tmp_path / "n.ipynb", tmp_path / "out.ipynb", **options)

    return run


def test_right_values_pass_in_their_type(by_papermill):
    assert printed(by_papermill()) == "4 cls 0.5 float False\n"
    assert printed(by_papermill(n_topics=7, cloud="mean", rate=1, told=True)) == "7 mean 1.0 float True\n"


@pytest.mark.slow
@pytest.mark.parametrize("wrong", WRONG)
def test_papermill_as_it_is_stops_below_the_parameters(by_papermill, wrong):
    name, value, message = WRONG[wrong]
    with pytest.raises(PapermillExecutionError) as refused:
        by_papermill(**{name: value})
    assert message in str(refused.value)


def test_papermill_with_a_name_that_there_is_not(by_papermill):
    with pytest.raises(PapermillExecutionError, match=r"no parameter is called n_topic\. .* Did you mean n_topics\?"):
        by_papermill(n_topic=5)


EDITED = DECLARED.replace("n_topics: int = 4", "n_topics: int = 40")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("made", "message"),
    [
        (notebook(EDITED), "n_topics must be int, 3..10; got 40"),
        (notebook(between=['cloud = "Mean"']), "got 'Mean'. Did you mean mean?"),
        (notebook("n_topics = 5"), "the cell that declares the parameters must have run"),
    ],
    ids=["the cell was edited", "a cell of one's own", "the cell says nothing of types"],
)
def test_an_edit_in_lab(made, message):
    with pytest.raises(CellExecutionError, match=re.escape(message)):
        nbclient.NotebookClient(made, timeout=60).execute()


@pytest.mark.parametrize("chapter", Book(ROOT).chapters, ids=lambda chapter: chapter.slug)
def test_every_parameter_of_a_chapter_has_a_rule(chapter):
    """A number without a range, or a word without its choices, could not be refused; a path is, where it is read."""
    paths = [p for p in chapter.parameters if p.kind == "str" and p.default == ""]
    assert all(p.kind == "bool" or p.options or p.low is not None for p in chapter.parameters if p not in paths)
