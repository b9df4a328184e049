"""Notebooks of some cells of code below their parameters."""

from nbformat.v4 import new_code_cell, new_notebook

KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}


def python_notebook(parameters, *cells):
    """Cells of code below one that is tagged parameters."""
    tagged = new_code_cell(parameters, metadata={"tags": ["parameters"]})
    return new_notebook(cells=[tagged, *map(new_code_cell, cells)], metadata=KERNEL)
