"""Defaults and the server's form: each object of the table becomes what kube-apiserver made of it."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from tests.builders.admission import Admission

from kubewright._base.yaml import load_all
from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.builtin.canonical import canonicalize
from kubewright.apiserver.builtin.defaults import apply_defaults
from kubewright.apiserver.builtin.defaults.images import pull_policy
from kubewright.apiserver.builtin.preparation.strategies import is_namespaced, prepare_for_create
from kubewright.k8s import documents

Tree = dict[str, Any]

HERE = Path(__file__).parent
OBJECTS = {
    f"{obj['apiVersion']} {obj['kind']} {obj['metadata']['name']}": obj
    for obj in load_all((HERE / "created.yaml").read_text())
}
ANSWERS: dict[str, Tree] = json.loads((HERE / "created.json").read_text())
TOKEN_VOLUME = re.compile(r"kube-api-access-[a-z0-9]{5}")
TIME = "2024-05-01T10:00:00Z"
ADMISSION = Admission("builtin")


def kind_of(obj: Tree) -> GroupVersionKind:
    return GroupVersionKind.of(obj["apiVersion"], obj["kind"])


def defaulted(obj: Tree) -> Tree:
    tree = deepcopy(obj)
    apply_defaults(kind_of(tree), tree)
    return tree


def stored(obj: Tree) -> Tree:
    gvk = kind_of(obj)
    tree = defaulted(obj)
    tree["metadata"].update({"uid": "uid", "creationTimestamp": TIME})
    if is_namespaced(gvk):
        tree["metadata"]["namespace"] = "builtin"
    ADMISSION.mutate(gvk, tree)
    prepare_for_create(gvk, tree)
    for name in ("uid", "creationTimestamp"):
        del tree["metadata"][name]
    told: Tree = json.loads(TOKEN_VOLUME.sub("kube-api-access-xxxxx", json.dumps(tree)))
    return told


@pytest.mark.parametrize("name", OBJECTS)
def test_defaults_are_those_of_kube_apiserver(name: str) -> None:
    assert ANSWERS[name] == stored(OBJECTS[name])


def test_every_kind_that_can_be_created_is_in_the_table() -> None:
    reviews = {"Binding", "CertificateSigningRequest", "CustomResourceDefinition", "IPAddress", "Service"}
    served = {
        resource["responseKind"]["kind"]
        for group in documents.discovery()
        for version in group["versions"]
        for resource in version["resources"]
        if {"create", "get"} <= set(resource["verbs"]) and version["version"] in ("v1", "v2")
    }

    assert served - {obj["kind"] for obj in OBJECTS.values()} - reviews == set()


@pytest.mark.parametrize("name", OBJECTS)
def test_defaults_are_idempotent(name: str) -> None:
    once = defaulted(OBJECTS[name])

    assert once == defaulted(once)


@pytest.mark.parametrize("name", ANSWERS)
def test_objects_of_kube_apiserver_are_canonical(name: str) -> None:
    answer = ANSWERS[name]
    tree = deepcopy(answer)

    canonicalize(kind_of(tree), tree)

    assert answer == tree


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("registry:5000/nginx", "Always"),
        ("registry.example.com/team/nginx", "Always"),
        ("localhost/nginx", "Always"),
        ("nginx:1.27", "IfNotPresent"),
        ("registry:5000/nginx:1.27", "IfNotPresent"),
        ("nginx@sha256:" + "0" * 64, "IfNotPresent"),
        ("nginx:latest@sha256:" + "0" * 64, "Always"),
        ("", "IfNotPresent"),
        ("Nginx", "IfNotPresent"),
        ("nginx:", "IfNotPresent"),
        ("0" * 64, "IfNotPresent"),
    ],
)
def test_pull_policy_follows_the_tag(image: str, policy: str) -> None:
    assert policy == pull_policy(image)


def test_quantities_are_rounded_up_to_milli() -> None:
    limits = {"cpu": "1n", "memory": "1.5Gi", "example.com/a": "100u"}
    container = {"name": "a", "image": "b", "resources": {"limits": limits}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [container]}}

    found = defaulted(pod)["spec"]["containers"][0]["resources"]["limits"]

    assert found["cpu"] == "1m"
    assert found["example.com/a"] == "1m"


def test_empty_sections_that_were_sent_stay() -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "labels": {}, "finalizers": []},
        "spec": {"containers": [], "volumes": [{"name": "a", "emptyDir": {}}], "affinity": {}, "hostNetwork": False},
    }

    found = defaulted(pod)

    assert found["metadata"] == {"name": "a"}
    assert found["spec"]["containers"] == []  # until it is stored
    assert found["spec"]["volumes"] == [{"name": "a", "emptyDir": {}}]
    assert found["spec"]["affinity"] == {}
    assert "hostNetwork" not in found["spec"]
    assert found["status"] == {}


def test_zero_of_a_field_that_may_be_unset_stays() -> None:
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"}, "spec": {"backoffLimit": 0}}

    assert defaulted(job)["spec"]["backoffLimit"] == 0


def test_custom_kinds_are_left_alone() -> None:
    custom = {"apiVersion": "example.com/v1", "kind": "Web", "metadata": {"name": "a", "labels": {}}, "spec": {"a": []}}

    assert custom == defaulted(custom)
