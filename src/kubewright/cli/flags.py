"""Boolean flags as in kubebuilder: `--name`, `--name=true`, `--name=false`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

__all__ = ("yes_or_no",)

F = TypeVar("F", bound=Callable[..., Any])


def yes_or_no(name: str, *, default: bool | None, text: str) -> Callable[[F], F]:
    """A flag that also takes a value; `default` is its value if it is left out."""
    return click.option(name, is_flag=False, flag_value="true", type=bool, default=default, metavar="BOOL", help=text)
