"""How many values the body of one request may have, and how long a selector may be.

A value of two bytes, such as `{}`, takes a hundred bytes once it is decoded, and a write has several copies of it.
Bytes alone, which `http` limits, do not bound that. kube-apiserver has no such limit; no object near its own limit of
1.5 MiB in etcd comes close to this one. `decoding` counts JSON and YAML, `protobuf` what it decodes.
"""

from __future__ import annotations

from typing import Final

from kubewright.apiserver.wire.status_errors import StatusError, too_large

__all__ = ("MAX_SELECTOR", "MAX_VALUES", "check_json_values", "too_many_values")

MAX_VALUES: Final = 100_000
"""Members of objects, items of lists, and the objects and lists themselves."""
MAX_SELECTOR: Final = 64 * 1024
"""Characters of a selector, which is parsed, and compared with each object. kube-apiserver reads what its limit of a
request's head allows."""
_SHORTEST: Final = 2
"""Bytes of the shortest value, with the comma behind it."""
_PIECE: Final = 65_536


def too_many_values() -> StatusError:
    """413: the body has too many values."""
    return too_large(
        f"Request entity too large: the body has more than {MAX_VALUES} values, and this server reads no more;"
        " send it as several objects"
    )


def check_json_values(body: bytes) -> None:
    """Refuse a JSON text with too many values, before it is decoded.

    It may be malformed: a decoder reads it up to its first error, and up to there the count is right.
    """
    if len(body) <= MAX_VALUES * _SHORTEST or _separators(body) <= MAX_VALUES:
        return
    # Most of the commas may be inside strings, such as a file in a ConfigMap.
    if b"\\" in body:
        body = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    count = 0
    is_inside = False
    for start in range(0, len(body), _PIECE):
        parts = body[start : start + _PIECE].split(b'"')
        count += _separators(b"".join(parts[is_inside::2]))
        if count > MAX_VALUES:
            raise too_many_values()
        is_inside ^= len(parts) % 2 == 0


def _separators(text: bytes) -> int:
    """Each value but the first has a comma before it or an opening bracket around it."""
    return text.count(b",") + text.count(b"[") + text.count(b"{")
