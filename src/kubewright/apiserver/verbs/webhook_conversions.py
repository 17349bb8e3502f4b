"""Conversions by webhook for functions that are not async.

`managedfields.field_manager` is pure and does not wait, but it needs objects in other versions, and some of these
objects it makes itself on the way. So a decision runs until it needs the first conversion that is not known, stops,
and runs again from the start once the webhook has converted. It has no side effects, so it needs the same conversions
in the same order and gets one further each time. For kinds without a conversion webhook it runs once. Called by
`field_tracking`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, final

from kubewright.apiserver.kinds.large_requests import off_loop
from kubewright.apiserver.kinds.resources import Strategy, Tree
from kubewright.apiserver.managedfields.field_manager import Convert
from kubewright.apiserver.managedfields.types import FieldType
from kubewright.apiserver.wire.responses import encode_json

__all__ = ("with_conversions",)

T = TypeVar("T")
_Conversion = tuple[bytes, str]


@final
class _Unknown(Exception):
    """A conversion that the webhook has to make first."""

    def __init__(self, tree: Tree, conversion: _Conversion) -> None:
        super().__init__(conversion[1])
        self.tree = tree
        self.conversion = conversion


async def with_conversions(strategy: Strategy, decide: Callable[[Convert], T], *, size: int = 0) -> T:
    """What `decide` returns, given a function that converts; raises `StatusError` if the webhook does not convert.

    `size` is that of the objects in bytes.
    """
    if not strategy.has_conversion_webhook:
        return await off_loop(size, lambda: decide(strategy.convert))
    known: dict[_Conversion, tuple[Tree, FieldType] | None] = {}

    def convert(tree: Tree, api_version: str) -> tuple[Tree, FieldType]:
        conversion = encode_json(tree), api_version
        if conversion not in known:
            raise _Unknown(tree, conversion)
        found = known[conversion]
        if found is None:
            raise LookupError(api_version)
        return found

    while True:
        try:
            return await off_loop(size, lambda: decide(convert))
        except _Unknown as unknown:
            known[unknown.conversion] = await _convert(strategy, unknown.tree, unknown.conversion[1])


async def _convert(strategy: Strategy, tree: Tree, api_version: str) -> tuple[Tree, FieldType] | None:
    try:
        return await strategy.convert_by_webhook(tree, api_version)
    except LookupError:
        return None  # a version that is no more
