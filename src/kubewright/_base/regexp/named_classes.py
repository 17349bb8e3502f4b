r"""Classes with a name: `\d` of Perl, `[:alpha:]` of POSIX, and `\pL`, `\p{Greek}`, `\p{Letter}` of Unicode.

Go looks names of Unicode up without regard to case, spaces, hyphens and underscores, and so finds no script whose own
name has an underscore (regexp/syntax/parse.go, unicodeTable). RE2 has the characters of a class; it has none for `Cn`
and `Assigned`, which are refused, as by Go until 1.25. `parser` calls this.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Final, final

__all__ = ("NamedClass", "perl_class", "posix_class", "unicode_class")

_Ranges = tuple[tuple[int, int], ...]


@final
@dataclass(frozen=True, slots=True)
class NamedClass:
    """A class with a name, or the characters outside of it."""

    re2: str
    """As RE2 writes it inside brackets."""
    steps: int
    """About how large it is when compiled to bytes of UTF-8."""
    negated: bool
    ranges: _Ranges | None = None
    """Its characters; None if only RE2 knows them."""


_PERL: Final[dict[str, _Ranges]] = {
    "d": ((48, 57),),
    "s": ((9, 10), (12, 13), (32, 32)),
    "w": ((48, 57), (65, 90), (95, 95), (97, 122)),
}
_POSIX: Final[dict[str, _Ranges]] = {
    "alnum": ((48, 57), (65, 90), (97, 122)),
    "alpha": ((65, 90), (97, 122)),
    "ascii": ((0, 127),),
    "blank": ((9, 9), (32, 32)),
    "cntrl": ((0, 31), (127, 127)),
    "digit": ((48, 57),),
    "graph": ((33, 126),),
    "lower": ((97, 122),),
    "print": ((32, 126),),
    "punct": ((33, 47), (58, 64), (91, 96), (123, 126)),
    "space": ((9, 13), (32, 32)),
    "upper": ((65, 90),),
    "word": _PERL["w"],
    "xdigit": ((48, 57), (65, 70), (97, 102)),
}


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_CATEGORIES: Final = _words(
    "Any C Cc Cf Co Cs L Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm So Z Zl Zp Zs"
)
_SCRIPTS: Final = _words(
    "Adlam Ahom Arabic Armenian Avestan Balinese Bamum Batak Bengali Bhaiksuki Bopomofo Brahmi Braille Buginese Buhid"
    " Carian Chakma Cham Cherokee Chorasmian Common Coptic Cuneiform Cypriot Cyrillic Deseret Devanagari Dogra Duployan"
    " Elbasan Elymaic Ethiopic Georgian Glagolitic Gothic Grantha Greek Gujarati Gurmukhi Han Hangul Hanunoo Hatran"
    " Hebrew Hiragana Inherited Javanese Kaithi Kannada Katakana Kawi Kharoshthi Khmer Khojki Khudawadi Lao Latin"
    " Lepcha Limbu Lisu Lycian Lydian Mahajani Makasar Malayalam Mandaic Manichaean Marchen Medefaidrin Miao Modi"
    " Mongolian Mro Multani Myanmar Nabataean Nandinagari Newa Nko Nushu Ogham Oriya Osage Osmanya Palmyrene Phoenician"
    " Rejang Runic Samaritan Saurashtra Sharada Shavian Siddham Sinhala Sogdian Soyombo Sundanese Syriac Tagalog"
    " Tagbanwa Takri Tamil Tangsa Tangut Telugu Thaana Thai Tibetan Tifinagh Tirhuta Toto Ugaritic Vai Vithkuqi Wancho"
    " Yezidi Yi"
)
_ALIASES: Final = dict(
    pair.split("=")
    for pair in _words(
        "Casedletter=Lc Closepunctuation=Pe Combiningmark=M Connectorpunctuation=Pc Control=Cc Currencysymbol=Sc"
        " Dashpunctuation=Pd Decimalnumber=Nd Enclosingmark=Me Finalpunctuation=Pf Format=Cf Initialpunctuation=Pi"
        " Letter=L Letternumber=Nl Lineseparator=Zl Lowercaseletter=Ll Mark=M Mathsymbol=Sm Modifierletter=Lm"
        " Modifiersymbol=Sk Nonspacingmark=Mn Number=N Openpunctuation=Ps Other=C Otherletter=Lo Othernumber=No"
        " Otherpunctuation=Po Othersymbol=So Paragraphseparator=Zp Privateuse=Co Punctuation=P Separator=Z"
        " Spaceseparator=Zs Spacingmark=Mc Surrogate=Cs Symbol=S Titlecaseletter=Lt Uppercaseletter=Lu Cntrl=Cc"
        " Digit=Nd Punct=P"
    )
)
_STEPS: Final = {"L": 1200, "Lo": 950, "Ll": 850, "Lu": 800, "M": 600, "Mn": 600, "S": 450, "So": 400}
_USUAL_STEPS: Final = 350


def perl_class(letter: str) -> NamedClass:
    r"""`\d`, `\s`, `\w`, and the opposite of each in upper case."""
    return _ascii_class(f"\\{letter}", _PERL[letter.lower()], negated=letter.isupper())


def posix_class(name: str) -> NamedClass | None:
    """`alpha`, `^alpha` and so on; None if there is no such class."""
    ranges = _POSIX.get(name.removeprefix("^"))
    return None if ranges is None else _ascii_class(f"[:{name}:]", ranges, negated=name.startswith("^"))


def _ascii_class(re2: str, ranges: _Ranges, *, negated: bool) -> NamedClass:
    return NamedClass(re2, 9 if negated else len(ranges), negated, _complement(ranges) if negated else ranges)


def unicode_class(name: str, *, negated: bool) -> NamedClass | None:
    """The class of Unicode with this name, or None if Go knows none."""
    canonical = name.translate({ord(mark): None for mark in "_- "}).capitalize()
    canonical = _ALIASES.get(canonical, canonical)
    if canonical == "Ascii":
        return posix_class("^ascii" if negated else "ascii")
    if canonical == "Lc" and not negated:  # RE2 has no name for the three together
        return NamedClass(r"\p{Lu}\p{Ll}\p{Lt}", 1700, negated)
    if canonical not in _CATEGORIES and canonical not in _SCRIPTS:
        return None
    return NamedClass(f"\\{'P' if negated else 'p'}{{{canonical}}}", _STEPS.get(canonical, _USUAL_STEPS), negated)


def _complement(ranges: _Ranges) -> _Ranges:
    begins = (0, *(high + 1 for _, high in ranges))
    ends = (*(low - 1 for low, _ in ranges), sys.maxunicode)
    return tuple((begin, end) for begin, end in zip(begins, ends, strict=True) if begin <= end)
