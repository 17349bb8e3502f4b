"""What a chapter of the kubectl script is made of.

A chapter is a list of steps that run one after the other in a namespace of their own, which two steps at the
beginning make and which nothing removes: a chapter says by its own commands what it deletes. The chapters are in the
modules `chapters_*`; `script` collects them.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ("Chapter", "Step", "ask", "do", "watch")


@dataclass(frozen=True, slots=True)
class Step:
    """One command."""

    command: str
    stdin: str = ""
    settles: bool = False
    """It only reads, and what it shows takes a moment: it is run again until both planes say the same."""
    until: str = ""
    """Of a step that settles or watches: what it has to say in the end."""
    hide: tuple[tuple[str, str], ...] = ()
    """More that differs from run to run: patterns and what they are shown as."""
    fails: bool = False
    """It is meant to be refused; every other step has to succeed."""
    unordered: bool = False
    """The order of the lines is nobody's promise."""
    watches: bool = False
    """It goes on until the chapter ends; it is then stopped, and what it said is compared."""
    exception: str = ""
    """The name of a known difference (see docs/embedded.md): the words are not compared, only the exit code is."""

    @property
    def arguments(self) -> list[str]:
        return shlex.split(self.command)


@dataclass(frozen=True, slots=True)
class Chapter:
    """Steps about one thing."""

    name: str
    steps: tuple[Step, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    """Files in the folder the commands run in."""

    @property
    def namespace(self) -> str:
        return f"chapter-{self.name}"

    @property
    def all_steps(self) -> tuple[Step, ...]:
        return (
            do(f"create namespace {self.namespace}"),
            # Asked again, for kubectl waits for one object that is not there yet, but gives up if there are two.
            ask(
                "wait --for=create serviceaccount/default configmap/kube-root-ca.crt --timeout=50s",
                until="crt condition",
            ),
            *self.steps,
        )


def do(
    command: str,
    stdin: str = "",
    *,
    hide: tuple[tuple[str, str], ...] = (),
    fails: bool = False,
    unordered: bool = False,
    exception: str = "",
) -> Step:
    """A command that is run once."""
    return Step(command, stdin, hide=hide, fails=fails, unordered=unordered, exception=exception)


def ask(
    command: str,
    until: str = "",
    *,
    hide: tuple[tuple[str, str], ...] = (),
    fails: bool = False,
    unordered: bool = False,
    exception: str = "",
) -> Step:
    """A command that only reads, run again until both say the same."""
    return Step(command, settles=True, until=until, hide=hide, fails=fails, unordered=unordered, exception=exception)


def watch(command: str, until: str) -> Step:
    """A command that goes on until it has said something."""
    return Step(command, until=until, watches=True)
