"""Comprehensions, compiled to loops: all, exists, exists_one, map, filter and their siblings.

A fold is recognised by its step, which only macros write, and becomes the Python loop it stands for; the budget is
looked at in every turn. Costs are those of the fold as written out: the accumulator is read and written in every turn
there. Errors in `all` and `exists` wait: another element may settle the matter without them. Called by `compiler`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from kubewright.cel.celtypes import CelType
from kubewright.cel.code import Code, Frame, Run, spend
from kubewright.cel.errors import CostExceeded, EvaluationError
from kubewright.cel.library.collections import insert
from kubewright.cel.values import Timestamp, Uint, no_overload, read

__all__ = ("Turns", "collect", "count_one", "gather", "quantify", "turns")

Turns = Callable[[Frame], Iterable[None]]
"""Goes over a range, putting each element into the frame before a turn."""

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


def turns(over: Code, kind: CelType, first: int, second: int) -> tuple[Turns, tuple[CelType | None, CelType | None]]:
    """How to go over a range, and for both variables the type of JSON they hold, if they do."""
    source = over.run
    json = over.json
    element = json.parameters[-1] if json is not None else None
    leaf = element if element is not None and element.shape is not None and element.shape.read else None
    keep = element if element is not None and element.converted and leaf is None else None
    is_map = kind.kind == "map"

    def go(frame: Frame) -> Iterable[None]:  # hot
        items = source(frame)
        if not second and not is_map and isinstance(items, list):
            for item in items:
                frame[first] = item if leaf is None else read(item, leaf)
                yield None
            return
        for key, item in _pairs(items):
            if second:
                frame[first] = key
                frame[second] = item if leaf is None else read(item, leaf)
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


def quantify(go: Turns, over: Code, test: Code, *, every: bool) -> Code:
    """`all` and `exists`: stop at the first element that settles it."""
    asked = 2 if every else 3
    each = asked + 1 + test.cost
    run_test = test.run

    def run(frame: Frame) -> bool:
        error: EvaluationError | None = None
        settled = False
        for _ in go(frame):
            if settled:
                frame[0] -= asked
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


def count_one(go: Turns, over: Code, test: Code) -> Code:
    """`exists_one`: look at all of them."""
    each, run_test = test.cost, test.run

    def run(frame: Frame) -> bool:
        count = 0
        error: EvaluationError | None = None
        for _ in go(frame):
            frame[0] -= each
            if frame[0] < 0:
                raise CostExceeded
            kept = _kept(run_test, frame)
            if isinstance(kept, EvaluationError):
                error = kept
            elif kept:
                frame[0] -= 2
                count += 1
        if error is not None:
            raise error
        return count == 1

    return Code(run, over.cost + 2)


def _kept(keep: Run | None, frame: Frame) -> bool | EvaluationError:
    """Whether an element is to be kept, or why that cannot be told: the last such reason is the one that is given."""
    if keep is None:
        return True
    try:
        value = keep(frame)
    except CostExceeded:
        raise
    except EvaluationError as error:
        return error
    return value if value is True or value is False else no_overload()


def collect(go: Turns, over: Code, keep: Code | None, element: Code) -> Code:
    """`map`, `filter` and `transformList`."""
    grown = 2 + (0 if element.kind == "constant" else 10 + element.cost)
    make = element.run

    def add(found: list[Any], frame: Frame) -> None:
        found.append(make(frame))

    return Code(_gathered(go, keep, grown, list, add), over.cost + 1)


def gather(go: Turns, over: Code, keep: Code | None, key: Run | None, value: Code) -> Code:
    """`transformMap`, and without a key `transformMapEntry`, whose value is a map to add."""
    grown = (2 if key is None else 3) + value.cost
    make = value.run

    def add(found: dict[Any, Any], frame: Frame) -> None:
        made = make(frame)
        insert(found, made if key is None else {key(frame): made})

    return Code(_gathered(go, keep, grown, dict, add), over.cost + 1)


def _gathered(
    go: Turns, keep: Code | None, grown: int, empty: Callable[[], Any], add: Callable[[Any, Frame], None]
) -> Run:
    asked = 0 if keep is None else keep.cost
    test = None if keep is None else keep.run

    def run(frame: Frame) -> Any:
        found = empty()
        error: EvaluationError | None = None
        for _ in go(frame):
            spend(frame, asked)
            kept = _kept(test, frame)
            if isinstance(kept, EvaluationError):
                error = kept
            elif kept and error is None:
                spend(frame, grown)
                add(found, frame)
        if error is not None:
            raise error
        return found

    return run
