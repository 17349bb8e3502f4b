"""What `kubewright run` leaves behind when it is killed, and who finds it: the next start, `doctor`, `uninstall`.

Covers: kubewright.cli, kubewright.webhooks, kubewright.manager
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest
from tests.planes import Plane

from kubewright import Client, Dynamic, Manager, ManagerOptions
from kubewright.errors import ServerError
from kubewright.webhooks.registration.registrar import REGISTERED_LABEL
from kubewright.webhooks.registration.targets import CRD, MUTATING, VALIDATING

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

OPERATOR = '''
from kubewright import Context, Resource, Spec, Status, controller, convert, default, validate

class OldParcel(Resource[Spec, Status], group="{name}.example.io", version="v1", kind="Parcel", storage=False):
    """A parcel."""

class Parcel(Resource[Spec, Status], group="{name}.example.io", version="v2"):
    """A parcel."""

@convert(OldParcel, Parcel)
def up(old: OldParcel) -> Parcel:
    return Parcel()

@convert(Parcel, OldParcel)
def down(new: Parcel) -> OldParcel:
    return OldParcel()

@default(Parcel)
def fill(parcel: Parcel) -> None: ...

@validate(Parcel, on=("create", "update", "delete"))
def check(parcel: Parcel) -> None: ...

@controller(Parcel)
async def reconcile(parcel: Parcel, ctx: Context) -> None: ...
'''


class Project:
    """The folder of an operator, and the commands in it."""

    def __init__(self, folder: Path, name: str, plane: Plane) -> None:
        self.folder = folder
        self.name = name
        self.plane = plane
        self.crd = f"parcels.{name}.example.io"
        self.parcel = Dynamic(f"{name}.example.io/v2", "Parcel", plural="parcels", namespaced=True)

    async def start(self, *arguments: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            sys.executable, "-m", "kubewright.cli", *arguments, "--kubeconfig", str(self.plane.kubeconfig),
            cwd=self.folder, env={**os.environ, "KUBEWRIGHT_WEBHOOK_PORT": "0"},
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip

    async def report(self, *arguments: str) -> tuple[int | None, str]:
        child = await self.start(*arguments)
        told, errors = await child.communicate()
        assert told, errors.decode()
        return child.returncode, told.decode()


@pytest.fixture
async def killed(plane: Plane, client: Client, tmp_path: Path) -> AsyncIterator[Project]:
    """An operator that was killed while it ran, so that nobody serves its webhooks."""
    name = f"killed{uuid4().hex[:8]}"
    project = Project(tmp_path, name, plane)
    (tmp_path / f"{name}.py").write_text(OPERATOR.format(name=name))
    (tmp_path / "pyproject.toml").write_text(f'[tool.kubewright]\noperator = "{name}"\n')
    assert (await project.report("install", "-o", "json"))[0] == 0
    child = await project.start("run")
    assert child.stderr is not None
    try:
        for kind in (MUTATING, VALIDATING):
            async with client.watch(kind, labels={REGISTERED_LABEL: name}, initial_events=True) as events:
                await anext(events)
    finally:
        child.kill()
        await child.communicate()
    yield project
    for kind in (MUTATING, VALIDATING):
        for obj in await client.list(kind, labels={REGISTERED_LABEL: name}):
            await client.delete(obj)


async def _until_refused(client: Client, project: Project, namespace: str) -> None:
    """Servers notice a configuration a moment after it was written."""
    while True:
        try:
            await client.create(project.parcel.named("probe", namespace), dry_run=True)
        except ServerError:
            return


async def _until_taken(client: Client, project: Project, namespace: str) -> None:
    while True:
        try:
            await client.create(project.parcel.named("book", namespace))
        except ServerError:
            continue
        return


async def test_who_starts_without_webhooks_cleans_up_after_the_dead_too(
    killed: Project, client: Client, namespace: str
) -> None:
    await _until_refused(client, killed, namespace)
    assert (await client.get(CRD, killed.crd)).get("spec.conversion.webhook.clientConfig.url")

    quiet = ManagerOptions(
        name="another", webhooks=False, webhook_certificates="local", health_address="0", metrics_address="0"
    )
    async with Manager(config=killed.plane.config, options=quiet):
        for kind in (MUTATING, VALIDATING):
            assert not (await client.list(kind, labels={REGISTERED_LABEL: killed.name})).items

    assert not (await client.get(CRD, killed.crd)).get("spec.conversion.webhook.clientConfig.url")
    await _until_taken(client, killed, namespace)


async def test_the_doctor_names_webhooks_that_nobody_serves(killed: Project) -> None:
    code, told = await killed.report("doctor", "-o", "json")

    findings = [found["text"] for found in json.loads(told) if found["about"] == "webhooks"]
    assert code == 1
    assert len(findings) == 3
    for text, start in zip(
        sorted(findings), ("default.v2", f"the conversion of {killed.crd}", "validate.v2"), strict=True
    ):
        assert text.startswith(start)
        assert "is dead: https://" in text
        assert "nobody listens there; every request that it is asked about is refused; `kubewright run` on " in text


async def test_uninstall_removes_what_nobody_serves_before_it_deletes(killed: Project, client: Client) -> None:
    code, told = await killed.report("uninstall", "--yes", "-o", "json")

    assert code == 0, told
    assert sorted(json.loads(told)["webhooks"])
    assert await client.find(CRD, killed.crd) is None
    for kind in (MUTATING, VALIDATING):
        assert not (await client.list(kind, labels={REGISTERED_LABEL: killed.name})).items
