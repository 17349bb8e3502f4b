"""A decoded body takes the shape of its Go type, or is refused in the words of Go's decoder."""

from __future__ import annotations

import random
from copy import deepcopy
from typing import Any

import pytest

from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.builtin.golang.decoder import normalize, unknown_fields
from kubewright.apiserver.builtin.golang.types import fields_of, kind_type
from kubewright.apiserver.builtin.validation import name_rule, validate_create, validate_update
from kubewright.apiserver.wire.status_errors import StatusError
from kubewright.k8s.index import MODULES

Tree = dict[str, Any]

DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")
CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")


def deployment() -> Tree:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web"}},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 0}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "terminationGracePeriodSeconds": 30,
                    "restartPolicy": "Always",
                    "dnsPolicy": "ClusterFirst",
                    "tolerations": [{"key": "a", "operator": "Exists"}],
                    "volumes": [{"name": "a", "emptyDir": {"sizeLimit": "1Gi"}}],
                    "containers": [
                        {
                            "name": "web",
                            "image": "nginx",
                            "imagePullPolicy": "Always",
                            "terminationMessagePolicy": "File",
                            "env": [{"name": "A", "value": "b"}],
                            "ports": [{"containerPort": 80, "protocol": "TCP"}],
                            "resources": {"requests": {"cpu": "100m"}},
                            "volumeMounts": [{"name": "a", "mountPath": "/a"}],
                        }
                    ],
                },
            },
        },
    }


def test_every_built_in_kind_has_its_go_type() -> None:
    own = {"CustomResourceDefinition", "APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "Status"}
    missing = [
        f"{version}/{kind}"
        for version, (_, kinds) in MODULES.items()
        for kind in kinds
        if kind not in own and not kind.endswith("List")
        if kind_type(GroupVersionKind(version.rpartition("/")[0], version.rpartition("/")[2], kind)) is None
    ]

    assert missing == []


def test_unknown_fields_are_reported_in_order_and_dropped() -> None:
    tree = deployment()
    tree["spec"]["template"]["spec"]["containers"][0]["bar"] = {"a": 1}
    tree["spec"]["foo"] = 1
    tree["metadata"]["baz"] = None

    found = normalize(DEPLOYMENT, tree)

    assert found == ["metadata.baz", "spec.template.spec.containers[0].bar", "spec.foo"]
    assert tree == deployment()


def test_a_body_without_unknown_fields_has_none() -> None:
    tree = deployment()

    assert unknown_fields(DEPLOYMENT, tree) == []
    assert tree == deployment()


def test_a_wrong_type_is_reported_before_unknown_fields() -> None:
    tree = deployment()
    tree["spec"]["foo"] = 1
    tree["spec"]["replicas"] = "2"

    with pytest.raises(StatusError) as caught:
        normalize(DEPLOYMENT, tree)

    assert caught.value.code == 400
    assert caught.value.status["message"] == (
        'Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal string into Go struct '
        "field DeploymentSpec.spec.replicas of type int32"
    )


def test_zero_values_that_go_omits_are_dropped() -> None:
    tree: Tree = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "namespace": "", "annotations": None, "generation": 0},
        "data": {"a": None},
        "immutable": False,
    }

    assert normalize(CONFIG_MAP, tree) == []
    # A pointer to false is something; a null in a map of strings is an empty string.
    assert tree == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a"},
        "data": {"a": ""},
        "immutable": False,
    }


def test_a_kind_that_is_not_built_in_is_left_alone() -> None:
    tree: Tree = {"apiVersion": "shop.example.com/v1", "kind": "Order", "spec": {"anything": None}}

    assert normalize(GroupVersionKind("shop.example.com", "v1", "Order"), tree) == []
    assert tree["spec"] == {"anything": None}


@pytest.mark.parametrize(
    ("group", "kind", "name", "prefix", "fine"),
    [
        ("", "Pod", "a.b", False, True),
        ("", "Pod", "a-", False, False),
        ("", "Pod", "a-", True, True),
        ("", "Service", "1a", False, False),
        ("", "Namespace", "a.b", False, False),
        ("apps", "StatefulSet", "a.b", False, False),
        ("rbac.authorization.k8s.io", "Role", "system:a", False, True),
        ("rbac.authorization.k8s.io", "Role", "a/b", False, False),
        ("networking.k8s.io", "IPAddress", "10.0.0.1", False, True),
    ],
)
def test_every_kind_has_its_own_rule_for_names(group: str, kind: str, name: str, prefix: bool, fine: bool) -> None:
    errors = name_rule(GroupVersionKind(group, "v1", kind))(name, prefix)

    assert (errors == []) is fine


def test_embedded_structs_are_inlined() -> None:
    fields = {field.json: field for field in fields_of("core/v1.Volume") or ()}

    assert fields["hostPath"].within == ("VolumeSource",)
    assert fields["name"].within == ()


ODD: list[Any] = ["", None, 0, -1, 70000, [], {}, "A_B", "50%", True, [None], {"a": None}, "1Gi", 1.5, [{}], ["x"]]


def places(tree: Any) -> list[tuple[Any, Any]]:
    """Every value in a tree, by what holds it."""
    keys = list(tree) if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ()
    return [pair for key in keys for pair in ((tree, key), *places(tree[key]))]


def test_no_body_makes_validation_fail() -> None:
    chance = random.Random(20240501)
    validated = 0
    for _ in range(1500):
        tree = deployment()
        for _ in range(chance.randint(1, 3)):
            holder, key = chance.choice(places(tree)[2:])
            if isinstance(holder, dict) and chance.random() < 0.3:
                del holder[key]
            else:
                holder[key] = deepcopy(chance.choice(ODD))
        try:
            normalize(DEPLOYMENT, tree)
        except StatusError:
            continue
        validated += 1
        errors = [*validate_create(DEPLOYMENT, tree), *validate_update(DEPLOYMENT, tree, deployment())]
        assert all(error.message for error in errors)

    assert validated > 100
