"""The output of kubectl in the form in which it is compared: without what differs from run to run.

Uids, versions, times, ages, addresses, ports, tokens and generated names are shown as words. Tables keep their columns
but not their widths, which follow from the length of such values. Events keep their words, but not their order and
count: which of two controllers writes first, and whether it repeats itself, is not promised.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ("Output", "normalized")

_SAFE = "bcdfghjklmnpqrstvwxz2456789"
_HASH = rf"[{_SAFE}]{{8,10}}"
_SUFFIX = rf"[{_SAFE}]{{5}}"
_AGE = r"(?:\d+d)?(?:\d+h)?(?:\d+m)?(?:\d+(?:\.\d+)?s)?"
_PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.MULTILINE), words)
    for pattern, words in (
        (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uid>"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z", "<time>"),
        (r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "<date>"),
        (r"eyJ[\w-]+\.[\w-]+\.[\w-]+", "<token>"),
        (r"\b(resourceVersion|nodePort)(\"?): ?\"?\d+\"?", r"\1\2: <number>"),
        (r"(?<=Resource Version:)( +)\d+", r"\1<number>"),
        (r"(?<=\\\"resourceVersion\\\":\\\")\d+", "<number>"),
        (r"/tmp/(LIVE|MERGED)-\d+", r"/tmp/\1"),
        (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ [+-]\d{4}", "<time>"),
        (r"(?<=https://127\.0\.0\.1:)\d+", "<port>"),
        (r"\b\d{1,3}(?:\.\d{1,3}){3}\b", "<address>"),
        (r"(?<=<address>:)\d+(?= was refused)", "<port>"),
        (r"(?<=:)3[0-2]\d{3}\b", "<port>"),
        (r"(?<=  )3[0-2]\d{3}(?=/TCP)", "<port>"),
        (r"\b[0-9a-f]{64}\b", "<digest>"),
        (rf"(?<=-){_HASH}-{_SUFFIX}\b", "<hash>-<suffix>"),
        (rf"(?<=pod-template-hash[:=]){_HASH}\b", "<hash>"),
        (rf"(?<=pod-template-hash: ){_HASH}\b", "<hash>"),
        (rf"(?<=hash: ){_HASH}\b", "<hash>"),
        (rf"(?<=hash=){_HASH}\b", "<hash>"),
        (rf"(?<=-){_HASH}(?=[ \"\\\n,\]-]|$)", "<hash>"),
        (rf"(?<=[a-z0-9]-){_SUFFIX}(?=[ \"\n:',\]]|$)", "<suffix>"),
    )
)
_AGE_CELL = re.compile(rf"(?<=  )(?!  ){_AGE}(?: ago)?(?=  |$)|(?<=\()\d\w+ ago(?=\))|^{_AGE}(?=  )")
_EVENT = re.compile(r" \(x\d+ over [^)]*\)")
_GAP = re.compile(r"(?<=\S)( {2,}|\t+ *)")

Output = tuple[int, str, str]
"""Exit code, standard output and standard error."""


def normalized(output: Output, *, hide: Iterable[tuple[str, str]] = (), unordered: bool = False) -> Output:
    """The same output with a placeholder for everything that differs from run to run."""
    code, out, err = output
    return code, _plain(out, hide, unordered), _plain(err, hide, unordered)


def _plain(text: str, hide: Iterable[tuple[str, str]], unordered: bool) -> str:
    for pattern, words in _PATTERNS:
        text = pattern.sub(words, text)
    for pattern_text, words in hide:
        text = re.sub(pattern_text, words, text, flags=re.MULTILINE)
    lines = [_line(line) for line in text.splitlines()]
    lines = _events_sorted(lines)
    if unordered:
        lines.sort()
    return "\n".join(lines)


def _line(line: str) -> str:
    line = _EVENT.sub("", line)
    line = _GAP.sub("  ", line.rstrip())
    return _AGE_CELL.sub(lambda match: "<age>" if match.group() else "", line)


def _events_sorted(lines: list[str]) -> list[str]:
    """The lines below each `Events:` of a description, sorted, each once."""
    result: list[str] = []
    events: list[str] | None = None
    for line in lines:
        if events is not None and line.startswith("  "):
            events.append(line)
            continue
        if events is not None:
            result.extend(_without_repeats(events))
        events = [] if line.startswith("Events:") else None
        result.append(line)
    if events is not None:
        result.extend(_without_repeats(events))
    return result


def _without_repeats(events: list[str]) -> list[str]:
    heads, rest = events[:2], events[2:]
    return [*heads, *sorted(set(rest))]
