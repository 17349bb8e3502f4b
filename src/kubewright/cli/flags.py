"""Flags with values of their own form: `--name`, `--name=true`, `--name=false` as in kubebuilder; and lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar, final

import click

__all__ = ("NAMES", "yes_or_no")

F = TypeVar("F", bound=Callable[..., Any])


def yes_or_no(name: str, *, default: bool | None, text: str) -> Callable[[F], F]:
    """A flag that also takes a value; `default` is its value if it is left out."""
    return click.option(name, is_flag=False, flag_value="true", type=bool, default=default, metavar="BOOL", help=text)


@final
class _Names(click.ParamType[tuple[str, ...]]):
    """Names with commas between them."""

    name = "a,b"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        words = value.split(",") if isinstance(value, str) else value
        return tuple(dict.fromkeys(word.strip() for word in words if word.strip()))


NAMES: Final = _Names()
