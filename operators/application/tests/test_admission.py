"""What may be stored: the schema's bounds, the defaulter and the validator, through a real request."""

from typing import Any

import pytest
from kubewright import Dynamic
from kubewright.api import DynamicObject
from kubewright.errors import Invalid

from application.api.v1alpha1.application import Application as Flat
from application.api.v1beta1.application import Application
from application.names import FINALIZER
from tests.home import HOLD, Home

UNTYPED = {version: Dynamic(f"apps.example.io/{version}", "Application") for version in ("v1alpha1", "v1beta1")}


async def send(home: Home, spec: dict[str, Any], *, version: str = "v1beta1", name: str = "web") -> DynamicObject:
    """As a user would write it: nothing is filled in on the way."""
    return await home.client.create(UNTYPED[version].named(name, home.namespace, content={"spec": spec}))


async def test_what_is_left_out_is_filled_in(home: Home) -> None:
    stored = await send(home, {"container": {"image": " nginx:1.29\n"}})

    assert stored.get("spec") == {
        "container": {"image": "nginx:1.29", "env": []},
        "replicas": 1,
        "paused": False,
        "deletionPolicy": "Delete",
        "drainSeconds": 0,
    }


async def test_the_other_version_is_defaulted_by_the_same_code(home: Home) -> None:
    stored = await send(home, {"image": " nginx:1.29 "}, version="v1alpha1")

    assert stored.get("spec") == {
        "image": "nginx:1.29",
        "env": [],
        "replicas": 1,
        "paused": False,
        "deletionPolicy": "Delete",
        "drainSeconds": 0,
    }


CONTAINER = {"image": "nginx"}


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({}, "spec.container"),
        ({"container": {}}, "spec.container.image"),
        ({"container": {"image": "  "}}, "spec.container.image"),
        ({"container": {"image": "nginx 1.29"}}, "spec.container.image"),
        ({"container": {"image": "Nginx"}}, "spec.container.image"),
        ({"container": CONTAINER, "replicas": 101}, "spec.replicas"),
        ({"container": CONTAINER, "replicas": -1}, "spec.replicas"),
        ({"container": {"image": "nginx", "port": 0}}, "spec.container.port"),
        ({"container": {"image": "nginx", "port": 65536}}, "spec.container.port"),
        ({"container": {"image": "nginx", "env": [{"name": "A"}, {"name": "A"}]}}, "spec.container.env[1]"),
        ({"container": CONTAINER, "configRef": {"name": "No_Name"}}, "spec.configRef.name"),
        ({"container": CONTAINER, "deletionPolicy": "Orphan"}, "spec.deletionPolicy"),
        ({"container": CONTAINER, "drainSeconds": 601}, "spec.drainSeconds"),
        ({"container": CONTAINER, "drainSeconds": 1, "deletionPolicy": "Retain"}, "spec.drainSeconds"),
    ],
)
async def test_a_wrong_spec_is_refused_and_the_field_is_named(home: Home, spec: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as refusal:
        await send(home, spec)

    assert refusal.value.code == 422
    assert field in {cause.field for cause in refusal.value.causes}


async def test_a_name_that_leaves_no_room_is_refused(home: Home) -> None:
    await send(home, {"container": CONTAINER}, name="a" * 52)

    with pytest.raises(Invalid, match="52"):
        await send(home, {"container": CONTAINER}, name="a" * 53)


async def test_all_faults_are_answered_together_with_a_cause_for_each(home: Home) -> None:
    with pytest.raises(Invalid) as refusal:
        await send(home, {"container": {"image": "Nginx"}, "deletionPolicy": "Retain", "drainSeconds": 5})

    assert {cause.field for cause in refusal.value.causes} == {"spec.container.image", "spec.drainSeconds"}


async def test_the_rules_hold_for_the_other_version_too(home: Home) -> None:
    with pytest.raises(Invalid, match="the repository Nginx must be lower case"):
        await send(home, {"image": "Nginx"}, version="v1alpha1")


async def test_the_deletion_policy_stands_while_the_application_is_being_deleted(home: Home) -> None:
    application = home.draft()
    application.metadata.finalizers = [HOLD]
    await home.client.create(application)
    await home.delete()

    with pytest.raises(Invalid, match=r"spec\.deletionPolicy"):
        await home.edit({"deletionPolicy": "Retain"})
    with pytest.raises(Invalid, match=r"spec\.deletionPolicy"):
        await home.client.patch_by_name(Flat, home.key(), {"spec": {"deletionPolicy": "Retain"}})
    # No other rule is asked about what is on its way out.
    await home.edit({"container": {"image": "Nginx"}})

    await home.until(lambda seen: FINALIZER not in seen.metadata.finalizers)
    await home.client.patch_by_name(Application, home.key(), {"metadata": {"finalizers": None}})
    await home.gone()
