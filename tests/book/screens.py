"""Pictures of every built page, light and dark, wide and narrow, for people to look at.

``python tests/book/screens.py`` writes them to ``_build/screens`` (``--html``: another build; names choose pages).
"""

from __future__ import annotations

import argparse
from pathlib import Path

from browser import launch, open_page, pages_of, use_theme
from playwright.sync_api import sync_playwright

WIDTHS = {"wide": 1280, "phone": 400}


def main() -> None:
    """Take the pictures and say where they are."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--html", type=Path, default=Path("_build/html"), help="folder of the built pages")
    parser.add_argument("--out", type=Path, default=Path("_build/screens"), help="where the pictures go")
    parser.add_argument("names", nargs="*", help="only pages with one of these words in their path")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright, launch(playwright) as browser:
        for path in pages_of(arguments.html):
            name = path.relative_to(arguments.html).with_suffix("").as_posix().replace("/", "-")
            if arguments.names and not any(word in name for word in arguments.names):
                continue
            for width_name, width in WIDTHS.items():
                with open_page(browser, path, width=width) as visit:
                    for theme in ("light", "dark"):
                        use_theme(visit.page, theme)
                        visit.page.screenshot(path=arguments.out / f"{name}-{width_name}-{theme}.png", full_page=True)
            print(name)
    print(f"The pictures are in {arguments.out}.")


if __name__ == "__main__":
    main()
