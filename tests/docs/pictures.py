"""The pictures of the Chinese pages: the English ones with other words; `make translations` writes them.

`picture_words.txt` has the words. docs/zh/pictures/ has what comes of it, as the site and GitHub show files only.
`test_pictures` fails where a picture has changed since, or has words that nobody translated. A picture that is not
listed there, such as what a terminal shows, is the same in both languages.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

__all__ = ("PICTURES", "missing_words", "translated", "unused_words", "words_of")

_DOCS: Final = Path(__file__).parents[2] / "docs"
_WORDS: Final = re.compile(r'(<(?:text|title|desc)\b[^>]*>|aria-label=")([^<"]+)')
_PICTURE: Final = re.compile(r"\[(\w+)\]")
_ARROW: Final = " => "


def words_of(lines: str) -> dict[str, dict[str, str]]:
    """The words of each picture."""
    found: dict[str, dict[str, str]] = {}
    for line in lines.splitlines():
        if picture := _PICTURE.fullmatch(line):
            words = found.setdefault(picture[1], {})
        elif line and not line.startswith("#"):
            english, _, chinese = line.partition(_ARROW)
            words[english] = chinese or english
    return found


PICTURES: Final[Mapping[Path, tuple[Path, Mapping[str, str]]]] = {
    _DOCS / "zh" / "pictures" / f"{name}.svg": (_DOCS / "pictures" / f"{name}.svg", words)
    for name, words in words_of((Path(__file__).parent / "picture_words.txt").read_text(encoding="utf-8")).items()
}
"""Each Chinese picture, the English one, and the words."""


def translated(svg: str, words: Mapping[str, str]) -> str:
    """A picture with its words in Chinese; a word that is missing stays."""

    def put(found: re.Match[str]) -> str:
        english = html.unescape(found[2])
        return found[1] + (html.escape(words[english]) if english in words else found[2])

    return _WORDS.sub(put, svg)


def missing_words(svg: str, words: Mapping[str, str]) -> list[str]:
    """What a picture says that nobody has translated."""
    return sorted(set(_said(svg)) - set(words))


def unused_words(svg: str, words: Mapping[str, str]) -> list[str]:
    """What the picture does not say, or says no more."""
    return sorted(set(words) - set(_said(svg)))


def _said(svg: str) -> Iterator[str]:
    yield from (html.unescape(words) for _, words in _WORDS.findall(svg) if words.strip())
