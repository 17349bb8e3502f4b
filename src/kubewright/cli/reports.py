"""`-o json`: a command's result on standard output, for programs.

Its keys are in camelCase, as those of Kubernetes are. Names of things are values, not keys: a list of objects that have
a name. Messages for people always go to standard error, so standard output has either one JSON document or nothing. A
command that fails has an exit code and a sentence on standard error; only checks print their findings then.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Collection
from typing import Any, Final, TypeVar

import click
import msgspec

__all__ = ("count_noun", "output_option", "print_json", "stale_sentence", "with_json_output")

_SHOWN: Final = 3
"""So many files are named in a sentence."""
F = TypeVar("F", bound=Callable[..., Any])

output_option = click.option(
    "-o",
    "--output",
    "output_format",
    type=click.Choice(["text", "json"]),
    default="text",
    help="How to print what was done.",
)


def count_noun(count: int, noun: str) -> str:
    """`1 kind`, `2 kinds`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def stale_sentence(stale: Collection[str]) -> str:
    """Which generated files are stale, and what to do."""
    shown = ", ".join(list(stale)[:_SHOWN])
    more = f" and {len(stale) - _SHOWN} more" if len(stale) > _SHOWN else ""
    verb = "is" if len(stale) == 1 else "are"
    return f"{shown}{more} {verb} not what the code says; run `kubewright generate`"


def print_json(found: object) -> None:
    """Print one document on standard output."""
    click.echo(json.dumps(msgspec.to_builtins(found), indent=2))


def with_json_output(command: Callable[..., object]) -> Callable[..., None]:
    """Give a command `-o json`: its result is printed then, unless it is None."""

    @output_option
    @functools.wraps(command)
    def run(*, output_format: str, **arguments: Any) -> None:
        found = command(**arguments)
        if output_format == "json" and found is not None:
            print_json(found)

    return run
