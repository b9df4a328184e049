"""A sphinx extension: pages are built from the sources of chapters, and a function has an entry by both of its names.

The notebooks are in plain words; they are what a reader downloads. The reference pages call everything by the name that
a user imports; docstrings link to the file that defines it. Classes need no help: autodoc gives them both names.
"""

from __future__ import annotations

import functools
import html
import importlib
import json
import os
import re
import textwrap
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import nbformat
from docutils import nodes  # type: ignore[import-untyped]
from sphinx_exercise.nodes import solution_node  # type: ignore[import-untyped]

from isonb.runtime.files import update
from isonb_lab.pages.build import SOLUTIONS
from isonb_lab.pages.chapters import Book, Chapter
from isonb_lab.pages.errors import BuildError
from isonb_lab.pages.outputs import apply_outputs, code_cells
from isonb_lab.pages.site import ARCHIVE, Site

HANDOUT = os.environ.get(SOLUTIONS) == "no"
ADDRESS = re.compile(r"https://github\.com/([^/]+/[^/]+)/blob/([^/]+)/?((?:[^/]+/)*)")
TAG = re.compile(r'<span class="section-number">.*?</span>|<[^>]+>')
SUMMARY = 200  # letters of a page that other sites show
MOVED = """<!doctype html>
<meta charset="utf-8"><meta http-equiv="Refresh" content="0; url={address}"><title>This page has moved</title>
<a href="{address}">This page has moved.</a>
"""
TEX = re.compile(r"\\([a-zA-Z]+)")  # a command in a formula: its name is what is looked for


def as_written(app: Any, name: str, content: list[str]) -> None:
    """Put the cells of the source in the place of the plain ones of a notebook, before sphinx reads it."""
    if str(app.env.doc2path(name)).endswith(".ipynb"):
        source = Chapter(Path(app.srcdir), name).fresh()
        apply_outputs(source, [cell.outputs for cell in code_cells(nbformat.reads(content[0], as_version=4))])
        if address := Site.of(app.config.isonb_site).notebooks:
            title, _, rest = source.cells[0].source.partition("\n")
            source.cells[0].source = f"{title}\n\n{badges(address, name)}\n{rest}"
        content[0] = nbformat.writes(source)


def badges(address: str, page: str) -> str:
    """Links that open the notebook of a page elsewhere; ``address`` is where the notebooks are on GitHub.

    >>> badges("https://github.com/o/r/blob/main", "book/intro").split()[3]
    '<https://colab.research.google.com/github/o/r/blob/main/book/intro.ipynb>`'
    """
    match = ADDRESS.fullmatch(address)
    if match is None:
        raise BuildError(
            "notebooks of isonb_site must be the address of a branch on GitHub, or of a folder of one; "
            f"got {address!r}. Write https://github.com/OWNER/NAME/blob/BRANCH into _config.yml."
        )
    repository, branch, folder = match.groups()
    path = f"{folder}{page}.ipynb"
    links = {
        "Colab": f"https://colab.research.google.com/github/{repository}/blob/{branch}/{path}",
        "Binder": f"https://mybinder.org/v2/gh/{repository}/{branch}?labpath={path}",
        "Kaggle": f"https://kaggle.com/kernels/welcome?src=https://github.com/{repository}/blob/{branch}/{path}",
    }
    return " ".join(f"{{bdg-link-primary}}`Open in {name} <{link}>`" for name, link in links.items())


def buttons(app: Any, config: Any) -> None:
    """Buttons of the theme for the known addresses; pages to hand out offer no notebook, as it has solutions."""
    config.html_theme_options |= Site.of(config.isonb_site).options()
    if HANDOUT:
        config.html_copy_source = config.html_theme_options["use_download_button"] = False


def paragraphs(doctree: Any) -> Iterator[str]:
    """The text of each paragraph of a page, without the line of badges above the first."""
    for paragraph in doctree.findall(nodes.paragraph):
        if not any("sd-badge" in link["classes"] for link in paragraph.findall(nodes.reference)):
            yield " ".join(paragraph.astext().split())


