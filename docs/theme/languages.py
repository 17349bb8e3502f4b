"""Two languages in one site: what a page of one shows of the menu, the switch and the search, is of that language.

The English pages are in docs/, the Chinese ones in docs/zh/ under the same names; `tests/docs/translations.py` says
what they have in common. mkdocs.yml has one menu, whose last section is the Chinese one. A Chinese page gets

- the Chinese half of the menu, and then the English sections of which no page is translated;
- a switch in the header that leads to the same page in English; where there is no page in the other language, the
  switch leads to its first page;
- its words without the spaces that the ends of lines would make between Chinese letters;
- a search index of its own. Chinese has no spaces between words: those of the glossary are words of the index, and most
  other letters are words as well. The theme's script splits what a reader types at the words that the index has.

mkdocs calls this (`hooks` in mkdocs.yml), and nobody else. It knows nothing of what a page says.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterable, Iterator, MutableMapping
from pathlib import Path
from typing import Final, Protocol

__all__ = (
    "counterpart_of",
    "joined",
    "on_nav",
    "on_page_content",
    "on_page_context",
    "on_post_build",
    "split_index",
    "words_of",
)

CHINESE: Final = "zh/"
"""Where the Chinese pages are, in docs/ and in the site."""
_LETTERS: Final = "\u3007\u3400-\u4dbf\u4e00-\u9fff"
_MARKS: Final = "\u2018-\u201d\u2026\u3001-\u3011\uff01-\uff20"
_CODE: Final = re.compile(r"(<pre.*?</pre>|<script.*?</script>)", re.DOTALL)
_SPACES: Final = re.compile(
    "|".join(
        (
            rf"(?<=[{_MARKS}])\n *(?=[^\s<]|<(?:a|code|em|strong)\b)",
            rf"(?<=\S)\n *(?=[{_MARKS}])",
            rf"(?<=[{_LETTERS}])\n *(?=[{_LETTERS}])",
            rf"(?<=[{_MARKS}]</strong>) (?=[{_LETTERS}])",
        )
    )
)
"""Beside a Chinese mark, between two letters, and after a bold sentence, which needs one in the Markdown of GitHub."""
SEPARATOR: Final = r"[\s\u200b\-\u2010-\u201f\u3000-\u3003\u3008-\u301f\uff01-\uff20,:!=\[\]()\"`/]+"
"""Between words of the search, for the reader's browser. Zero-width spaces are between Chinese ones."""
_FIRST_CELL: Final = re.compile(r"^\| ([^|]+) \|", re.MULTILINE)


class Item(Protocol):
    """A page, a section or a link of the menu."""

    title: str | None
    children: list[Item] | None
    url: str


class Page(Protocol):
    """A page of the site, as mkdocs has it."""

    url: str
    previous_page: Page | None
    next_page: Page | None


class Menu(Protocol):
    """The menu, as mkdocs has it."""

    items: list[Item]
    pages: list[Page]
    homepage: Page | None


class Config(Protocol):
    """What is asked of mkdocs.yml here."""

    docs_dir: str
    site_dir: str


def on_nav(nav: Menu, **_: object) -> Menu:
    """Going on from page to page stays within a language."""
    for page in nav.pages:
        if page.previous_page and not _same(page, page.previous_page):
            page.previous_page = None
        if page.next_page and not _same(page, page.next_page):
            page.next_page = None
    return nav


def on_page_content(html: str, *, page: Page, **_: object) -> str:
    """Chinese has no spaces between words, so the end of a line is none either."""
    return joined(html) if _is_chinese(page.url) else html


def on_page_context(context: MutableMapping[str, object], *, page: Page, nav: Menu, **_: object) -> None:
    """Give a page the menu and the switch of its language."""
    chinese = _is_chinese(page.url)
    own = copy.copy(nav)
    own.items = list(_items_for(nav, chinese=chinese))
    own.homepage = (
        next((each for each in nav.pages if each.url == f"{CHINESE}index.html"), None) if chinese else nav.homepage
    )
    context["nav"] = own
    context["other_language"] = counterpart_of(page.url, [each.url for each in nav.pages])
    if chinese:  # the theme's script looks for the search index below this
        context["base_url"] = "/".join([".."] * (page.url.count("/") - 1)) or "."


