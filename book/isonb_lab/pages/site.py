"""What the pages say of themselves: where they stand, their licence, how to report a mistake (``_config.yml``)."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any
from urllib.parse import quote

import isonb
from isonb_lab.pages.errors import BuildError

WHEEL = f"isonb-{isonb.__version__}-py3-none-any.whl"
ARCHIVE = "isonb-notebooks.zip"


@dataclass(frozen=True)
class Site:
    """``isonb_site`` of ``_config.yml``; an address that isn't known is an empty text."""

    repository: str = ""
    address: str = ""
    notebooks: str = ""
    licence: str = ""

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> Site:
        """The settings, each a text; :class:`BuildError` for one that there is not."""
        names = [field.name for field in fields(cls)]
        if wrong := set(settings) - set(names):
            raise BuildError(f"isonb_site must have {', '.join(names)}; got {', '.join(sorted(wrong))}.")
        return cls(**{name: text if name == "notebooks" else text.rstrip("/") for name, text in settings.items()})

    def options(self) -> dict[str, Any]:
        """Options of the theme: buttons that lead to the repository and to its issues, where there is one."""
        public = bool(self.repository)
        return {"repository_url": self.repository, "use_repository_button": public, "use_issues_button": public}

    def footer(self, page: str, archive: str) -> str:
        """The last lines of a page; ``archive`` is its link to the notebooks, nothing where there are none.

        >>> print(Site(licence="MIT").footer("book/intro", ""))
        isonb ... · licence MIT · a mistake? Tell whoever gave you these pages, with the date and the page.
        """
        parts = [f"isonb {isonb.__version__}", f"licence {html.escape(self.licence)}"]
        parts += [f'<a href="{html.escape(archive)}">wheels and notebooks of these pages</a>'] if archive else []
        if self.repository:
            issue = f"{self.repository}/issues/new?title={quote(f'Mistake on {page}')}"
            parts += [f'<a href="{html.escape(self.repository)}">repository</a>']
            parts += [f'a mistake? <a href="{html.escape(issue)}">Report it.</a>']
        else:
            parts += ["a mistake? Tell whoever gave you these pages, with the date and the page."]
        return " · ".join(parts)

    def open_graph(self, page: str, title: str, description: str) -> str:
        """The tags by which other sites show a link to a page.

        >>> Site().open_graph("book/intro", "Soup", "Much.").splitlines()[-1]
        '<meta property="og:description" content="Much.">'
        """
        tags = {"og:site_name": "isonb", "og:type": "article", "og:title": title, "og:description": description}
        if self.address:
            tags |= {"og:url": f"{self.address}/{page}.html", "og:image": f"{self.address}/isonb.png"}
        return "\n".join(f'<meta property="{name}" content="{html.escape(text)}">' for name, text in tags.items())
