"""The workflows: actions pinned by commit, no rights beyond need, and no target or Python that is not there.

Covers: kubewright
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.y*ml"))
# That of a new project, whose delimiters a workflow's own expressions do not have.
TEMPLATE = ROOT / "src/kubewright/scaffold/templates/project/workflow.yml.jinja"
EACH = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
PINNED = re.compile(r"^\s*(?:- )?uses: ([\w.-]+/[\w./-]+)@([0-9a-f]{40}) # (v\d+\.\d+\.\d+)$")


def workflow(path: Path) -> dict[Any, Any]:
    tree = yaml.safe_load(path.read_text())
    assert isinstance(tree, dict)
    return tree


def jobs(path: Path) -> dict[str, dict[str, Any]]:
    found = workflow(path)["jobs"]
    assert isinstance(found, dict)
    return found


def steps(path: Path) -> Iterator[dict[str, Any]]:
    for job in jobs(path).values():
        yield from job["steps"]


def uses_lines(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if re.match(r"\s*(- )?uses:", line)]


def made(path: Path) -> list[str]:
    """The targets of all `make` commands."""
    commands = "\n".join(step.get("run", "") for step in steps(path))
    return [word for line in re.findall(r"\bmake ([^\n;&|]*)", commands) for word in line.split() if "=" not in word]


def test_there_is_a_workflow_for_each_thing_that_is_checked() -> None:
    assert {path.name for path in WORKFLOWS} >= {"lint.yml", "test.yml", "docs.yml", "release.yml", "nightly.yml"}


@EACH
def test_every_action_is_pinned_by_a_commit_with_its_version_beside_it(path: Path) -> None:
    lines = uses_lines(path)

    assert [line for line in lines if not PINNED.match(line)] == []
    assert len(lines) == len([step for step in steps(path) if "uses" in step])


def test_an_action_is_the_same_in_all_workflows() -> None:
    pins: dict[str, set[tuple[str, str]]] = {}
    for path in (*WORKFLOWS, TEMPLATE):
        for line in uses_lines(path):
            found = PINNED.match(line)
            assert found is not None
            pins.setdefault(found[1], set()).add((found[2], found[3]))

    assert {action: pin for action, pin in pins.items() if len(pin) > 1} == {}


@EACH
def test_a_workflow_may_only_read_and_a_job_says_what_else_it_needs(path: Path) -> None:
    tree = workflow(path)

    assert tree["permissions"] == {"contents": "read"}
    assert "concurrency" in tree
    for name, job in jobs(path).items():
        assert "contents" not in job.get("permissions", {}), name
        assert job["timeout-minutes"] <= 90, name


@EACH
def test_a_checkout_keeps_no_credentials(path: Path) -> None:
    checkouts = [step for step in steps(path) if step.get("uses", "").startswith("actions/checkout@")]

    assert [step for step in checkouts if step.get("with", {}).get("persist-credentials") is not False] == []


@EACH
def test_no_command_holds_what_an_outsider_can_write(path: Path) -> None:
    """Expressions are pasted into a command before the shell reads it; a variable of the environment is not."""
    assert [step["run"] for step in steps(path) if "${{" in step.get("run", "")] == []


def test_the_matrix_has_every_python_that_is_promised() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    promised = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))

    matrix = jobs(ROOT / ".github/workflows/test.yml")["quick"]["strategy"]["matrix"]

    assert matrix["python"] == promised
    assert f">={promised[0]}" == project["requires-python"]


@EACH
def test_what_a_workflow_makes_is_in_the_makefile(path: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))

    assert path.stem not in {"lint", "test", "docs", "release", "nightly"} or made(path)
    assert set(made(path)) - targets == set()


@EACH
def test_files_that_a_workflow_names_are_there(path: Path) -> None:
    inputs = [
        value
        for step in steps(path)
        for name, value in step.get("with", {}).items()
        if name in {"cache-dependency-path", "go-version-file"}
    ]
    hashed = re.findall(r"hashFiles\('([^']+)'\)", path.read_text())

    assert [name for name in [*inputs, *hashed] if not any(ROOT.glob(name))] == []
