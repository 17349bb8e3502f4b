"""What a Chinese page has in common with the English one it was made from; `make translations` helps to keep it so.

    python -m tests.docs.translations                   copies code and pictures, and lists what to translate anew
    python -m tests.docs.translations docs/zh/faq.md    records that this page says what the English one says now

docs/zh/ has the Chinese pages under the English names, and README.zh.md stands beside README.md. The two pages have the
same sections, and in each section the same blocks, rows, list entries, pictures, names in backticks and links: to the
Chinese page where there is one. In a block only comments and docstrings may be translated. A heading has the anchor of
the English one, `## 规则 {#rules}`, so a link differs in nothing but the page.

Whether the sentences are the same cannot be seen by a program. So the last line of a Chinese page has a fingerprint of
each section of the English page, as it was when somebody last compared the two:

    <!-- translated from ../index.md: 0f3c9a51 77be0a1d -->

Code is not in the fingerprints, unless its comments are translated: a change of a block asks nobody to read. Neither is
what `make bench` writes. Called by `test_translations` and by the Makefile; that the blocks do what they say is tested
on the English pages.
"""

from __future__ import annotations

import hashlib
import io
import os.path
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.docs.pictures import PICTURES, translated

__all__ = (
    "ENGLISH_PAGES",
    "PAGES",
    "ROOT",
    "TRANSLATIONS",
    "Pair",
    "Section",
    "bare",
    "compared",
    "copied",
    "differences",
    "sections_of",
    "stale",
    "wording",
)

ROOT: Final = Path(__file__).parents[2]
_CHINESE: Final = ROOT / "docs" / "zh"

PAGES: Final[Mapping[Path, Path]] = {
    ROOT / "README.zh.md": ROOT / "README.md",
    **{page: ROOT / "docs" / page.relative_to(_CHINESE) for page in sorted(_CHINESE.rglob("*.md"))},
}
"""Each Chinese page, and the English one it was made from."""

TRANSLATIONS: Final[Mapping[Path, Path]] = {
    **{english: chinese for chinese, english in PAGES.items()},
    **{english: chinese for chinese, (english, _) in PICTURES.items()},
}
"""The Chinese page or picture in the place of each English one that has one."""

ENGLISH_PAGES: Final = [page for page in sorted((ROOT / "docs").rglob("*.md")) if not page.is_relative_to(_CHINESE)]
"""All English pages of the site; code is run and typed there alone."""

_FENCED: Final = re.compile(r"^( *)(```+)(.*)\n(?:.*\n)*?\1\2$", re.MULTILINE)
_HEADING: Final = re.compile(r"^(#+) +(.+?)(?: +\{#([\w-]+)\})?$", re.MULTILINE)
_RECORD: Final = re.compile(r"\n*^<!-- translated from (\S+): ([0-9a-f ]*) -->\n?\Z", re.MULTILINE)
_MEASURED: Final = re.compile(r"<!-- measured by make bench -->.*?<!-- end -->", re.DOTALL)
_REMARK: Final = re.compile(r"<!--.*?-->", re.DOTALL)
_LINK: Final = re.compile(r"(!?)\[[^\]]*\]\(([^)\s]+)\)")
_CODE: Final = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_COUNTED: Final = {
    "rows of tables": re.compile(r"^ *\|", re.MULTILINE),
    "list entries": re.compile(r"^ *(?:[-*]|\d+\.) ", re.MULTILINE),
    "notes": re.compile(r"^ *!!! ", re.MULTILINE),
    "HTML tags": re.compile(r"^ *</?[a-z]", re.MULTILINE),
}
_COMMENT_OF_COMMAND: Final = re.compile(r"^(\$ .*?) +# .*$", re.MULTILINE)
_LAID_OUT: Final = {tokenize.COMMENT, tokenize.NL, tokenize.ENCODING}
_BEFORE_A_STATEMENT: Final = {tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING}

_HAN: Final = "\u4e00-\u9fff"
_NOT_SAID: Final = {
    "a half-width mark between Chinese words": re.compile(
        rf"[{_HAN}`*)][,;:!?](?=[ {_HAN}`]|$)|[{_HAN}],|[{_HAN}] ?\([{_HAN}]", re.MULTILINE
    ),
    "a bold sentence without the space that GitHub needs after it": re.compile(
        rf"[\u3002\uff1f\uff01\uff09\u201d]\*\*(?=[{_HAN}`])"
    ),
    "\u201c and \u201d, not the quotation marks of traditional Chinese": re.compile("[\u300c-\u300f]"),
    "自定义资源, not 定制资源": re.compile("定制资源"),
    "调谐, not 调和 or 协调": re.compile("调和|协调"),
    "服务端应用, not 服务器端应用": re.compile("服务器端应用"),
    "准入, not 准许": re.compile("准许"),
    "属主, not 所有者 or 拥有者": re.compile("所有者|拥有者"),
}
"""How the pages do not say it: one word for one thing, those of the Chinese glossary."""


