"""Whether the built site loads anything from elsewhere; `make docs` asks after each build.

    python -m tests.docs.offline site

A link that a reader may follow is fine. What the browser fetches by itself must be in the site: the documentation of a
cluster without internet is read without internet, and nobody else is told who reads it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

__all__ = ("loads_in_page", "loads_in_style", "loads_of_site")

_FETCHED: Final = {
    ("audio", "src"), ("embed", "src"), ("iframe", "src"), ("img", "src"), ("img", "srcset"), ("input", "src"),
    ("link", "href"), ("object", "data"), ("script", "src"), ("source", "src"), ("source", "srcset"), ("video", "src"),
    ("video", "poster"),
}  # fmt: skip
_ONLY_SAID: Final = {"alternate", "author", "canonical", "edit", "help", "license", "next", "prev", "search"}
"""Relations of a `link` element for which nothing is fetched."""
_FROM_ELSEWHERE: Final = re.compile(r"\s*(?:https?:)?//", re.IGNORECASE)
_IN_STYLE: Final = re.compile(r"(?:url\(\s*['\"]?|@import\s+['\"])((?:https?:)?//[^'\")\s]+)", re.IGNORECASE)
_ASKS_THE_HOST: Final = "source"
"""The component of the theme whose script asks the repository's host for numbers."""


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self._in_style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "link" and set(given.get("rel", "").split()) <= _ONLY_SAID:
            return
        self._in_style = tag == "style"
        self.loads += _IN_STYLE.findall(given.get("style", ""))
        for name, value in given.items():
            if (tag, name) in _FETCHED and any(_FROM_ELSEWHERE.match(url) for url in value.split(",")):
                self.loads.append(value)
        if given.get("data-md-component") == _ASKS_THE_HOST:
            self.loads.append(f"what the script asks {given.get('href', 'the repository')} for")

    def handle_data(self, data: str) -> None:
        if self._in_style:
            self.loads += _IN_STYLE.findall(data)

    def handle_endtag(self, tag: str) -> None:
        self._in_style = False


def loads_in_page(html: str) -> list[str]:
    """What a browser fetches from elsewhere when it shows a page."""
    page = _Page()
    page.feed(html)
    page.close()
    return page.loads


def loads_in_style(css: str) -> list[str]:
    """What a browser fetches from elsewhere because of a style sheet."""
    return _IN_STYLE.findall(css)


def loads_of_site(site: Path) -> Iterator[str]:
    """A line for each file of a built site that loads something from elsewhere."""
    for file in sorted((*site.rglob("*.html"), *site.rglob("*.css"))):
        loads = loads_in_page if file.suffix == ".html" else loads_in_style
        for load in loads(file.read_text(encoding="utf-8")):
            yield f"{file.relative_to(site)} loads {load}"


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    if not (folder / "index.html").is_file():
        sys.exit(f"{folder} has no index.html: build the site first")
    if found := list(loads_of_site(folder)):
        sys.exit("\n".join(("The site must not load anything from elsewhere:", *found)))
