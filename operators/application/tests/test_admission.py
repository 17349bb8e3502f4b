"""What may be stored: the schema's bounds, the defaulter and the validator, through a real request."""

from typing import Any

import pytest
from kubewright import Dynamic
from kubewright.api import DynamicObject
from kubewright.errors import Invalid

from application.api.v1alpha1.application import Application
from application.api.v1beta1.application import Application as Nested
from application.names import FINALIZER
from tests.home import HOLD, Home, is_ready

UNTYPED = {version: Dynamic(f"apps.example.io/{version}", "Application") for version in ("v1alpha1", "v1beta1")}


async def send(home: Home, spec: dict[str, Any], *, version: str = "v1alpha1", name: str = "web") -> DynamicObject:
    """As a user would write it: nothing is filled in on the way."""
    return await home.client.create(UNTYPED[version].named(name, home.namespace, content={"spec": spec}))


async def test_what_is_left_out_is_filled_in(home: Home) -> None:
    stored = await send(home, {"image": " nginx:1.29\n"})

    assert stored.get("spec") == {
        "image": "nginx:1.29",
        "env": [],
        "replicas": 1,
        "paused": False,
        "deletionPolicy": "Delete",
        "drainSeconds": 0,
    }


async def test_the_other_version_is_defaulted_by_the_same_code(home: Home) -> None:
    stored = await send(home, {"container": {"image": " nginx:1.29 "}}, version="v1beta1")

    assert stored.get("spec") == {
        "container": {"image": "nginx:1.29", "env": []},
        "replicas": 1,
        "paused": False,
        "deletionPolicy": "Delete",
        "drainSeconds": 0,
    }


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({}, "spec.image"),
        ({"image": "  "}, "spec.image"),
        ({"image": "nginx 1.29"}, "spec.image"),
        ({"image": "Nginx"}, "spec.image"),
        ({"image": ":1"}, "spec.image"),
        ({"image": "@sha256:1"}, "spec.image"),
        ({"image": "registry.example/"}, "spec.image"),
        ({"image": "team//shop"}, "spec.image"),
        ({"image": "nginx", "replicas": 101}, "spec.replicas"),
        ({"image": "nginx", "replicas": -1}, "spec.replicas"),
        ({"image": "nginx", "port": 0}, "spec.port"),
        ({"image": "nginx", "port": 65536}, "spec.port"),
        ({"image": "nginx", "env": [{"name": "A"}, {"name": "A"}]}, "spec.env[1]"),
        ({"image": "nginx", "configRef": {"name": "No_Name"}}, "spec.configRef.name"),
        ({"image": "nginx", "deletionPolicy": "Orphan"}, "spec.deletionPolicy"),
        ({"image": "nginx", "drainSeconds": 601}, "spec.drainSeconds"),
        ({"image": "nginx", "drainSeconds": 1, "deletionPolicy": "Retain"}, "spec.drainSeconds"),
    ],
)
async def test_a_wrong_spec_is_refused_and_the_field_is_named(home: Home, spec: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as refusal:
        await send(home, spec)

    assert refusal.value.code == 422
    assert field in {cause.field for cause in refusal.value.causes}


async def test_a_name_that_leaves_no_room_is_refused(home: Home) -> None:
    await send(home, {"image": "nginx"}, name="a" * 52)

    with pytest.raises(Invalid, match="52"):
        await send(home, {"image": "nginx"}, name="a" * 53)


@pytest.mark.parametrize("name", ["web.1", "1web", "9", "xn--a.b.c"])
@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
async def test_a_name_that_no_service_can_have_is_refused(home: Home, name: str, version: str) -> None:
    """With a port or without one, which may come later."""
    spec = {"image": "nginx"} if version == "v1alpha1" else {"container": {"image": "nginx"}}

    with pytest.raises(Invalid) as refusal:
        await send(home, spec, version=version, name=name)

    assert {cause.field for cause in refusal.value.causes} == {"metadata.name"}


async def test_a_server_made_name_is_one(home: Home) -> None:
    wanted = home.draft(name="", port=8080)
    wanted.metadata.generate_name = "web-"

    made = await home.client.create(wanted)

    await home.until(is_ready, name=made.metadata.name)


async def test_all_faults_are_answered_together_with_a_cause_for_each(home: Home) -> None:
    with pytest.raises(Invalid) as refusal:
        await send(home, {"image": "Nginx", "deletionPolicy": "Retain", "drainSeconds": 5})

    assert {cause.field for cause in refusal.value.causes} == {"spec.image", "spec.drainSeconds"}


async def test_the_rules_hold_for_the_other_version_too(home: Home) -> None:
    with pytest.raises(Invalid, match="the repository Nginx must be lower case"):
        await send(home, {"container": {"image": "Nginx"}}, version="v1beta1")


async def test_the_deletion_policy_stands_while_the_application_is_being_deleted(home: Home) -> None:
    application = home.draft()
    application.metadata.finalizers = [HOLD]
    await home.client.create(application)
    await home.delete()

    with pytest.raises(Invalid, match=r"spec\.deletionPolicy"):
        await home.edit({"deletionPolicy": "Retain"})
    with pytest.raises(Invalid, match=r"spec\.deletionPolicy"):
        await home.client.patch_by_name(Nested, home.key(), {"spec": {"deletionPolicy": "Retain"}})
    # No other rule is asked about what is on its way out.
    await home.edit({"image": "Nginx"})

    await home.until(lambda seen: FINALIZER not in seen.metadata.finalizers)
    await home.client.patch_by_name(Application, home.key(), {"metadata": {"finalizers": None}})
    await home.gone()
