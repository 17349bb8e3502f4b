"""Decorators with options: an option that does not exist is refused with the name of the nearest that does.

Python says of a wrong keyword only that it is unexpected. `@controller` and the decorators of webhooks are written by
hand in every operator, and mostly without a type checker at first. Called once for each of those decorators.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from kubewright.errors import ConfigError

__all__ = ("with_option_names",)

P = ParamSpec("P")
R = TypeVar("R")


def with_option_names(decorator: Callable[P, R]) -> Callable[P, R]:
    """The decorator, which names the nearest option for one that it does not have."""
    options = [each.name for each in inspect.signature(decorator).parameters.values() if each.kind is each.KEYWORD_ONLY]

    @wraps(decorator)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        for given in kwargs:
            if given not in options and given != "kind":
                raise ConfigError(f"@{decorator.__name__} has no option {given}; {_nearest(given, options)}")
        return decorator(*args, **kwargs)

    return checked


def _nearest(given: str, options: list[str]) -> str:
    from difflib import get_close_matches  # only needed for the error message

    close = get_close_matches(given, options, n=1)
    return f"did you mean {close[0]}?" if close else f"it has {', '.join(options)}"
