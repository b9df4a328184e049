"""A parameters cell checks itself wherever it runs: in Lab, by papermill as it is, by jupyter execute."""

from pathlib import Path

import nbformat
import papermill
import pytest
from notebooks import python_notebook

from isonb_lab.pages.chapters import Book

ROOT = Path(__file__).resolve().parents[3]
DECLARED = """\
# how the cloud is made
n_topics: int = 4  # topics; range 3..10
cloud: str = "cls"  # points; one of mean|cls
rate: float = 0.5  # a share; range 0..1
shared: bool = False  # whether it is shared"""
CHECK = "from isonb_lab import pages\npages.check_parameters()"
PRINT = "print(n_topics, cloud, rate, type(rate).__name__, shared)"


def test_right_values_pass_in_their_type_by_papermill(tmp_path):
    nbformat.write(python_notebook(DECLARED, CHECK, PRINT), tmp_path / "n.ipynb")
    inputs = {"n_topics": 7, "rate": 1, "shared": True}
    executed = papermill.execute_notebook(tmp_path / "n.ipynb", None, parameters=inputs, progress_bar=False)
    assert executed.cells[-1].outputs[0].text == "7 cls 1.0 float True\n"


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ([DECLARED, "# Parameters\nn_topics = 99"], "n_topics must be int from 3 to 10; got 99. It means: topics."),
        ([DECLARED, "# Parameters\nn_topic = 5"], "no parameter is called n_topic."),
        ([DECLARED.replace('= "cls"', '= "men"')], "must be 'mean' or 'cls'; got 'men'. Did you mean mean?"),
        (["n_topics = 5"], "the cell that declares the parameters must have run"),
    ],
    ids=["papermill", "a name that there is not", "the cell was edited", "the cell says no types"],
)
def test_a_wrong_value_stops_below_the_parameters_whoever_set_it(shell, cells, message):
    for cell in cells:
        shell.run_cell(cell, store_history=True)
    assert message in str(shell.run_cell(CHECK, store_history=True).error_in_exec)


@pytest.mark.parametrize("chapter", Book(ROOT).chapters, ids=lambda chapter: chapter.slug)
def test_every_parameter_of_a_chapter_has_a_rule(chapter):
    """A number without a range, or a word without its choices, could not be refused.

    A path, a task and an encoder are, where they are read.
    """
    paths = [p for p in chapter.parameters if p.kind == "str" and (p.default == "" or p.name in ("task", "encoder"))]
    assert all(p.kind == "bool" or p.options or p.low is not None for p in chapter.parameters if p not in paths)
