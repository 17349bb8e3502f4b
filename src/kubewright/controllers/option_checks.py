"""Checks of what `@controller`, `Owned`, `Watch` and the sources are given: each mistake is refused where it is made.

A type checker finds most of these. Without one, a wrong value would be accepted and raise much later, in the queue or
in a worker, far from the line that is wrong; or it would silently never do anything. `declaration`, `sources` and
`reconcile` call these; they change nothing.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from typing import Any

from kubewright.api.names import dns1123_label_errors, qualified_name_errors
from kubewright.api.resource import KubeObject, definition_of
from kubewright.errors import ConfigError

__all__ = (
    "check_controller_name",
    "check_delay",
    "check_finalizer",
    "check_functions",
    "check_mapper",
    "check_predicate",
    "check_rate_limit",
    "check_seconds",
    "check_source",
    "check_whole_number",
    "checked_kind",
    "checked_signature",
)


def checked_kind(given: Any, *, where: str = "@controller") -> Any:
    """The class of a kind. ConfigError for what people give instead of one."""
    if isinstance(given, type) and issubclass(given, KubeObject):
        definition_of(given)
        return given
    if where.startswith("@") and inspect.isfunction(given):
        raise ConfigError(f"{where} above {given.__name__} does not say what it is for; write {where}(Kind)")
    if isinstance(given, KubeObject):
        raise ConfigError(f"{where} takes classes of kinds, and was given an object; write {type(given).__name__}")
    shown = given.__name__ if isinstance(given, type) else repr(given)
    raise ConfigError(f"{where} takes classes of kinds, and {shown} is none; import the class, or see Dynamic")


def check_controller_name(name: object) -> None:
    if not isinstance(name, str):
        raise ConfigError(f"controller name {name!r} is no string; write it like name='cache'")
    if problems := dns1123_label_errors(name):
        raise ConfigError(f"controller name {name!r} cannot be used: {problems[0]}")


def check_whole_number(where: str, option: str, value: object) -> None:
    """At least 1."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise ConfigError(f"{where}: {option} is {value!r}; give a whole number, as in {option}=4")
    if value < 1:
        raise ConfigError(f"{where}: {option} is {value}; give at least 1")


def check_seconds(where: str, option: str, value: object, *, least: float = 0.0) -> None:
    """A number of seconds, at least so many, and above 0."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        raise ConfigError(f"{where}: {option} is {value!r}; give seconds as a number, as in {option}=30")
    if value < least or value <= 0:
        bound = f"at least {least:g}, where the waits begin" if least else "above 0"
        raise ConfigError(f"{where}: {option} is {value:g}; it is in seconds, and {bound}")


def check_delay(where: str, option: str, value: object) -> None:
    """A number of seconds. Below 0 is the past, which a time that is computed may be: at once."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        raise ConfigError(f"{where}({option}={value!r}): give seconds as a number, as in {option}=30")


def check_rate_limit(where: str, value: object) -> None:
    numbers = value if isinstance(value, tuple | list) else ()
    if len(numbers) != 2 or not all(isinstance(number, int | float) and number > 0 for number in numbers):
        raise ConfigError(
            f"{where}: rate_limit is {value!r}; give retries per second, and how many at once, as in "
            "rate_limit=(10, 100)"
        )


def check_finalizer(where: str, name: object) -> None:
    problems = ["is no string"] if not isinstance(name, str) else qualified_name_errors(name)
    if problems or "/" not in str(name):
        why = f": {problems[0]}" if problems else ""
        raise ConfigError(
            f"{where}: the finalizer {name!r} cannot be used{why}; write it like shop.example.io/clean-up"
        )


def check_mapper(where: str, given: object) -> None:
    """A function of a change, or what `by_index` returns."""
    if not (callable(given) or hasattr(given, "bind")) or isinstance(given, type):
        raise ConfigError(
            f"{where}: the mapper is {given!r}; give a function that returns the keys to reconcile for a change, "
            "for_each(...) or by_index(...)"
        )
    if not callable(given):
        return
    name = getattr(given, "__name__", repr(given))
    if inspect.iscoroutinefunction(given):
        raise ConfigError(f"{where}: the mapper {name} is async; make it plain, and look things up in the cache")
    try:
        inspect.signature(given).bind(None)
    except ValueError:  # written in C: it says nothing about its arguments
        return
    except TypeError as exc:
        raise ConfigError(
            f"{where}: the mapper {name} gets one argument, a change: {exc}; call it if it makes a mapper"
        ) from None


def check_predicate(where: str, given: object, *, factories: tuple[object, ...]) -> None:
    """Something that is called with a change; not what makes one."""
    if given in factories:
        name = getattr(given, "__name__", given)
        raise ConfigError(f"{where}: when={name} is what makes a predicate; call it, as in when={name}(...)")
    if not callable(given) or isinstance(given, type):
        raise ConfigError(f"{where}: when is {given!r}; give a predicate, as in when=generation_changed")


def check_functions(where: str, option: str, given: object) -> None:
    """A mapping from names to functions of an object."""
    if not isinstance(given, Mapping):
        raise ConfigError(
            f"{where}: {option} is a mapping from names to functions; write {option}={{'name': function}}"
        )
    for name, function in given.items():
        if not isinstance(name, str) or not callable(function):
            raise ConfigError(
                f"{where}: {option} has {name!r}: {function!r}; give a name, and a function that gets an object"
            )


def check_source(where: str, given: object) -> None:
    if isinstance(given, type):
        raise ConfigError(
            f"{where}: sources has the class {given.__name__}; give an object, as in {given.__name__}(...)"
        )
    for method in ("run", "wait_for_sync"):
        if not inspect.iscoroutinefunction(getattr(given, method, None)):
            raise ConfigError(
                f"{where}: sources has {given!r}, which is no source: it has no async method {method}; "
                "give a Channel, a Timer, or see Source"
            )


def checked_signature(
    where: str, function: Any, *, gets: str = "the object and its Context", form: str = "obj, ctx"
) -> Any:
    """A function that can be called with these arguments, and returns."""
    what = getattr(function, "__name__", "")
    if not callable(function):
        raise ConfigError(f"{where}: {function!r} is no function; write it like async def reconcile({form})")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ConfigError(f"{where}: {what} yields, so that calling it does nothing; return instead")
    try:
        inspect.signature(function).bind(*[None] * len(form.split(",")))
    except ValueError:  # written in C: it says nothing about its arguments
        return function
    except TypeError as exc:
        name = what if what.isidentifier() else "reconcile"
        count = {1: "one argument", 2: "two arguments"}[len(form.split(","))]
        raise ConfigError(
            f"{where}: {what or 'the reconciler'} gets {count}, {gets}: {exc}; write it like async def {name}({form})"
        ) from None
    return function
