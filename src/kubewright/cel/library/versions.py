"""`semver('1.2.3')`: semantic versions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final, final

from kubewright.cel.celtypes import BOOL, INT, STRING, object_type
from kubewright.cel.declarations import Declaration, function, member
from kubewright.cel.errors import EvaluationError
from kubewright.cel.values import OpaqueValue

__all__ = ("SEMVER", "declarations")

SEMVER: Final = object_type("kubernetes.Semver")
_MAX_DIGITS: Final = 20
_ALLOWED: Final = re.compile(r"[0-9A-Za-z\-]+", re.ASCII)


@final
class _Version(OpaqueValue):
    """A version; comparisons ignore the build metadata."""

    __slots__ = ("numbers", "pre")
    cel_type = SEMVER

    def __init__(self, numbers: tuple[int, int, int], pre: tuple[str, ...]) -> None:
        self.numbers = numbers
        self.pre = pre

    @property
    def work_size(self) -> int:
        """What it takes to compare it."""
        return sum(map(len, self.pre))

    def key(self) -> tuple[object, ...]:
        """A key that sorts as versions do: a release after its pre-releases, numbers before words."""
        parts = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in self.pre)
        return self.numbers, not self.pre, parts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Version) and self.key() == other.key()

    def __hash__(self) -> int:
        return hash(self.key())


def declarations() -> Iterator[Declaration]:
    """All functions of this module."""
    yield function("semver", "string_to_semver", (STRING,), SEMVER, _semver)
    yield function("semver", "string_bool_to_semver", (STRING, BOOL), SEMVER, _semver)
    yield function("isSemver", "is_semver_string", (STRING,), BOOL, _is_semver)
    yield function("isSemver", "is_semver_string_bool", (STRING, BOOL), BOOL, _is_semver)
    yield member("isGreaterThan", "semver_is_greater_than", (SEMVER, SEMVER), BOOL, lambda a, b: _compare(a, b) > 0)
    yield member("isLessThan", "semver_is_less_than", (SEMVER, SEMVER), BOOL, lambda a, b: _compare(a, b) < 0)
    yield member("compareTo", "semver_compare_to", (SEMVER, SEMVER), INT, _compare)
    yield member("major", "semver_major", (SEMVER,), INT, lambda version: version.numbers[0])
    yield member("minor", "semver_minor", (SEMVER,), INT, lambda version: version.numbers[1])
    yield member("patch", "semver_patch", (SEMVER,), INT, lambda version: version.numbers[2])


def _compare(one: _Version, other: _Version) -> int:
    mine, theirs = one.key(), other.key()
    return (mine > theirs) - (mine < theirs)


def _is_semver(text: str, normalize: bool = False) -> bool:
    try:
        _semver(text, normalize)
    except EvaluationError:
        return False
    return True


def _semver(text: str, normalize: bool = False) -> _Version:
    if normalize:
        text = _normalized(text)
    if not text:
        raise EvaluationError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise EvaluationError("No Major.Minor.Patch elements found")
    major, minor = _number(parts[0], "Major"), _number(parts[1], "Minor")
    rest, plus, build = parts[2].partition("+")
    patch, dash, pre = rest.partition("-")
    number = _number(patch, "Patch")
    for part in build.split(".") if plus else ():
        if not part:
            raise EvaluationError("Build meta data is empty")
        if not _ALLOWED.fullmatch(part):
            raise EvaluationError(f"Invalid character(s) found in build meta data {_quoted(part)}")
    return _Version((major, minor, number), tuple(map(_pre_release, pre.split("."))) if dash else ())


def _number(text: str, word: str) -> int:
    if not text.isascii() or not text.isdigit():
        if not text:
            raise EvaluationError('strconv.ParseUint: parsing "": invalid syntax')
        raise EvaluationError(f"Invalid character(s) found in {word.lower()} number {_quoted(text)}")
    if len(text) > 1 and text[0] == "0":
        raise EvaluationError(f"{word} number must not contain leading zeroes {_quoted(text)}")
    return _unsigned(text)


def _unsigned(text: str) -> int:
    if len(text) > _MAX_DIGITS or int(text) >= 2**64:
        raise EvaluationError(f"strconv.ParseUint: parsing {_quoted(text)}: value out of range")
    return int(text)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _pre_release(part: str) -> str:
    if not part:
        raise EvaluationError("Prerelease is empty")
    if part.isdigit() and part.isascii():
        if len(part) > 1 and part[0] == "0":
            raise EvaluationError(f"Numeric PreRelease version must not contain leading zeroes {_quoted(part)}")
        _unsigned(part)
        return part
    if not _ALLOWED.fullmatch(part):
        raise EvaluationError(f"Invalid character(s) found in prerelease {_quoted(part)}")
    return part


def _normalized(text: str) -> str:
    """Without a leading v and zeroes, and with all three numbers."""
    parts = text.removeprefix("v").split(".", 2)
    for place, part in enumerate(parts):
        if len(part) > 1:
            bare = part.lstrip("0")
            parts[place] = bare if bare[:1].isdigit() else f"0{bare}"
    if len(parts) < 3 and re.search(r"[+\-]", parts[-1]):
        raise EvaluationError("short version cannot contain PreRelease/Build meta data")
    return ".".join([*parts, "0", "0"][: max(3, len(parts))])
