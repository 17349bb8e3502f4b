"""What is filled in where a set says nothing."""

import pytest
from kubewright.api import to_tree
from made import LOG, a_set

from sidecarset.defaults import defaulted
from sidecarset.webhooks.v1alpha1.sidecarset import default_sidecarset


def test_a_bare_container_gets_what_the_api_server_would_give_it() -> None:
    container = a_set().spec.containers[0]

    assert to_tree(container) == {
        "name": "log",
        "image": "fluent-bit:3.1",
        "imagePullPolicy": "IfNotPresent",
        "podInjectPolicy": "BeforeAppContainer",
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    }


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("registry:5000/nginx", "Always"),
        ("registry:5000/nginx:1.27", "IfNotPresent"),
        ("nginx@sha256:" + "0" * 64, "IfNotPresent"),
    ],
)
def test_an_image_without_a_fixed_tag_is_always_pulled(image: str, policy: str) -> None:
    assert a_set(containers=[{**LOG, "image": image}]).spec.containers[0].image_pull_policy == policy


def test_ports_variables_probes_and_resources_are_completed() -> None:
    container = {
        **LOG,
        "ports": [{"containerPort": 2020}],
        "env": [{"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
        "livenessProbe": {"httpGet": {"port": 2020}},
        "readinessProbe": {"grpc": {"port": 2021}},
        "lifecycle": {"preStop": {"httpGet": {"port": 2020}}},
        "resources": {"limits": {"cpu": "1", "memory": "64Mi"}, "requests": {"cpu": "100m"}},
    }
    found = to_tree(a_set(containers=[container]).spec.containers[0])

    probe = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
    assert found["ports"] == [{"containerPort": 2020, "protocol": "TCP"}]
    assert found["env"][0]["valueFrom"]["fieldRef"] == {"fieldPath": "spec.nodeName", "apiVersion": "v1"}
    assert found["livenessProbe"] == {"httpGet": {"port": 2020, "path": "/", "scheme": "HTTP"}, **probe}
    assert found["readinessProbe"] == {"grpc": {"port": 2021, "service": ""}, **probe}
    assert found["lifecycle"]["preStop"]["httpGet"] == {"port": 2020, "path": "/", "scheme": "HTTP"}
    assert found["resources"]["requests"] == {"cpu": "100m", "memory": "64Mi"}


def test_volumes_are_completed_so_that_they_compare_equal_with_those_of_a_pod() -> None:
    volumes = [
        {"name": "settings", "configMap": {"name": "settings"}},
        {"name": "keys", "secret": {"secretName": "keys"}},
        {"name": "host", "hostPath": {"path": "/var/log"}},
        {"name": "facts", "downwardAPI": {"items": [{"path": "n", "fieldRef": {"fieldPath": "metadata.name"}}]}},
        {"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}},
        {"name": "scratch"},
        {"name": "claim", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}},
        {"name": "model", "image": {"reference": "registry.example/model"}},
        {"name": "disk", "iscsi": {"targetPortal": "10.0.0.1", "iqn": "iqn.2001-04.com.example:disk", "lun": 0}},
    ]
    settings, keys, host, facts, token, scratch, claim, model, disk = (
        to_tree(volume) for volume in a_set(volumes=volumes).spec.volumes
    )

    assert settings["configMap"]["defaultMode"] == 420
    assert keys["secret"]["defaultMode"] == 420
    assert host["hostPath"]["type"] == ""
    assert facts["downwardAPI"]["items"][0]["fieldRef"]["apiVersion"] == "v1"
    assert token["projected"]["sources"][0]["serviceAccountToken"]["expirationSeconds"] == 3600
    assert scratch == {"name": "scratch", "emptyDir": {}}
    assert claim["ephemeral"]["volumeClaimTemplate"]["spec"]["volumeMode"] == "Filesystem"
    assert model["image"]["pullPolicy"] == "Always"
    assert disk["iscsi"]["iscsiInterface"] == "default"


def test_filling_in_twice_is_the_same_as_once_and_leaves_the_original_alone() -> None:
    bare = a_set()
    bare.spec.containers[0].image_pull_policy = None

    once = defaulted(bare)

    assert default_sidecarset.defaulted(once) == once
    assert bare.spec.containers[0].image_pull_policy is None
