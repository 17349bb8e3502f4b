"""DeepDecoder: reads JSON that is nested as deep as an API server stores it.

msgspec stops at Python's recursion limit, a thousand levels; kube-apiserver takes ten thousand. A user who may create
one such object must not be able to keep an operator from reading all others, nor all others from being converted. So
what comes from a server is decoded with this. Used by `api`, `client`, `cache` and `webhooks`.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar, final

import msgspec

__all__ = ("DeepDecoder", "deeply")

T = TypeVar("T")

_LEVELS: Final = 11_000
"""More than Go's decoder takes. A level costs msgspec some hundred bytes of the stack, which has megabytes."""
_LOCK: Final = threading.RLock()
"""The limit is that of the process: of two threads the second would put back what the first has set."""


def deeply(call: Callable[[], T]) -> T:
    """The result of a call that walks through JSON as deep as an API server stores it."""
    with _LOCK:
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(limit + _LEVELS)
        try:
            return call()
        finally:
            sys.setrecursionlimit(limit)


@final
class DeepDecoder(Generic[T]):
    """A msgspec Decoder without the limit of Python. JSON that is deeper still is a `msgspec.DecodeError`."""

    __slots__ = ("_decode",)

    def __init__(self, wanted: Any = Any, *, dec_hook: Callable[[type[Any], Any], Any] | None = None) -> None:
        self._decode: Callable[[bytes | msgspec.Raw], T] = msgspec.json.Decoder(
            wanted, dec_hook=dec_hook, float_hook=float
        ).decode

    def decode(self, data: bytes | msgspec.Raw) -> T:  # hot
        """The value of a JSON text."""
        try:
            return self._decode(data)
        except RecursionError:
            try:
                return deeply(lambda: self._decode(data))
            except RecursionError:
                raise msgspec.DecodeError("it is nested too deep") from None
