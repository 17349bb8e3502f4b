"""What a command has done, for programs: `-o json` prints it to standard output.

What is told to people goes to standard error in any case, so standard output has either one JSON document or nothing. A
command that fails says so with its exit code and a sentence on standard error; only checks print their findings then.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any, TypeVar

import click
import msgspec

__all__ = ("counted", "form_option", "print_json", "reported")

F = TypeVar("F", bound=Callable[..., Any])

form_option = click.option(
    "-o", "--output", "form", type=click.Choice(["text", "json"]), default="text", help="How to print what was done."
)


def counted(count: int, noun: str) -> str:
    """`1 kind`, `2 kinds`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def print_json(found: object) -> None:
    """One document on standard output."""
    click.echo(json.dumps(msgspec.to_builtins(found), indent=2))


def reported(command: Callable[..., object]) -> Callable[..., None]:
    """Give a command `-o json`: what it returns is printed then, unless that is None."""

    @form_option
    @functools.wraps(command)
    def run(*, form: str, **arguments: Any) -> None:
        found = command(**arguments)
        if form == "json" and found is not None:
            print_json(found)

    return run
