"""Records the warnings of one request and writes the Warning headers of its response.

A client may cause as many warnings as its body has fields. As in kube-apiserver (`recorder` in
k8s.io/apiserver/pkg/endpoints/filters/warning.go) all of them together have 4,096 characters: when they are more, each
is cut to 256, and the rest is left out. `kinds.calls` and admission record them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, final

__all__ = ("WarningRecorder",)

_TOTAL: Final = 4 * 1024
_EACH: Final = 256


@final
class WarningRecorder:
    """The warnings of one request, each once."""

    __slots__ = ("_is_truncating", "_recorded", "_written")

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._recorded: dict[str, str] = {}
        """What to write of each warning."""
        self._written = 0
        self._is_truncating = False
        self.extend(texts)

    def __iter__(self) -> Iterator[str]:
        return iter(self._recorded.values())

    def __len__(self) -> int:
        return len(self._recorded)

    def extend(self, texts: Iterable[str]) -> None:
        """Record several."""
        for text in texts:
            self.add(text)

    def add(self, text: str) -> None:
        """Record a warning."""
        if (self._is_truncating and self._written >= _TOTAL) or not text or text in self._recorded:
            return
        if not self._is_truncating and self._written + len(text) > _TOTAL:
            self._is_truncating = True
            self._recorded = {whole: whole[:_EACH] for whole in self._recorded}
            self._written = sum(map(len, self._recorded.values()))
        kept = text[:_EACH] if self._is_truncating else text
        # A text that is left out of the response need not be remembered whole.
        self._recorded[text if len(text) <= _TOTAL else kept] = kept
        self._written += len(kept)

    def header(self) -> str:
        """The values of the Warning headers, one on each line; empty without warnings."""
        return "\n".join(f'299 - "{_quoted(text)}"' for text in self._recorded.values())


def _quoted(text: str) -> str:
    clean = "".join(character if character.isprintable() else " " for character in text)
    return clean.replace("\\", "\\\\").replace('"', '\\"')
