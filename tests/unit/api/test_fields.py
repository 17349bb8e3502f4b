"""Markers: one that does not exist, or has a value of the wrong type, is refused where it is written."""

from __future__ import annotations

from typing import Any

import pytest

from kubewright import Field
from kubewright.errors import SchemaError


@pytest.mark.parametrize(
    ("given", "markers", "words"),
    [
        ((), {"minimum": 1}, "Field has no minimum; did you mean ge?"),
        ((), {"minLength": 1}, "Field has no minLength; did you mean min_length?"),
        ((), {"patern": "a"}, "Field has no patern; did you mean pattern?"),
        ((), {"colour": "red"}, "Field has no colour; it has ge, gt, le"),
        ((1,), {}, r"Field\(1\) does not say what that is; write it like Field\(ge=0\)"),
        ((), {"ge": "1"}, r"Field\(ge='1'\): give a number, as in ge=1"),
        ((), {"max_items": 1.5}, r"Field\(max_items=1.5\): give a number, as in max_items=1"),
    ],
)
def test_a_marker_that_cannot_be_is_refused(given: tuple[Any, ...], markers: dict[str, Any], words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        Field(*given, **markers)
