"""Validates the index lists of indexed Jobs, such as `1,3-5,7`."""

from __future__ import annotations

__all__ = ("index_error", "index_spans")


def index_error(text: str, completions: int) -> tuple[int, str]:
    """The number of indexes, and the error; one of both is empty."""
    if not text:
        return 0, ""
    last: int | None = None
    total = 0
    for part in text.split(","):
        span, why = _span(part, completions)
        if why:
            return 0, why
        if last is not None and last >= span[0]:
            return 0, f"non-increasing order, previous: {last}, current: {span[0]}"
        total += span[1] - span[0] + 1
        last = span[1]
    return total, ""


def index_spans(text: str, completions: int) -> list[tuple[int, int]]:
    """The first and last index of each valid interval."""
    spans = (_span(part, completions) for part in text.split(",") if text)
    return [span for span, why in spans if not why]


def _span(part: str, completions: int) -> tuple[tuple[int, int], str]:
    ends = part.split("-")
    nothing = (0, 0)
    if len(ends) > 2:
        rule = "violates the requirement that an index interval can have at most two parts separated by '-'"
        return nothing, f'the fragment "{part}" {rule}'
    numbers: list[int] = []
    for end in ends:
        if not end.isascii() or not end.isdigit():
            return nothing, f'cannot convert string to integer for index: "{end}"'
        if int(end) >= completions:
            return nothing, f'too large index: "{end}"'
        numbers.append(int(end))
    if len(numbers) == 2 and numbers[0] >= numbers[1]:
        return nothing, f"non-increasing order, previous: {numbers[0]}, current: {numbers[1]}"
    return (numbers[0], numbers[-1]), ""
