"""How many values the body of one request may have, and how long a selector may be.

A value of two bytes, such as `{}`, takes a hundred bytes once it is decoded, and a write has several copies of it.
Bytes alone, which `http` limits, do not bound that. kube-apiserver has no such limit; no object near its own limit of
1.5 MiB in etcd comes close to this one. `decoding` counts JSON and YAML, `protobuf` what it decodes.
"""

from __future__ import annotations

from typing import Final

from kubewright._base.json_values import has_more_values
from kubewright.apiserver.wire.status_errors import StatusError, too_large

__all__ = ("MAX_SELECTOR", "MAX_VALUES", "check_json_values", "too_many_values")

MAX_VALUES: Final = 100_000
"""Members of objects, items of lists, and the objects and lists themselves."""
MAX_SELECTOR: Final = 64 * 1024
"""Characters of a selector, which is parsed, and compared with each object. kube-apiserver reads what its limit of a
request's head allows."""


def too_many_values() -> StatusError:
    """413: the body has too many values."""
    return too_large(
        f"Request entity too large: the body has more than {MAX_VALUES} values, and this server reads no more;"
        " send it as several objects"
    )


def check_json_values(body: bytes) -> None:
    """Refuse a JSON text with too many values, before it is decoded."""
    if has_more_values(body, MAX_VALUES):
        raise too_many_values()
