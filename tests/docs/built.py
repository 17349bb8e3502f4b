"""Whether each page of the built site is in its language and leads to the other one; `make docs` asks after each build.

    python -m tests.docs.built site

`docs/theme/` puts templates in the place of Material's. When Material calls one of them otherwise, mkdocs does not
complain: the page is then built without it. So this looks at what came out.
"""

from __future__ import annotations

import json
import os.path
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

__all__ = ("wrong_in_site",)

_CHINESE: Final = "zh"
_LANGUAGE: Final = re.compile(r'<html lang="([\w-]+)"')
_SWITCH: Final = re.compile(r'<a class="md-language" href="([^"]+)" hreflang="([\w-]+)"')
_TABS: Final = re.compile(r'<nav class="md-tabs".*?</nav>', re.DOTALL)
_BASE: Final = re.compile(r'"base": ?"([^"]+)"')


def wrong_in_site(site: Path) -> Iterator[str]:
    """A line for each page that is not in its language, has another menu or search, or a switch that leads nowhere."""
    for file in sorted(site.rglob("*.html")):
        page = file.relative_to(site)
        html = file.read_text(encoding="utf-8")
        switch = _SWITCH.search(html)
        if switch is None:
            if page.name != "404.html":
                yield f"{page} has no switch to the other language"
            continue
        own, other = (_CHINESE, "en") if page.parts[0] == _CHINESE else ("en", _CHINESE)
        if (said := _LANGUAGE.search(html)) is None or said[1] != own:
            yield f"{page} does not say that it is in {own!r}"
        if switch[2] != other or not (file.parent / switch[1]).is_file():
            yield f"{page}: the switch to {other!r} leads to {switch[1]}, which is not there or in another language"
        tabs, base = _TABS.search(html), _BASE.search(html)
        if tabs is None or (own == _CHINESE) != ("首页" in tabs[0]):
            yield f"{page} has not the menu of {own!r}"
        index = Path(os.path.normpath(file.parent / (base[1] if base else ".."))) / "search" / "search_index.json"
        root = site / _CHINESE if own == _CHINESE else site
        if index != root / "search" / "search_index.json" or not index.is_file():
            yield f"{page} has not the search of {own!r}"
        elif file.relative_to(root).as_posix() not in _found_in(index):
            yield f"{page} is not found by the search of {own!r}"


@cache
def _found_in(index: Path) -> frozenset[str]:
    """The pages of a search index, by their place."""
    entries = json.loads(index.read_text(encoding="utf-8"))["docs"]
    return frozenset(entry["location"].partition("#")[0] for entry in entries)


if __name__ == "__main__":
    if found := list(wrong_in_site(Path(sys.argv[1]))):
        sys.exit("\n".join(("The site is not in its two languages:", *found)))
