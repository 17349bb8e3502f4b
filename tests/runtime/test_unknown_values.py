"""Objects that were stored under another class: an enum has lost a value, an attribute has become required.

Covers: kubewright.api, kubewright.controllers, kubewright.webhooks
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import pytest
from tests.runtime.running_controllers import event, running
from tests.runtime.test_webhooks import AUTHORITY, served
from tests.runtime.test_webhooks import until as tried_until

from kubewright import Client, Context, Dynamic, Resource, Spec, Status, controller, convert
from kubewright.api import enum_of
from kubewright.cluster.install import install_crds
from kubewright.errors import Invalid
from kubewright.generate.crds.manifests import crd_for
from kubewright.testing import gone, until
from kubewright.webhooks.registration.manifests import conversion_stanza

pytestmark = pytest.mark.timeout(90)

GROUP = "unknown.example.io"


class WideSize(StrEnum):
    SMALL = "small"
    HUGE = "huge"


class WideSpec(Spec):
    size: WideSize = WideSize.SMALL
    note: str | None = None
    image: str | None = None


class WideStatus(Status):
    seen: str | None = None
    phase: str | None = None


class WideBox(Resource[WideSpec, WideStatus], group=GROUP, version="v1", kind="Box", plural="boxes"):
    """As the operator knows it that wrote the objects."""


class WideCrate(Resource[WideSpec, WideStatus], group=GROUP, version="v1", kind="Crate"):
    """The same, and its CRD is narrowed later."""


class Size(StrEnum):
    SMALL = "small"


class Phase(StrEnum):
    READY = "Ready"


class NarrowSpec(Spec):
    size: Size = Size.SMALL
    note: str | None = None


class NarrowStatus(Status):
    seen: str | None = None
    phase: Phase | None = None


class Box(Resource[NarrowSpec, NarrowStatus], group=GROUP, version="v1", plural="boxes"):
    """As the operator knows it that is rolled back."""


class Crate(Resource[NarrowSpec, NarrowStatus], group=GROUP, version="v1"):
    """As the next operator knows it."""


class StrictSpec(Spec):
    image: str


class StrictBox(Resource[StrictSpec, NarrowStatus], group=GROUP, version="v1", kind="Box", plural="boxes"):
    """With an attribute that has become required."""


class WideJar(Resource[WideSpec, Status], group=GROUP, version="v1", kind="Jar"):
    """As it is stored."""


class OldJar(Resource[NarrowSpec, Status], group=GROUP, version="v1", kind="Jar"):
    """As the converter knows what is stored."""


class NewJar(Resource[WideSpec, Status], group=GROUP, version="v2", kind="Jar", storage=False):
    """The other version."""


@convert(OldJar, NewJar)
def newer(old: OldJar) -> NewJar:
    return NewJar(spec=WideSpec(size=old.spec.size, note=old.spec.note))  # type: ignore[arg-type] # as a converter does


@convert(NewJar, OldJar)
def older(new: NewJar) -> OldJar:
    return OldJar(spec=NarrowSpec(size=new.spec.size, note=new.spec.note))  # type: ignore[arg-type]


BOX = Dynamic(f"{GROUP}/v1", "Box")
CRATE = Dynamic(f"{GROUP}/v1", "Crate")
JAR = Dynamic(f"{GROUP}/v1", "Jar")


@pytest.fixture(scope="module")
async def boxes(client: Client) -> None:
    await install_crds(client, WideBox)


async def made(client: Client, namespace: str, kind: Any = BOX, **spec: Any) -> Any:
    spec = {"size": "huge", "note": "first", **spec}
    return await client.create(kind.named("big", namespace, content={"spec": spec}))


async def test_an_object_with_an_unknown_value_is_read_listed_and_written(
    client: Client, namespace: str, boxes: None
) -> None:
    await made(client, namespace)

    box = await client.get(Box, "big", namespace=namespace)
    assert [found.spec.size for found in await client.list(Box, namespace=namespace)] == ["huge"]
    box.spec.note = "second"
    box = await client.patch(box)
    box.metadata.labels["kept"] = "yes"
    await client.update(box)

    stored = await client.get(BOX, "big", namespace=namespace)
    assert stored["spec"] == {"size": "huge", "note": "second"}
    assert stored.metadata.labels == {"kept": "yes"}


async def test_apply_keeps_the_unknown_value(client: Client, namespace: str, boxes: None) -> None:
    applied = Box.named("big", namespace, spec=NarrowSpec(size=enum_of(Size, "huge"), note="first"))
    await client.apply(applied, field_manager="test")
    box = await client.get(Box, "big", namespace=namespace)

    again = Box.named("big", namespace, spec=NarrowSpec(size=box.spec.size, note="second"))
    await client.apply(again, field_manager="test")

    assert (await client.get(BOX, "big", namespace=namespace))["spec"] == {"size": "huge", "note": "second"}


async def test_it_is_reconciled_with_an_event_and_its_status_written(
    client: Client, namespace: str, boxes: None
) -> None:
    big = await made(client, namespace)
    big["status"] = {"phase": "Lost"}
    await client.patch(big, subresource="status")
    problems: list[str] = []

    @controller(Box)
    async def reconcile(box: Box, ctx: Context) -> None:
        problems.extend(problem.message for problem in ctx.problems)
        match box.spec.size:
            case Size.SMALL:
                box.status.seen = "small"
            case other:
                box.status.seen = f"unknown {other.value}"

    async with running(client, namespace, reconcile, events=True) as (engine,):
        seen = await until(client, Box, big.key, lambda box: box.status.seen == "unknown huge")
        await engine.reach(lambda ended: len(ended) >= 1)
        told = await event(client, namespace, "InvalidValue")

    assert seen.status.phase == "Lost"
    assert {record.result for record in engine.records} == {"success"}
    assert problems[0] == 'spec.size: Unsupported value: "huge": supported values: "small"'
    assert told.note is not None
    assert problems[0] in told.note
    assert (await client.get(BOX, big.key))["spec"]["size"] == "huge"


async def test_it_is_finalized(client: Client, namespace: str, boxes: None) -> None:
    big = await made(client, namespace)
    finalized: list[str] = []

    class Boxes:
        async def reconcile(self, box: Box, ctx: Context) -> None:
            box.status.seen = "yes"

        async def finalize(self, box: Box, ctx: Context) -> None:
            finalized.append(box.spec.size)

    async with running(client, namespace, controller(Box)(Boxes)):
        await until(client, Box, big.key, lambda box: box.status.seen == "yes")
        await client.delete(big)
        await gone(client, Box, big.key)

    assert finalized == ["huge"]


async def test_an_object_without_a_required_value_is_not_reconciled_but_finalized(
    client: Client, namespace: str, boxes: None
) -> None:
    big = await made(client, namespace)
    await client.patch_by_name(BOX, big.key, {"metadata": {"finalizers": [f"{GROUP}/strict"]}})
    called: list[str] = []

    class Boxes:
        async def reconcile(self, box: StrictBox, ctx: Context) -> None:
            called.append("reconcile")

        async def finalize(self, box: StrictBox, ctx: Context) -> None:
            called.append(f"finalize {box.spec.image!r}")

    declaration = controller(StrictBox, finalizer=f"{GROUP}/strict")(Boxes)
    async with running(client, namespace, declaration, events=True) as (engine,):
        records = await engine.reach(lambda ended: len(ended) >= 1)
        await event(client, namespace, "InvalidValue")
        assert records[0].result == "terminal"
        assert "spec.image: Required value" in (records[0].error or "")
        await client.delete(big)
        await gone(client, Box, big.key)

    assert called == ["finalize ''"]


async def test_a_narrowed_schema_refuses_new_values_and_lets_the_stored_one_go(client: Client, namespace: str) -> None:
    await install_crds(client, WideCrate)
    big = await made(client, namespace, CRATE)
    await install_crds(client, Crate)
    fresh = CRATE.named("fresh", namespace, content={"spec": {"size": "huge"}})
    refused = await tried_until(lambda: client.create(fresh, dry_run=True), lambda answer: isinstance(answer, Invalid))
    assert 'spec.size: Unsupported value: "huge": supported values: "small"' in refused.message

    class Crates:
        async def reconcile(self, crate: Crate, ctx: Context) -> None:
            crate.status.seen = "yes"

        async def finalize(self, crate: Crate, ctx: Context) -> None: ...

    async with running(client, namespace, controller(Crate)(Crates)):
        seen = await until(client, Crate, big.key, lambda crate: crate.status.seen == "yes")
        assert seen.metadata.finalizers
        assert seen.spec.size == "huge"
        await client.delete(big)
        await gone(client, Crate, big.key)


async def test_one_such_object_breaks_no_list_of_another_version(client: Client, namespace: str) -> None:
    async with served(newer, older, client=client) as url:
        crd = crd_for(WideJar, NewJar)
        crd["spec"]["conversion"] = conversion_stanza(url=url, ca_bundle=AUTHORITY.certificate)
        await install_crds(client, crd)
        await made(client, namespace, JAR)
        await client.create(JAR.named("other", namespace, content={"spec": {"size": "small"}}))

        jars = {jar.metadata.name: jar for jar in await client.list(NewJar, namespace=namespace)}
        jars["big"].spec.note = "through v2"
        await client.patch(jars["big"])
        stored = await client.get(JAR, "big", namespace=namespace)

    assert {name: jar.spec.size for name, jar in jars.items()} == {"big": "huge", "other": "small"}
    assert stored["spec"] == {"size": "huge", "note": "through v2"}