@dataclass(frozen=True)
class Pair:
    """A Chinese page, the English one, and what else there is in Chinese, by the English pages and pictures."""

    english: Path
    chinese: Path
    translations: Mapping[Path, Path]


@dataclass(frozen=True)
class Section:
    """A heading and what stands below it, until the next one; the first section of a page may have no heading."""

    title: str
    level: int
    anchor: str
    prose: str
    blocks: tuple[str, ...]

    @property
    def slug(self) -> str:
        """The anchor that the site gives to the heading, if the page does not."""
        return self.anchor or re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", self.title).strip().lower())


def sections_of(text: str) -> list[Section]:
    """The sections of a page, without the record at its end."""
    blocks: list[str] = []

    def cut(block: re.Match[str]) -> str:
        blocks.append(block[0])
        return "\0"

    prose = _FENCED.sub(cut, _RECORD.sub("\n", text))
    headings = list(_HEADING.finditer(prose))
    ends = [*(heading.start() for heading in headings), len(prose)]
    rest = iter(blocks)

    def section(title: str, level: int, anchor: str, body: str) -> Section:
        return Section(title, level, anchor, body, tuple(next(rest) for _ in range(body.count("\0"))))

    found = [section("", 0, "", prose[: ends[0]])]
    for heading, end in zip(headings, ends[1:], strict=True):
        found.append(section(heading[2], len(heading[1]), heading[3] or "", prose[heading.end() : end]))
    return found


def differences(english: str, chinese: str, pair: Pair) -> Iterator[str]:
    """What a Chinese page has not, or has in another way, with what to do about it."""
    ours, theirs = sections_of(english), sections_of(chinese)
    names = f"{_name(pair.chinese)}, made from {_name(pair.english)}"
    if [section.level for section in ours] != [section.level for section in theirs]:
        titles = (
            "; ".join(f"{'#' * each.level} {each.title}" for each in page if each.level) for page in (ours, theirs)
        )
        yield f"{names}: the headings differ. English: {next(titles)}. Chinese: {next(titles)}"
        return
    for one, other in zip(ours, theirs, strict=True):
        where = f"{names}, section {one.title!r}"
        if len(one.blocks) != len(other.blocks):
            yield f"{where}: {len(one.blocks)} blocks of code in English, {len(other.blocks)} in Chinese"
        elif list(_blocks(one, other)) != list(other.blocks):
            yield f"{where}: the code differs; `make translations` copies it"
        if one.level > 1 and pair.chinese.is_relative_to(_CHINESE) and other.anchor != one.slug:
            yield f"{where}: the heading has no {{#{one.slug}}}; `make translations` adds it"
        for what, pattern in _COUNTED.items():
            counts = [len(pattern.findall(section.prose)) for section in (one, other)]
            if counts[0] != counts[1]:
                yield f"{where}: {counts[0]} {what} in English, {counts[1]} in Chinese"
        for what, wanted, given in (
            ("link or picture", _links(one, pair, expected=True), _links(other, pair, expected=False)),
            ("name in backticks", _names(one), _names(other)),
            ("remark", Counter(_REMARK.findall(one.prose)), Counter(_REMARK.findall(other.prose))),
        ):
            yield from (f"{where}: the {what} {each} is missing" for each in (wanted - given).elements())
            yield from (f"{where}: the {what} {each} is not in English" for each in (given - wanted).elements())


def stale(english: str, chinese: str, pair: Pair) -> Iterator[str]:
    """Each section of the English page that has changed since the Chinese one was last compared with it."""
    then = _recorded(chinese)
    now = _fingerprints(english, chinese)
    do = (
        f"Look at `git log -p {_name(pair.english)}`, translate into {_name(pair.chinese)} what has changed, and then "
        f"`make translations SEEN={_name(pair.chinese)}`."
    )
    if then is None:
        yield f"{_name(pair.chinese)} has no record of the sections of {_name(pair.english)}. {do}"
        return
    changed = [section for section, own in zip(sections_of(english), now, strict=True) if own not in then]
    for section in changed:
        where = f"the section {section.title!r}" if section.title else "the beginning"
        yield f"{_name(pair.english)}: {where} has changed since {_name(pair.chinese)} was made from it. {do}"
    if not changed and then != now:
        yield f"{_name(pair.english)}: sections are gone or moved since {_name(pair.chinese)} was made from it. {do}"


def copied(english: str, chinese: str, pair: Pair) -> str:
    """The Chinese page with the code and the anchors of the English one; as it is, if the headings differ."""
    ours, theirs = sections_of(english), sections_of(chinese)
    if [section.level for section in ours] != [section.level for section in theirs]:
        return chinese
    if any(len(one.blocks) != len(other.blocks) for one, other in zip(ours, theirs, strict=True)):
        return chinese
    parts = []
    for one, other in zip(ours, theirs, strict=True):
        if other.level:
            in_site = other.level > 1 and pair.chinese.is_relative_to(_CHINESE)
            parts.append(f"{'#' * other.level} {other.title}{f' {{#{one.slug}}}' if in_site else ''}")
        head, *tails = other.prose.split("\0")
        parts.append(head + "".join(block + tail for block, tail in zip(_blocks(one, other), tails, strict=True)))
    record = _RECORD.search(chinese)
    return "".join(parts).rstrip("\n") + "\n" + (f"\n{record[0].strip()}\n" if record else "")


