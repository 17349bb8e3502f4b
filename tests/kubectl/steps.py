"""What a case of the kubectl script is made of.

A case is a list of steps that run one after the other in a namespace of their own. Two steps at the beginning create
the namespace, and nothing removes it: a case deletes what it wants deleted by its own commands. The modules `cases_*`
hold the cases; `script` collects them.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ("Case", "Step", "eventually", "run", "watch")


@dataclass(frozen=True, slots=True)
class Step:
    """One command."""

    command: str
    stdin: str = ""
    settles: bool = False
    """It only reads, and what it shows takes a moment: it runs again until both planes print the same."""
    until: str = ""
    """Of a step that settles or watches: what it has to print in the end."""
    hide: tuple[tuple[str, str], ...] = ()
    """More that differs from run to run: patterns and what they are shown as."""
    fails: bool = False
    """It is meant to be refused; every other step has to succeed."""
    unordered: bool = False
    """Kubernetes does not promise the order of the lines."""
    watches: bool = False
    """It goes on until the case ends; it is then stopped, and what it printed is compared."""
    exception: str = ""
    """The name of a known difference (see docs/embedded.md): the words are not compared, only the exit code is."""

    @property
    def arguments(self) -> list[str]:
        return shlex.split(self.command)


@dataclass(frozen=True, slots=True)
class Case:
    """Steps about one thing."""

    name: str
    steps: tuple[Step, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    """Files in the folder the commands run in."""

    @property
    def namespace(self) -> str:
        return f"case-{self.name}"

    @property
    def all_steps(self) -> tuple[Step, ...]:
        return (
            run(f"create namespace {self.namespace}"),
            # Repeated, for kubectl waits for one object that is not there yet, but gives up if there are two.
            eventually(
                "wait --for=create serviceaccount/default configmap/kube-root-ca.crt --timeout=50s",
                until="crt condition",
            ),
            *self.steps,
        )


def run(
    command: str,
    stdin: str = "",
    *,
    hide: tuple[tuple[str, str], ...] = (),
    fails: bool = False,
    unordered: bool = False,
    exception: str = "",
) -> Step:
    """A command that runs once."""
    return Step(command, stdin, hide=hide, fails=fails, unordered=unordered, exception=exception)


def eventually(
    command: str,
    until: str = "",
    *,
    hide: tuple[tuple[str, str], ...] = (),
    fails: bool = False,
    unordered: bool = False,
    exception: str = "",
) -> Step:
    """A command that only reads; it runs again until both planes print the same."""
    return Step(command, settles=True, until=until, hide=hide, fails=fails, unordered=unordered, exception=exception)


def watch(command: str, until: str) -> Step:
    """A command that goes on until it has printed something."""
    return Step(command, until=until, watches=True)
