"""New schemas checked against the objects of a cluster.

Covers: kubewright.generate.crds
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import pytest
from click.testing import CliRunner
from tests.planes import Plane

from kubewright import Client, Field, Resource, Rule, Spec
from kubewright.api.resource import KubeObject
from kubewright.cli.commands.generate import generate
from kubewright.cluster.install import install_crds
from kubewright.generate.crds.compatibility import breaking_changes
from kubewright.generate.crds.manifests import crd_for
from kubewright.generate.crds.stored_objects import (
    InvalidObject,
    StoredObjectsCheck,
    check_stored_objects,
    installed_crd,
)


class OldSpec(Spec):
    size: int = 1
    note: str | None = None
    mode: str = "fast"


class NewSpec(Spec, marker=Field(rules=[Rule(rule="self.size != 7", message="seven is taken")])):
    size: Annotated[int, Field(le=10)] = 1
    mode: str = "fast"
    zone: str = "a"


def made(spec: type[Spec], group: str, **facts: Any) -> type[KubeObject]:
    base: Any = Resource[spec, None]  # type: ignore[valid-type] # a class made at run time

    facts = {"group": group, "version": "v1", **facts}

    class Ledger(base, **facts):  # type: ignore[misc] # likewise
        pass

    found: type[KubeObject] = Ledger
    return found


async def test_each_object_that_would_not_survive_is_named(client: Client, namespace: str) -> None:
    group = f"stored-{uuid4().hex[:6]}.example.io"
    old, new = made(OldSpec, group), crd_for(made(NewSpec, group))
    await install_crds(client, old)
    for name, spec in {"big": OldSpec(size=11), "fine": OldSpec(size=3), "seven": OldSpec(size=7, note="x")}.items():
        fields: dict[str, Any] = {"spec": spec}
        await client.create(old.named(name, namespace, **fields))

    outcome = await check_stored_objects(client, new)

    assert outcome.objects == 3
    assert outcome.invalid == (
        InvalidObject(
            "Ledger",
            f"{namespace}/big",
            "spec.size: Invalid value: 11: spec.size in body should be less than or equal to 10",
        ),
        InvalidObject("Ledger", f"{namespace}/seven", "spec.note would be dropped: the new schema has no such field"),
        InvalidObject("Ledger", f"{namespace}/seven", "spec: Invalid value: seven is taken"),
    )
    present = await installed_crd(client, f"ledgers.{group}")
    assert present is not None
    assert [finding.path for finding in breaking_changes(present, new)] == [
        "v1 .spec",
        "v1 .spec.note",
        "v1 .spec.size",
    ]
    assert await check_stored_objects(client, present) == StoredObjectsCheck(3, ())


OPERATOR = """
from typing import Annotated
from kubewright import Field, Resource, Spec

class TrunkSpec(Spec):
    size: Annotated[int, Field(le={limit})] = 1

class Trunk(Resource[TrunkSpec, None], group="{group}", version="v1"):
    pass
"""


async def test_the_command_names_the_objects_and_fails(
    plane: Plane, client: Client, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group, word = f"trunks-{uuid4().hex[:6]}.example.io", f"trunk_operator_{uuid4().hex[:6]}"
    (tmp_path / f"{word}.py").write_text(OPERATOR.format(limit=9, group=group))
    await install_crds(client, old := made(OldSpec, group, kind="Trunk"))
    await client.create(old.named("oak", namespace, spec=OldSpec(size=12)))
    monkeypatch.setenv("KUBECONFIG", str(plane.kubeconfig))
    arguments = ["crds", "--operator", str(tmp_path / f"{word}.py"), "--against-cluster"]

    result = await asyncio.to_thread(CliRunner().invoke, generate, arguments)

    assert result.exit_code == 1
    assert f"Trunk {namespace}/oak: spec.size: Invalid value: 12" in result.stdout
    assert f"Trunk {namespace}/oak: spec.mode would be dropped" in result.stdout
    assert "Objects checked: 1." in result.stderr
    assert "problems found: 2" in result.stderr


async def test_a_kind_that_is_not_installed_has_no_objects(client: Client) -> None:
    assert await check_stored_objects(client, crd_for(made(NewSpec, "absent.example.io"))) == StoredObjectsCheck(0, ())


async def test_versions_that_nobody_serves_now_are_no_place_for_the_objects(client: Client) -> None:
    group = f"moved-{uuid4().hex[:6]}.example.io"
    await install_crds(client, made(OldSpec, group))

    (misfit,) = (await check_stored_objects(client, crd_for(made(NewSpec, group, version="v2")))).invalid

    assert misfit.problem == "the new CRD has none of the versions served now: v1"
