"""The rows of custom resources, by the additionalPrinterColumns of their CRD.

A column is a type and a JSONPath. The first result is printed; no result, or one of another type, is null. A column
with an invalid path and those after it are left out. It follows
k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor/tableconvertor.go.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

from kubewright.api.go_text import number_text
from kubewright.api.times import parse_time
from kubewright.apiserver.builtin.trees import Tree
from kubewright.apiserver.kinds.resources import Column
from kubewright.apiserver.printers.ages import timestamp_since
from kubewright.apiserver.printers.jsonpath import EvaluationError, InvalidPathError, Path, parse_path
from kubewright.apiserver.printers.texts import name_of
from kubewright.errors import DecodeError

__all__ = ("custom_cells", "valid_columns")

_NO_VALUE: Final = "<no value>"
_LIMIT: Final = 2**63
_HTML: Final = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def valid_columns(columns: Sequence[Column]) -> Sequence[Column]:
    """The columns before the first with an invalid path."""
    for index, column in enumerate(columns):
        if _path(column.json_path) is None:
            return columns[:index]
    return columns


def custom_cells(columns: Sequence[Column], tree: Tree, now: datetime) -> list[Any]:
    """The row of a custom resource."""
    found: list[Any] = [name_of(tree)]
    for column in columns:
        path = _path(column.json_path)
        if path is None:
            break
        found.append(_cell(path, column.type, tree, now))
    return found


@lru_cache(maxsize=4096)
def _path(text: str) -> Path | None:
    try:
        return parse_path(text)
    except InvalidPathError:
        return None


def _cell(path: Path, kind: str, tree: Tree, now: datetime) -> Any:
    try:
        results = path.find(tree)
    except EvaluationError:
        return None
    if not results:
        return None
    value = results[0]
    match kind:
        case "string":
            return _text(value)
        case "integer":
            return _integer(value) if _is_number(value) else None
        case "number":
            return _float(value) if _is_number(value) else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case "date":
            return _age(value, now) if isinstance(value, str) else None
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return _NO_VALUE
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return number_text(value)
    if isinstance(value, bytes):  # one byte of a string, by a wildcard: Go prints its number
        return str(value[0])
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False).translate(_HTML)


def _integer(value: float) -> int:
    """The number without its fraction; one out of range becomes what Go's conversion to int64 makes of it."""
    whole = int(value)
    return whole if -_LIMIT <= whole < _LIMIT else -_LIMIT


def _float(value: float) -> float:
    """The number as Go encodes a float64: without a point if it has no fraction."""
    found = float(value)
    return int(Decimal(repr(found))) if found.is_integer() and abs(found) < 1e21 else found


def _age(value: str, now: datetime) -> str:
    if value not in ("", "null"):
        try:
            parse_time(value)
        except DecodeError:
            return "<invalid>"
        return timestamp_since(value, now)
    return "<unknown>"