def on_post_build(config: Config, **_: object) -> None:
    """Make two search indexes of the one that was built."""
    built = Path(config.site_dir) / "search" / "search_index.json"
    glossary = Path(config.docs_dir) / CHINESE / "glossary.md"
    words = words_of(glossary.read_text(encoding="utf-8"))
    english, chinese = split_index(built.read_text(encoding="utf-8"), words=words)
    built.write_text(english, encoding="utf-8")
    own = Path(config.site_dir) / CHINESE / "search" / "search_index.json"
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_text(chinese, encoding="utf-8")


def joined(html: str) -> str:
    """A Chinese text without the spaces that its line ends would become; code is left alone."""
    parts = _CODE.split(html)
    return "".join(part if at % 2 else _SPACES.sub("", part) for at, part in enumerate(parts))


def words_of(glossary: str) -> list[str]:
    """The Chinese words of a glossary, but those that have others in them: 资源 is to be found in 自定义资源, too."""
    cells = (cell.partition("\uff08")[0] for cell in _FIRST_CELL.findall(glossary))
    words = {word for cell in cells for word in cell.split("\u3001") if re.fullmatch(f"[{_LETTERS}]{{2,}}", word)}
    return sorted(word for word in words if not any(other in word for other in words - {word}))


def split_index(index: str, *, words: Iterable[str] = ()) -> tuple[str, str]:
    """The index of the English pages, and that of the Chinese ones, whose places begin below zh/."""
    whole = json.loads(index)
    own = _words_as(tuple(words))

    def chinese(entry: dict[str, str]) -> dict[str, str]:
        spaced = {key: own.sub(lambda word: f"\u200b{word[0]}\u200b", entry[key]) for key in ("title", "text")}
        return {**entry, **spaced, "location": entry["location"].removeprefix(CHINESE)}

    # Without a pipeline nothing is thought to be an ending or a mark of punctuation.
    config = {**whole["config"], "lang": ["en"], "separator": SEPARATOR, "pipeline": []}
    english = [entry for entry in whole["docs"] if not _is_chinese(entry["location"])]
    others = [chinese(entry) for entry in whole["docs"] if _is_chinese(entry["location"])]
    return _json({**whole, "docs": english}), _json({"config": config, "docs": others})


def _words_as(words: tuple[str, ...]) -> re.Pattern[str]:
    """What is a word of the index.

    A letter with which a word of the glossary begins is none: the theme's script would look for 退 alone when a reader
    types 退避. It goes with the letter after it, or before it.
    """
    if not words:
        return re.compile(f"[{_LETTERS}]")
    first = "".join(sorted({word[0] for word in words}))
    return re.compile("|".join((*words, f"[{first}][{_LETTERS}]", f"[{_LETTERS}](?:[{first}](?![{_LETTERS}]))?")))


def counterpart_of(url: str, urls: Iterable[str]) -> str:
    """The page that says the same in the other language, or that language's first page."""
    if _is_chinese(url):
        return url.removeprefix(CHINESE)
    found = f"{CHINESE}{url}"
    return found if found in urls else f"{CHINESE}index.html"


def _items_for(nav: Menu, *, chinese: bool) -> Iterator[Item]:
    translated = {page.url.removeprefix(CHINESE) for page in nav.pages if _is_chinese(page.url)}
    for item in nav.items:
        urls = list(_urls_of(item))
        if all(_is_chinese(url) for url in urls):
            yield from (item.children or [item]) if chinese else ()
    for item in nav.items:
        urls = list(_urls_of(item))
        if not any(_is_chinese(url) for url in urls) and not (chinese and translated.intersection(urls)):
            yield item


def _urls_of(item: Item) -> Iterator[str]:
    if item.children is None:
        yield item.url
    for child in item.children or ():
        yield from _urls_of(child)


def _same(one: Page, other: Page) -> bool:
    return _is_chinese(one.url) == _is_chinese(other.url)


def _is_chinese(url: str) -> bool:
    return url.startswith(CHINESE)


def _json(tree: object) -> str:
    return json.dumps(tree, ensure_ascii=False, separators=(",", ":"))
