"""Whether two selectors can select one and the same object: exactly, not by rule of thumb.

An object has for each label key one of infinitely many states: the label is absent, or it has some value. Terms about
different keys do not disturb each other, so two selectors overlap if and only if for every key there is a state that
satisfies all terms of both. `a=b` and `c Exists` overlap, since one object can have both labels. Pure.
"""

from collections import defaultdict
from collections.abc import Iterable

from kubewright import Selector

from sidecarset.selection import Selection

__all__ = ("can_share_a_pod", "overlap")


def can_share_a_pod(one: Selection, other: Selection) -> bool:
    """Whether there can be a pod that both select, in a namespace that both select."""
    return overlap(one.pods, other.pods) and overlap(one.namespaces, other.namespaces)


def overlap(one: Selector, other: Selector) -> bool:
    """Whether some set of labels is selected by both."""
    if one.selects_nothing or other.selects_nothing:
        return False
    terms: defaultdict[str, list[tuple[str, tuple[str, ...]]]] = defaultdict(list)
    for requirement in (*one.requirements, *other.requirements):
        terms[requirement.key].append((requirement.operator, requirement.values))
    return all(_can_be_absent(of_key) or _can_have_a_value(of_key) for of_key in terms.values())


def _can_be_absent(terms: Iterable[tuple[str, tuple[str, ...]]]) -> bool:
    return all(operator in ("notin", "!=", "!") for operator, _ in terms)


def _can_have_a_value(terms: Iterable[tuple[str, tuple[str, ...]]]) -> bool:
    allowed: set[str] | None = None  # any value
    refused: set[str] = set()
    for operator, values in terms:
        if operator == "!":
            return False
        if operator in ("in", "=", "=="):
            allowed = set(values) if allowed is None else allowed & set(values)
        elif operator in ("notin", "!="):
            refused.update(values)
    # Only finitely many values are refused, so without a list of allowed ones there is always one left.
    return allowed is None or bool(allowed - refused)
