"""How long every page of a built book is, and how long its tables are; two builds side by side.

``python tests/book/pages_table.py`` measures ``_build/html``; ``--html OLD --html NEW`` sets two side by side.
It prints markdown and, last, what is over the limits: of every page its height, of a main page its tables too.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from pathlib import Path

from browser import launch, open_page, pages_of
from playwright.sync_api import Browser, sync_playwright

HEIGHT, ROWS, COLUMNS = 18_000, 12, 7  # of a main page, 1280 pixels wide
BEHIND = re.compile(r"(_tables|_cells|_checks)$|^book/reference/")  # pages to look things up in
MEASURED = r"""() => {
  const article = document.querySelector('article.bd-article') || document.body;
  const tables = [...article.querySelectorAll('table')].map(table => ({
    rows: table.querySelectorAll(':scope > tbody > tr').length,
    columns: Math.max(0, ...[...table.rows].map(row => [...row.cells].reduce((sum, cell) => sum + cell.colSpan, 0))),
    head: (table.rows[0] ? table.rows[0].innerText : '').replace(/\s+/g, ' ').slice(0, 60),
  }));
  const prose = article.cloneNode(true);
  prose.querySelectorAll('pre, table, script, style, svg, .isonb-vega').forEach(node => node.remove());
  return {
    height: document.documentElement.scrollHeight,
    words: (prose.textContent.match(/\S+/g) || []).length,
    minutes: (article.textContent.match(/Time\s*:?\s*(\d+) minutes? to read/) || [null, ''])[1],
    tables: tables,
  };
}"""


@dataclass(frozen=True)
class Size:
    """What is measured of a page; ``tables`` holds (rows, columns, first row) of each."""

    height: int
    words: int
    minutes: str
    tables: tuple[tuple[int, int, str], ...]

    @property
    def longest(self) -> int:
        """Rows of the longest table."""
        return max((rows for rows, _, _ in self.tables), default=0)

    @property
    def rows(self) -> int:
        """Rows of all tables."""
        return sum(rows for rows, _, _ in self.tables)

    def cells(self) -> list[str]:
        """One cell a measure, in the order of the table's columns."""
        numbers = (len(self.tables), self.longest, self.rows)
        return [f"{self.height:,}", f"{self.words:,}", self.minutes or "-", *map(str, numbers)]


def measure(browser: Browser, html: Path) -> dict[str, Size]:
    """The size of each page of a build, by the page's name."""
    sizes = {}
    for path in pages_of(html):
        page = open_page(browser, path).page
        found = page.evaluate(MEASURED)
        page.close()
        tables = tuple((table["rows"], table["columns"], table["head"]) for table in found["tables"])
        name = path.relative_to(html).with_suffix("").as_posix()
        sizes[name] = Size(found["height"], found["words"], found["minutes"], tables)
    return sizes


def table(builds: list[dict[str, Size]]) -> str:
    """All pages as markdown; with two builds each cell says ``before → after``."""
    head = ["page", "height (px)", "words", "minutes", "tables", "rows of the longest", "rows in all"]
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    for name in sorted({name for build in builds for name in build}):
        each = [build[name].cells() if name in build else ["none"] * (len(head) - 1) for build in builds]
        lines.append("| " + " | ".join([name, *(" → ".join(cells) for cells in zip(*each, strict=True))]) + " |")
    return "\n".join(lines)


def over(build: dict[str, Size]) -> list[str]:
    """What passes the limits."""
    found = []
    for name, size in sorted(build.items()):
        if BEHIND.search(name):
            continue
        if size.height > HEIGHT:
            found.append(f"{name}: {size.height:,} pixels high, at most {HEIGHT:,}")
        for rows, columns, first in size.tables:
            if rows > ROWS or columns > COLUMNS:
                found.append(f"{name}: a table of {rows} rows and {columns} columns ({first})")
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--html", type=Path, action="append", help="folder of built pages; twice: before and after")
    arguments = parser.parse_args()
    with sync_playwright() as playwright, launch(playwright) as browser:
        builds = [measure(browser, html) for html in arguments.html or [Path("_build/html")]]
    print(table(builds))
    found = over(builds[-1])
    print("\nOver the limits:" if found else "\nNothing is over the limits.", *found, sep="\n- ")


if __name__ == "__main__":
    main()
