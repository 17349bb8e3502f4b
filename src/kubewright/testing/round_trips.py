"""assert_round_trip: converting to another version and back loses nothing.

    def test_conversion_loses_nothing() -> None:
        assert_round_trip(CacheV1alpha1, CacheV1)

In both directions, with the converters that `@convert` declares, on objects made up from the schemas of the classes. It
tries the same series each time, so that a failure can be repeated; with hypothesis installed it searches first, and
shows the smallest object that does not come back. Annotations that a converter adds are no loss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.util import find_spec
from random import Random
from typing import Any, TypeVar

from kubewright.api.codec import to_tree
from kubewright.api.diff import merge_patch
from kubewright.api.resource import KubeObject, definition_of
from kubewright.testing.examples import example_of
from kubewright.webhooks.conversion.declarations import ConversionError, Converters, converters_from

__all__ = ("assert_round_trip",)

A = TypeVar("A", bound=KubeObject)
B = TypeVar("B", bound=KubeObject)


def assert_round_trip(
    old: type[A],
    new: type[B],
    *,
    examples: Iterable[A | B] = (),
    when: Callable[[Any], bool] | None = None,
    count: int = 100,
) -> None:
    """Fail with the object and the difference if an object of either class does not survive the way there and back.

    `examples` are tried first, whatever is made up. `when` says which objects to try, for rules that the schema cannot
    tell; if it lets none of a class through, that is a failure too. `count` objects are made up for each direction.
    """
    there, back = Converters(converters_from(old)), Converters(converters_from(new))
    given = list(examples)
    for start, converters, end, returning in ((old, there, new, back), (new, back, old, there)):

        def check(
            obj: KubeObject,
            *,
            converters: Converters = converters,
            end: type[KubeObject] = end,
            returning: Converters = returning,
        ) -> bool:
            if when is not None and not when(obj):
                return False
            _check(obj, converters, end, returning)
            return True

        tried = [check(example) for example in given if isinstance(example, start)]
        tried += _try_many(start, check, count)
        assert any(tried) or when is None or not count, (
            f"no {start.__name__} of {definition_of(start).api_version} was tried: when= lets none of those through "
            "that were made up; give some in examples=, or tell the class what they look like, as in Field(pattern=...)"
        )


def _check(obj: KubeObject, there: Converters, end: type[KubeObject], back: Converters) -> None:
    start, other = definition_of(type(obj)).api_version, definition_of(end).api_version
    before = to_tree(obj)
    try:
        middle = there.convert(obj, other)
        after = to_tree(back.convert(middle, start))
    except ConversionError as error:
        raise AssertionError(f"{error}\nthe object: {before}") from None
    for name in set(after["metadata"].get("annotations", {})) - set(before["metadata"].get("annotations", {})):
        del after["metadata"]["annotations"][name]
    if not after["metadata"].get("annotations", True):
        del after["metadata"]["annotations"]
    difference = merge_patch(before, after)
    assert not difference, (
        f"{obj.kind} does not come back from {other} to {start} as it was:\n"
        f"  the difference:  {difference}\n  the object:      {before}\n  in between:      {to_tree(middle)}"
    )


def _try_many(kind: type[KubeObject], check: Callable[[KubeObject], bool], count: int) -> list[bool]:
    """Whether each of the fixed series was tried; what a search comes across differs from run to run."""
    if count and _can_search():
        _search(kind, check, count)
    return [check(example_of(kind, Random(seed))) for seed in range(count)]


def _search(kind: type[KubeObject], check: Callable[[KubeObject], bool], count: int) -> None:
    import hypothesis
    from hypothesis import strategies

    @hypothesis.settings(
        max_examples=count, deadline=None, database=None, suppress_health_check=list(hypothesis.HealthCheck)
    )
    @hypothesis.given(strategies.randoms(use_true_random=False))
    def search(rng: Random) -> None:
        check(example_of(kind, rng))

    search()


def _can_search() -> bool:
    return find_spec("hypothesis") is not None
