"""Regular expressions in definitions."""

from __future__ import annotations

from tests.builders.definitions import definition_tree
from tests.security.harness.attack import Target, attack, many
from tests.security.harness.exchange import Answer

_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


async def _pattern(on: Target, plural: str, pattern: str) -> Answer:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}}
    return await on.post(_CRDS, definition_tree(plural, "patterns.io", schema=schema))


async def _object(on: Target, plural: str, text: str) -> Answer:
    path = f"/apis/patterns.io/v1/namespaces/edited/{plural}"
    kind = plural.capitalize()
    return await on.post(path, {"apiVersion": "patterns.io/v1", "kind": kind, "metadata": {"name": "a"}, "a": text})


@attack(by="admin", spoils=True)
async def nested_repetition(on: Target) -> Answer:
    """A pattern with exponentially many ways to fail, and forty letters."""
    await _pattern(on, "nesteds", "^(a+)+$")
    return await _object(on, "nesteds", "a" * 40 + "b")


@attack(by="admin", spoils=True)
async def overlapping_alternatives(on: Target) -> Answer:
    """The same with alternatives."""
    await _pattern(on, "alternatives", "^(a|a|aa)+$")
    return await _object(on, "alternatives", "a" * 60 + "b")


@attack(by="admin", spoils=True)
async def adjacent_repetitions(on: Target) -> Answer:
    """A pattern with polynomially many ways to fail, and a million letters."""
    await _pattern(on, "adjacents", "a*a*a*a*a*b")
    return await _object(on, "adjacents", "a" * 1_000_000)


@attack(by="admin", spoils=True)
async def a_search_without_anchor(on: Target) -> Answer:
    """A pattern that is tried at each place of a long text."""
    await _pattern(on, "searches", "[a-z]+[0-9]$")
    return await _object(on, "searches", "a" * 1_000_000)


@attack(by="admin")
async def a_long_pattern(on: Target) -> Answer:
    """A pattern of a megabyte."""
    return await _pattern(on, "longs", "a?" * 1_000_000)


@attack(by="admin")
async def a_deep_pattern(on: Target) -> Answer:
    """A pattern of a million groups in each other."""
    return await _pattern(on, "deeps", "(" * 1_000_000 + ")" * 1_000_000)


@attack(by="admin")
async def large_repetitions(on: Target) -> Answer:
    """Repetitions of repetitions of repetitions."""
    return await _pattern(on, "counts", "((((a{1,1000}){1,1000}){1,1000}){1,1000})")


@attack(by="admin")
async def many_classes(on: Target) -> Answer:
    """A character class of a hundred thousand ranges, and Unicode classes."""
    return await _pattern(
        on, "classes", "[" + "".join(chr(n) for n in range(0x4E00, 0x9000)) * 4 + "]+" + r"\pL" * 9000
    )


@attack(by="admin")
async def many_patterns(on: Target) -> Answer:
    """A definition with fifty thousand patterns."""
    fields = {f"f{n}": {"type": "string", "pattern": f"^a{n}$"} for n in range(many(52, values=3))}
    return await on.post(_CRDS, definition_tree("many", "patterns.io", schema={"type": "object", "properties": fields}))
