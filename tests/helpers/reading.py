"""What a person reads in a notebook."""

from isonb_lab.pages.outputs import PARAGRAPH


def prose(notebook):
    """Its Markdown cells, and what the cells of paragraphs show, in order."""
    texts = []
    for cell in notebook.cells:
        if PARAGRAPH in cell.metadata.get("tags", []):
            texts += [output.data["text/markdown"] for output in cell.outputs]
        elif cell.cell_type == "markdown":
            texts.append(cell.source)
    return "\n\n".join(texts)