def compared(english: str, chinese: str, pair: Pair) -> str:
    """The Chinese page with the fingerprints of the English one as it is now."""
    source = Path(os.path.relpath(pair.english, pair.chinese.parent)).as_posix()
    record = f"<!-- translated from {source}: {' '.join(_fingerprints(english, chinese))} -->"
    return _RECORD.sub("\n", chinese).rstrip("\n") + f"\n\n{record}\n"


def wording(chinese: str) -> Iterator[str]:
    """Marks and words of a Chinese page that the others do not use."""
    prose = _CODE.sub("`", _LINK.sub(")", _REMARK.sub("", _FENCED.sub("", chinese))))
    for what, pattern in _NOT_SAID.items():
        for found in pattern.finditer(prose):
            yield f"{what}: {prose[max(found.start() - 8, 0) : found.end() + 8]!r}"


def bare(block: str) -> str:
    """A block without what may be translated in it: comments of Python and of commands, and docstrings."""
    first, _, rest = block.partition("\n")
    language = first.strip(" `").partition(" ")[0]
    if language == "python":
        code = rest.rpartition("\n")[0]
        try:
            return f"{first}\n{' '.join(_without_comments(code))}"
        except (tokenize.TokenError, SyntaxError):
            return block
    return _COMMENT_OF_COMMAND.sub(r"\1", block) if language == "console" else block


def _blocks(english: Section, chinese: Section) -> Iterator[str]:
    """The blocks that a Chinese section is to have: the English ones, but for those with translated comments."""
    for one, other in zip(english.blocks, chinese.blocks, strict=True):
        yield other if _is_translated(one, other) else one


def _is_translated(english: str, chinese: str) -> bool:
    return bare(english) == bare(chinese) and re.search(f"[{_HAN}]", chinese) is not None


def _without_comments(code: str) -> Iterator[str]:
    tokens = [token for token in tokenize.generate_tokens(io.StringIO(code).readline) if token.type not in _LAID_OUT]
    before = tokenize.NEWLINE
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        alone = before in _BEFORE_A_STATEMENT and following is not None and following.type == tokenize.NEWLINE
        yield "a docstring" if token.type == tokenize.STRING and alone else repr(token.string)
        before = token.type


def _fingerprints(english: str, chinese: str) -> list[str]:
    """One for each section of the English page: its words, wherever the lines end, and blocks that are translated."""
    blocks = {section.anchor or at: section.blocks for at, section in enumerate(sections_of(chinese))}
    found = []
    for at, section in enumerate(sections_of(english)):
        pairs = zip(section.blocks, blocks.get(section.slug, blocks.get(at, ())), strict=False)
        translated = [one for one, other in pairs if _is_translated(one, other)]
        words = " ".join((section.title, _MEASURED.sub("", section.prose), *translated)).split()
        found.append(hashlib.sha256(" ".join(words).encode()).hexdigest()[:8])
    return found


def _recorded(chinese: str) -> list[str] | None:
    record = _RECORD.search(chinese)
    return record[2].split() if record else None


def _links(section: Section, pair: Pair, *, expected: bool) -> Counter[str]:
    """Where the links and pictures of a section lead; `expected` is where those of the translation are to lead."""
    page = pair.english if expected else pair.chinese
    found: Counter[str] = Counter()
    for picture, link in _LINK.findall(section.prose):
        path, mark, anchor = link.partition("#")
        if "://" in path:
            found[link] += 1
            continue
        target = Path(os.path.normpath(page.parent / path)) if path else page
        if expected:
            target = pair.english if target == pair.chinese else pair.translations.get(target, target)
        found[f"{picture}{_name(target)}{mark}{anchor}"] += 1
    return found


def _names(section: Section) -> Counter[str]:
    return Counter({" ".join(name.split()) for name in _CODE.findall(section.prose)})


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def _main(pages: list[str]) -> None:
    for picture, (original, words) in PICTURES.items():
        picture.parent.mkdir(exist_ok=True)
        picture.write_text(translated(original.read_text(encoding="utf-8"), words), encoding="utf-8")
    for chinese, english in PAGES.items():
        pair = Pair(english, chinese, TRANSLATIONS)
        source, before = (page.read_text(encoding="utf-8") for page in (english, chinese))
        text = copied(source, before, pair)
        if _name(chinese) in pages:
            text = compared(source, text, pair)
        if text != before:
            chinese.write_text(text, encoding="utf-8")
            print(f"{_name(chinese)}: written")
        for line in (*differences(source, text, pair), *stale(source, text, pair), *wording(text)):
            print(line if _name(chinese) in line else f"{_name(chinese)}: {line}")
    if unknown := [page for page in pages if ROOT / page not in PAGES]:
        sys.exit(f"No such Chinese page: {', '.join(unknown)}")


if __name__ == "__main__":
    _main(sys.argv[1:])
