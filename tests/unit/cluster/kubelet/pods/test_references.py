"""References of a pod, and the messages for missing ones."""

from __future__ import annotations

from kubewright.api.codec import from_tree
from kubewright.cluster.kubelet.pods.references import ReferenceKind, find_missing
from kubewright.k8s.core.v1 import Pod

POD = from_tree(
    Pod,
    {
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "volumes": [
                {"name": "settings", "configMap": {"name": "settings"}},
                {"name": "keys", "secret": {"secretName": "keys", "items": [{"key": "tls.key", "path": "k"}]}},
                {"name": "extra", "configMap": {"name": "extra", "optional": True}},
                {"name": "both", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
            ],
            "containers": [
                {
                    "name": "main",
                    "image": "nginx",
                    "envFrom": [{"configMapRef": {"name": "env"}}],
                    "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "env", "key": "a"}}}],
                }
            ],
        },
    },
)


def found(have: dict[tuple[str, str], set[str]]):  # type: ignore[no-untyped-def]  # a closure of the type `FindKeys`
    async def find(kind: ReferenceKind, name: str) -> frozenset[str] | None:
        keys = have.get((kind, name))
        return None if keys is None else frozenset(keys)

    return find


async def test_missing_references_are_reported_per_volume_and_container() -> None:
    missing = await find_missing(POD, found({("secret", "keys"): {"other"}}))

    assert missing.volumes == (
        'MountVolume.SetUp failed for volume "settings" : configmap "settings" not found',
        'MountVolume.SetUp failed for volume "keys" : references non-existent secret key: tls.key',
    )
    assert missing.containers == {"main": 'configmap "env" not found'}


async def test_a_missing_key_of_the_environment_is_named() -> None:
    have = {("configmap", "settings"): set[str](), ("secret", "keys"): {"tls.key"}, ("configmap", "env"): set[str]()}

    missing = await find_missing(POD, found({**have, ("secret", "env"): {"b"}}))

    assert missing.volumes == ()
    assert missing.containers == {"main": "couldn't find key a in Secret shop/env"}


async def test_nothing_is_missing_if_all_objects_exist() -> None:
    have = {("configmap", "settings"): set[str](), ("secret", "keys"): {"tls.key"}, ("configmap", "env"): set[str]()}

    missing = await find_missing(POD, found({**have, ("secret", "env"): {"a"}}))

    assert missing.volumes == ()
    assert missing.containers == {}
