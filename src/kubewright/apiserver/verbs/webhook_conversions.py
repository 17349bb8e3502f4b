"""Decisions that need an object in another version, where a webhook has to be asked for it.

Who owns which field is decided by plain functions that do not wait (`fields.managed`), and which objects they need in
which versions shows only on the way: some of them are made there. So a decision is begun, stops at the first conversion
that is not known, and begins again when it is. It has no side effects, so it asks for the same things in the same
order and gets a step further each time. For kinds that need no webhook it runs once. Called by `writes`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, final

from kubewright.apiserver.kinds.resources import Strategy, Tree
from kubewright.apiserver.managedfields.field_manager import Convert
from kubewright.apiserver.managedfields.types import FieldType
from kubewright.apiserver.wire.responses import encode_json

__all__ = ("decided",)

T = TypeVar("T")
_Question = tuple[bytes, str]


@final
class _Unknown(Exception):
    """A conversion that has to be asked for first."""

    def __init__(self, tree: Tree, question: _Question) -> None:
        super().__init__(question[1])
        self.tree = tree
        self.question = question


async def decided(rules: Strategy, decide: Callable[[Convert], T]) -> T:
    """What `decide` returns, given a way to convert objects of the kind; `Refused` if the webhook does not do it."""
    if not rules.converts_slowly:
        return decide(rules.convert)
    answers: dict[_Question, tuple[Tree, FieldType] | None] = {}

    def convert(tree: Tree, api_version: str) -> tuple[Tree, FieldType]:
        question = encode_json(tree), api_version
        if question not in answers:
            raise _Unknown(tree, question)
        answer = answers[question]
        if answer is None:
            raise LookupError(api_version)
        return answer

    while True:
        try:
            return decide(convert)
        except _Unknown as unknown:
            answers[unknown.question] = await _asked(rules, unknown.tree, unknown.question[1])


async def _asked(rules: Strategy, tree: Tree, api_version: str) -> tuple[Tree, FieldType] | None:
    try:
        return await rules.convert_slowly(tree, api_version)
    except LookupError:
        return None  # a version that is no more
