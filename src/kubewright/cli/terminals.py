"""Text of a cluster on somebody's terminal: it cannot move the cursor, change the title or hide what stands beside it.

Every command prints what a cluster says through `visible`: anybody who may write an object chooses parts of it.
"""

from __future__ import annotations

__all__ = ("visible",)


def visible(text: str) -> str:
    """The text with each character that does not print, but for line breaks, as an escape such as `\\x1b`."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)
