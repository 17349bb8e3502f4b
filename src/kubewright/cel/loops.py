"""Comprehensions, compiled to loops: all, exists, exists_one, map, filter, transformList, transformMap.

A comprehension is recognised by its step, which only macros make, and becomes the Python loop it means; every iteration
checks the budget. Costs are those of cel-go's generic fold, which reads and writes the accumulator in every iteration.
An error in `all` and `exists` is kept until the end: another element may decide the result. `compiler` calls this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from kubewright.cel.celtypes import CelType
from kubewright.cel.code import Code, Frame, Run, spend
from kubewright.cel.errors import CostExceeded, EvaluationError
from kubewright.cel.library.collections import insert
from kubewright.cel.values import Timestamp, Uint, from_json, no_overload

__all__ = ("Iteration", "collect", "count_one", "gather", "iterate", "quantify")

Iteration = Callable[[Frame], Iterable[None]]
"""Iterates over a range and puts each element into the frame."""

_GO_TYPES: Final = {
    bool: "types.Bool",
    int: "types.Int",
    Uint: "types.Uint",
    float: "types.Double",
    str: "types.String",
    bytes: "types.Bytes",
    type(None): "types.Null",
    Timestamp: "types.Timestamp",
}


def iterate(
    over: Code, kind: CelType, first: int, second: int
) -> tuple[Iteration, tuple[CelType | None, CelType | None]]:
    """The iteration over a range, and the JSON types of both variables if they need conversion."""
    source = over.run
    json = over.json
    element = json.parameters[-1] if json is not None else None
    leaf = element if element is not None and element.details is not None and element.details.conversion else None
    keep = element if element is not None and element.needs_conversion and leaf is None else None
    is_map = kind.kind == "map"

    def go(frame: Frame) -> Iterable[None]:  # hot
        items = source(frame)
        if not second and not is_map and isinstance(items, list):
            for item in items:
                frame[first] = item if leaf is None else from_json(item, leaf)
                yield None
            return
        for key, item in _pairs(items):
            if second:
                frame[first] = key
                frame[second] = item if leaf is None else from_json(item, leaf)
            else:
                frame[first] = item if isinstance(items, list) else key
            yield None

    if second:
        return go, (None, keep)
    return go, (None if is_map else keep, None)


def _pairs(items: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(items, list):
        return enumerate(items)
    if isinstance(items, dict):
        return items.items()
    go_type = _GO_TYPES.get(type(items), "types.Value")
    raise EvaluationError(f"got '{go_type}', expected iterable type")


def quantify(go: Iteration, over: Code, test: Code, *, every: bool) -> Code:
    """`all` and `exists`: stop at the first element that decides the result."""
    condition_cost = 2 if every else 3
    each = condition_cost + 1 + test.cost
    run_test = test.run

    def run(frame: Frame) -> bool:
        error: EvaluationError | None = None
        settled = False
        for _ in go(frame):
            if settled:
                frame[0] -= condition_cost
                break
            frame[0] -= each
            if frame[0] < 0:
                raise CostExceeded
            try:
                value = run_test(frame)
                if value is not True and value is not False:
                    raise no_overload()
            except CostExceeded:
                raise
            except EvaluationError as caught:
                error = error or caught
            else:
                settled = value is not every
        if settled:
            return not every
        if error is not None:
            raise error
        return every

    return Code(run, over.cost + 1)


def count_one(go: Iteration, over: Code, test: Code) -> Code:
    """`exists_one`: evaluates all elements."""
    each, run_test = test.cost, test.run

    def run(frame: Frame) -> bool:
        count = 0
        error: EvaluationError | None = None
        for _ in go(frame):
            left = frame[0]
            frame[0] -= each
            if frame[0] < 0:
                raise CostExceeded
            kept = _evaluate_filter(run_test, frame)
            frame[0] -= frame[0] == left  # as in `_accumulate`
            if isinstance(kept, EvaluationError):
                error = kept
            elif kept:
                frame[0] -= 2
                count += 1
        if error is not None:
            raise error
        return count == 1

    return Code(run, over.cost + 2)


def _evaluate_filter(keep: Run | None, frame: Frame) -> bool | EvaluationError:
    """Whether to keep an element, or the error; the last error of a loop is reported."""
    if keep is None:
        return True
    try:
        value = keep(frame)
    except CostExceeded:
        raise
    except EvaluationError as error:
        return error
    return value if value is True or value is False else no_overload()


def collect(go: Iteration, over: Code, keep: Code | None, element: Code) -> Code:
    """`map`, `filter` and `transformList`."""
    step_cost = 2 + (0 if element.kind == "constant" else 10 + element.cost)
    make = element.run

    def add(found: list[Any], frame: Frame) -> None:
        found.append(make(frame))

    return Code(_accumulate(go, keep, step_cost, list, add), over.cost + 1)


def gather(go: Iteration, over: Code, keep: Code | None, key: Run | None, value: Code) -> Code:
    """`transformMap`, and without a key `transformMapEntry`, whose value is a map to add."""
    step_cost = (2 if key is None else 3) + value.cost
    make = value.run

    def add(found: dict[Any, Any], frame: Frame) -> None:
        made = make(frame)
        insert(found, made if key is None else {key(frame): made})

    return Code(_accumulate(go, keep, step_cost, dict, add), over.cost + 1)


def _accumulate(
    go: Iteration, keep: Code | None, step_cost: int, empty: Callable[[], Any], add: Callable[[Any, Frame], None]
) -> Run:
    condition_cost = 0 if keep is None else keep.cost
    test = None if keep is None else keep.run

    def run(frame: Frame) -> Any:
        found = empty()
        error: EvaluationError | None = None
        for _ in go(frame):
            left = frame[0]
            spend(frame, condition_cost)
            kept = _evaluate_filter(test, frame)
            if test is not None:
                # A constant condition costs nothing on the API server, however often it is tested. Here it costs 1.
                frame[0] -= frame[0] == left
            if isinstance(kept, EvaluationError):
                error = kept
            elif kept and error is None:
                spend(frame, step_cost)
                add(found, frame)
        if error is not None:
            raise error
        return found

    return run
