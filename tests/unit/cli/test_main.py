"""Exit codes and messages of the command line, as a shell sees them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from kubewright._base.version import __version__
from kubewright.cli.root import root


def kubewright(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kubewright.cli", *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_version_is_printed() -> None:
    done = kubewright("--version")

    assert (done.returncode, done.stdout) == (0, f"kubewright {__version__}\n")


def test_help_lists_the_commands_without_loading_them() -> None:
    script = (
        "import sys; from kubewright.cli.main import _run; code = _run(['--help']); "
        "sys.exit(code or 10 * any(m in sys.modules for m in "
        "('rich', 'kubewright.cli.commands.cluster', 'cryptography')))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)

    assert done.returncode == 0
    assert "cluster Run a local Kubernetes control plane." in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "a.py", "--operator", "b.py"),
        ("nonsense",),
        ("cluster", "nonsense"),
        ("cluster", "up", "--version", "1.35"),
        ("cluster", "up", "--nonsense"),
    ],
)
def test_wrong_usage_is_exit_code_2_without_a_traceback(arguments: tuple[str, ...]) -> None:
    done = kubewright(*arguments)

    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("cluster", "kubeconfig"), "No cluster named default is running; start one with"),
        (("cluster", "status", "--name", "x"), "No cluster named x is running; start one with"),
        (("cluster", "down", "--name", "No Name"), "The cluster name 'No Name' cannot be used"),
        (("cluster", "up", "--real", "--version", "1.2"), "No patch of Kubernetes 1.2 is known"),
    ],
)
def test_failure_is_exit_code_1_and_one_sentence(tmp_path: Path, arguments: tuple[str, ...], sentence: str) -> None:
    done = kubewright(*arguments, KUBEWRIGHT_STATE=str(tmp_path), KUBEWRIGHT_CACHE=str(tmp_path))

    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith(sentence)
    assert len(done.stderr.splitlines()) == 1


def test_an_empty_status_is_an_empty_list(tmp_path: Path) -> None:
    done = kubewright("cluster", "status", "-o", "json", KUBEWRIGHT_STATE=str(tmp_path))

    assert (done.returncode, done.stdout.strip()) == (0, "[]")


def test_stopping_what_does_not_run_is_no_failure(tmp_path: Path) -> None:
    done = kubewright("cluster", "down", KUBEWRIGHT_STATE=str(tmp_path))

    assert (done.returncode, done.stderr) == (0, "No cluster named default is running.\n")


def test_binaries_that_cannot_be_had_are_said_in_one_line_when_asked_to(tmp_path: Path) -> None:
    environment = {
        "KUBEWRIGHT_CACHE": str(tmp_path),
        "KUBEBUILDER_ASSETS": "",
        "PATH": "/nonexistent",
        "https_proxy": "http://127.0.0.1:1",
        "no_proxy": "",
    }
    excused = kubewright("cluster", "binaries", "--or-say-why", **environment)
    failed = kubewright("cluster", "binaries", **environment)

    assert (excused.returncode, failed.returncode) == (0, 1)
    assert excused.stdout == failed.stdout == ""
    assert excused.stderr.splitlines()[-1].startswith("No etcd, kube-apiserver,")
    assert "cannot be downloaded (github.com: Connection refused)" in excused.stderr


def commands(group: click.Group, *words: str) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if not isinstance(command, click.Group) or command.invoke_without_command:
            yield " ".join((*words, name)), command
        if isinstance(command, click.Group):
            yield from commands(command, *words, name)


def test_every_command_whose_answer_a_program_may_want_gives_it_as_json() -> None:
    without = {name for name, command in commands(root) if not any("-o" in option.opts for option in command.params)}

    # These print something of their own that programs read, or run until they are stopped.
    assert without == {"cluster kubeconfig", "cluster reset", "completion", "dev", "run"}


@pytest.mark.parametrize("group", [(), ("cluster",), ("create",), ("generate",)], ids=" ".join)
def test_the_list_of_commands_says_what_each_is_for_without_being_cut(group: tuple[str, ...]) -> None:
    done = kubewright(*group, "--help")

    listed = done.stdout.partition("Commands:")[2]
    assert listed
    assert "..." not in listed
