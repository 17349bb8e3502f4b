"""IntOrString: fields that hold a number or a text, such as `maxUnavailable: 1` or `maxUnavailable: "25%"`.

A plain union, so it needs no decoding or unwrapping. The two functions interpret percentages (apimachinery:
pkg/util/intstr/intstr.go). A port is the other use (`80` or `"http"`); only its pod knows what a port's name means.
"""

from __future__ import annotations

import re
from typing import Final, TypeAlias

from kubewright.errors import DecodeError

__all__ = ("IntOrString", "is_percent", "scaled_value")

IntOrString: TypeAlias = int | str

_PERCENT: Final = re.compile(r"([+-]?[0-9]{1,18})%")


def is_percent(value: IntOrString) -> bool:
    """Whether it is a whole percentage, such as `"25%"`."""
    return isinstance(value, str) and _PERCENT.fullmatch(value) is not None


def scaled_value(value: IntOrString, total: int, *, round_up: bool) -> int:
    """A number as it is, or a percentage of `total`, rounded."""
    if isinstance(value, int):
        return value
    match = _PERCENT.fullmatch(value)
    if match is None:
        raise DecodeError(f"{value!r} is neither a whole number nor a percentage; write 3 or '25%'")
    share = int(match[1]) * total
    return -(-share // 100) if round_up else share // 100
