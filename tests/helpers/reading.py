"""What a person reads in a notebook, and what a person changes in a text."""

import re

from isonb_lab.pages.outputs import PARAGRAPH

# What MyST has and a reader doesn't: roles and directives, fences, labels.
RAW = re.compile(r"\{[a-zA-Z][\w:+-]*\}[`A-Za-z]|[`:]{3,}|^\([\w:.-]+\)=", re.MULTILINE)


def prose(notebook):
    """Its Markdown cells, and what the cells of paragraphs show, in order."""
    texts = []
    for cell in notebook.cells:
        if PARAGRAPH in cell.metadata.get("tags", []):
            texts += [output.data["text/markdown"] for output in cell.outputs]
        elif cell.cell_type == "markdown":
            texts.append(cell.source)
    return "\n\n".join(texts)


def rewrite(path, *changes):
    """Replace words of a file by others; the words must stand there."""
    text = path.read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")
