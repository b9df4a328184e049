"""Where each section of the book of 27 November 2026 stands now: ``python tests/book/sections.py`` prints the table.

``sections.csv`` lists the sections, a row each: page, heading, and where it stands under another heading, that heading,
or a reason why it is gone, after a dash. Pages that have moved are those of ``isonb_moved`` in ``_config.yml``.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path

import yaml

from isonb_lab.pages.chapters import Book

ROOT = Path(__file__).resolve().parents[2]
FENCED = re.compile(r"^(?P<fence>[`:~]{3,}).*?^(?P=fence) *$", re.MULTILINE | re.DOTALL)


def headings(page: Path) -> list[str]:
    """The headings of a page's source, without those in code."""
    return re.findall(r"^#+ +(.+?) *$", FENCED.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)


def places() -> dict[tuple[str, str], str]:
    """Each former section with its page and heading now, or the reason why it is gone; "" where it is lost."""
    moved = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["sphinx"]["config"]["isonb_moved"]
    names = [page.removesuffix(".ipynb") for page in Book(ROOT).pages]
    present = {name: headings(ROOT / f"{name}.md") for name in names}
    results = {}
    with Path(__file__).with_suffix(".csv").open(encoding="utf-8", newline="") as file:
        for page, heading, now in csv.reader(file):
            here = moved.get(f"book/{page}", f"book/{page}").partition("#")[0]
            title = now or heading
            pages = [name for name in (here, *names) if title in present.get(name, ())]
            results[page, heading] = now if now.startswith("–") else f"{pages[0]}: {title}" if pages else ""
    return results


if __name__ == "__main__":
    for (page, heading), now in places().items():
        print(f"book/{page}: {heading}  ->  {now or 'LOST'}")
