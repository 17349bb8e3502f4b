"""`-o json`: keys in one style, whatever the command, and a cluster that is told with its type.

Covers: kubewright.cli
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kubewright.cli.commands.cluster import _Status
from kubewright.cli.commands.doctor import _Finding
from kubewright.cli.projects import ProjectChanges
from kubewright.generate.crds.schema_changes import BreakingChange
from kubewright.generate.crds.stored_objects import InvalidObject

from .conftest import API, HOOK, output_of

CAMEL = re.compile("[a-z][a-zA-Z0-9]*")


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBEWRIGHT_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))


def keys_in(found: Any) -> Iterator[str]:
    """The keys of a JSON document, at any depth."""
    if isinstance(found, dict):
        yield from found
    for inner in found.values() if isinstance(found, dict) else found if isinstance(found, list) else ():
        yield from keys_in(inner)


async def told(folder: Path, *words: str) -> Any:
    """What a command prints with `-o json`."""
    return json.loads(await output_of((sys.executable, "-m", "kubewright.cli", *words, "-o", "json"), folder))


async def test_the_keys_of_every_document_are_in_one_style(tmp_path: Path) -> None:
    folder = tmp_path / "shop-operator"
    folder.mkdir()
    wrong = {}
    for words in (
        ("init", "--domain", "example.io"),
        (*API, "--kind", "Till"),
        (*HOOK, "--kind", "Till", "--defaulting"),
        ("edit", "--owner", "Me"),
        ("update",),
        ("generate",),
        ("generate", "--check"),
        ("version",),
        ("cluster", "down"),
        ("cluster", "status"),
    ):
        found = list(keys_in(await told(folder, *words)))
        wrong[words] = [key for key in found if not CAMEL.fullmatch(key)]

    assert {words: keys for words, keys in wrong.items() if keys} == {}


@pytest.mark.parametrize("struct", [ProjectChanges, BreakingChange, InvalidObject, _Status, _Finding])
def test_what_is_printed_is_declared_in_that_style(struct: type[msgspec.Struct]) -> None:
    assert all(CAMEL.fullmatch(field.encode_name) for field in msgspec.structs.fields(struct))


async def test_a_cluster_is_told_with_its_type_and_when_it_became_ready(tmp_path: Path) -> None:
    command = (sys.executable, "-m", "kubewright.cli", "cluster")
    try:
        started = await told(tmp_path, "cluster", "up", "--detach", "--no-pods")
        (listed,) = await told(tmp_path, "cluster", "status")
        table = await output_of((*command, "status"), tmp_path)
    finally:
        await output_of((*command, "down"), tmp_path)

    assert started == listed
    assert (listed["type"], listed["data"]) == ("embedded", None)
    assert datetime.fromisoformat(listed["readyAt"]).tzinfo is not None
    assert listed["processes"] == [{"name": "kubewright", "pid": listed["pid"]}]
    assert table.splitlines()[1].split()[:2] == ["default", "embedded"]
    assert all(CAMEL.fullmatch(key) for key in keys_in(listed))