def about(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """The footer of a page, and what other sites show of a link to it."""
    site = Site.of(app.config.isonb_site)
    archive = context["pathto"](ARCHIVE, 1) if Path(app.srcdir, "_build", "downloads", ARCHIVE).is_file() else ""
    context["theme_extra_footer"] = site.footer(page, archive)
    if doctree is not None:
        first = next(paragraphs(doctree), "")
        title = html.unescape(TAG.sub("", context["title"]))
        context["metatags"] += site.open_graph(page, title, textwrap.shorten(first, SUMMARY, placeholder="…"))


def leave_solutions_out(app: Any, doctree: Any) -> None:
    """Take solutions out of pages to hand out: sphinx-exercise's own hide_solutions fails where one has cells."""
    for solution in list(doctree.findall(solution_node)) if HANDOUT else ():
        solution.parent.remove(solution)


def along_the_book(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """*Next* and *Previous* lead from numbered page to numbered page; from a supplement back to its page."""
    numbered = _numbered(Path(app.srcdir))
    path = [str(app.config.root_doc), *numbered]
    above = next((item for item, supplements in numbered.items() if page in supplements), None)
    if above is not None:
        before, at = path.index(above), path.index(above)
    elif page in path:
        before, at = path.index(page) - 1, path.index(page)
    else:
        return
    context["prev"] = _link(app, page, *path[max(before, 0) : before + 1])
    context["next"] = _link(app, page, *path[at + 1 : at + 2])


@functools.cache
def _numbered(root: Path) -> dict[str, tuple[str, ...]]:
    """The table of contents is read once a build, and not for each page."""
    return Book(root).numbered


def _link(app: Any, page: str, *target: str) -> dict[str, str] | None:
    """A link of the theme's to a page, none without one."""
    if not target:
        return None
    title = app.builder.render_partial(app.env.titles[target[0]])["title"]
    return {"link": app.builder.get_relative_uri(page, target[0]), "title": title}


def keep_prose(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Keep the paragraphs of a page for the search, which reads no other file: those of code say nothing."""
    if doctree is not None:
        app.prose[page] = "\n".join(filter(None, (TEX.sub(r"\1", text) for text in paragraphs(doctree))))


def write_prose(app: Any, error: Exception | None) -> None:
    """Put the paragraphs into the index of the search; ``static/search.js`` takes excerpts from them."""
    index = Path(app.outdir, "searchindex.js")
    if error is None and index.is_file():
        prose = json.dumps(app.prose, ensure_ascii=False)
        index.write_text(f"const PROSE = {prose};\n{index.read_text(encoding='utf-8')}", encoding="utf-8")


def lead_on(app: Any, error: Exception | None) -> None:
    """Leave a page at each former address that leads to where its text stands now: the table ``isonb_moved``."""
    for former, target in app.config.isonb_moved.items() if error is None else ():
        page, mark, section = target.partition("#")
        if page not in app.env.found_docs:
            raise BuildError(f"isonb_moved of _config.yml must lead to pages of the book; {former} leads to {page!r}.")
        address = app.builder.get_relative_uri(former, page) + mark + section
        update(Path(app.outdir, f"{former}.html"), MOVED.format(address=address))


def second_names(app: Any, env: Any) -> None:
    """Add the defining module's name of every documented function of isonb to the index of names."""
    names = env.get_domain("py").objects
    for name, entry in list(names.items()):
        if entry.objtype == "function" and name.startswith("isonb."):
            module, _, attribute = name.rpartition(".")
            home = getattr(importlib.import_module(module), attribute).__module__
            names.setdefault(f"{home}.{attribute}", entry._replace(aliased=True))


def setup(app: Any) -> dict[str, bool]:
    app.add_config_value("isonb_site", asdict(Site()), "env", [dict])
    app.connect("config-inited", buttons)
    app.add_config_value("isonb_moved", {}, "html", [dict])
    app.connect("source-read", as_written)
    app.connect("doctree-read", leave_solutions_out)
    app.connect("html-page-context", about)
    app.connect("env-updated", second_names)
    app.connect("html-page-context", along_the_book)
    app.prose = {}
    app.connect("html-page-context", keep_prose)
    app.connect("build-finished", write_prose)
    app.connect("build-finished", lead_on)
    return {"parallel_read_safe": True, "parallel_write_safe": False}
