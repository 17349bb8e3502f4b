"""Protobuf that is cheap to send and dear to read."""

from __future__ import annotations

from tests.security.harness.attack import CONFIG_MAPS, Target, attack, many
from tests.security.harness.exchange import Answer
from tests.security.harness.protobuf import MEDIA_TYPE, enveloped, field, message

_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_PODS = "/api/v1/namespaces/edited/pods"


async def _pod(on: Target, spec: bytes) -> Answer:
    body = enveloped("v1", "Pod", message(1, field(1, b"p")) + message(2, spec))
    return await on.post(_PODS, body, content_type=MEDIA_TYPE)


async def _review(on: Target, inside: bytes) -> Answer:
    body = enveloped("authorization.k8s.io/v1", "SelfSubjectAccessReview", inside)
    return await on.post(_REVIEWS, body, content_type=MEDIA_TYPE)


@attack(by="editor")
async def bad_utf8(on: Target) -> Answer:
    """A string with a byte in each second place that is no UTF-8."""
    entry = field(1, b"k") + field(2, b"a\xff" * 1_400_000)
    body = enveloped("v1", "ConfigMap", message(1, field(1, b"p")) + message(2, entry))
    return await on.post(CONFIG_MAPS, body, content_type=MEDIA_TYPE)


@attack(by="nobody")
async def bad_utf8_in_a_review(on: Target) -> Answer:
    """The same by somebody without any right."""
    return await _review(on, message(2, message(2, field(1, b"a\xff" * 1_400_000))))


@attack(by="editor")
async def empty_containers(on: Target) -> Answer:
    """A Pod with a million empty containers, of two bytes each."""
    return await _pod(on, message(2, b"") * many(2))


@attack(by="nobody")
async def empty_requirements(on: Target) -> Answer:
    """A review with a million empty requirements of a label selector, by somebody without any right."""
    return await _review(on, message(2, message(1, message(9, message(2, b"") * many(2)))))


@attack(by="nobody")
async def empty_field_requirements(on: Target) -> Answer:
    """The same of a field selector."""
    return await _review(on, message(2, message(1, message(8, message(2, b"") * many(2)))))


@attack(by="nobody")
async def managed_fields(on: Target) -> Answer:
    """A review whose metadata has a million empty entries of managed fields."""
    return await _review(on, message(1, message(17, b"") * many(3)))


@attack(by="nobody")
async def owner_references(on: Target) -> Answer:
    """A review whose metadata has a million empty owner references."""
    return await _review(on, message(1, message(13, b"") * many(2)))


@attack(by="nobody")
async def unknown_fields(on: Target) -> Answer:
    """Fields that the message does not have."""
    return await _review(on, field(1000, b"") * many(3))


@attack(by="nobody")
async def repeated_scalars(on: Target) -> Answer:
    """One field that is said a million times, where the last counts."""
    return await _review(on, message(2, message(2, field(1, b"a") * many(3))))


@attack(by="nobody")
async def repeated_messages(on: Target) -> Answer:
    """One message that is said a million times, where all are merged."""
    return await _review(on, message(2, b"") * many(2))


@attack(by="nobody")
async def growing_messages(on: Target) -> Answer:
    """One message that grows with each time it is said: its list gets longer and is merged again."""
    return await _review(on, message(2, message(1, message(9, message(2, b"")))) * many(8))


@attack(by="nobody")
async def map_entries(on: Target) -> Answer:
    """Labels without name and value, a million of them."""
    return await _review(on, message(1, message(11, b"") * many(2)))


@attack(by="nobody")
async def unknown_kind(on: Target) -> Answer:
    """A kind that is not served, in a message of the largest size."""
    return await on.post(_REVIEWS, enveloped("v9", "N" * 10, field(1, b"x" * 2_900_000)), content_type=MEDIA_TYPE)


@attack(by="editor")
async def nested_schemas(on: Target) -> Answer:
    """A definition's schema in a schema, a hundred thousand times."""
    inside = b""
    for _ in range(1500):
        inside = message(36, inside)  # `not`
    return await _review(on, inside)


@attack(by="nobody")
async def nested_groups(on: Target) -> Answer:
    """Groups, which proto2 had, opened and never closed."""
    return await _review(on, b"\x0b" * 2_900_000)


@attack(by="nobody")
async def long_varints(on: Target) -> Answer:
    """Numbers of endless bytes."""
    return await _review(on, b"\x08" + b"\xff" * 2_900_000)


@attack(by="editor")
async def tolerations(on: Target) -> Answer:
    """A Pod with a million empty tolerations."""
    containers = message(2, field(1, b"c") + field(2, b"i"))
    return await _pod(on, containers + message(22, b"") * many(2))


@attack(by="editor")
async def endpoints(on: Target) -> Answer:
    """Endpoints with a million empty subsets."""
    body = enveloped("v1", "Endpoints", message(1, field(1, b"p")) + message(2, b"") * many(2))
    return await on.post("/api/v1/namespaces/edited/endpoints", body, content_type=MEDIA_TYPE)


@attack(by="editor")
async def subresource_of_a_pod(on: Target) -> Answer:
    """A Binding with a million annotations."""
    body = enveloped("v1", "Binding", message(1, message(12, b"") * many(2)))
    return await on.post(f"{_PODS}/x/binding", body, content_type=MEDIA_TYPE)


@attack(by="editor")
async def raw_json_in_a_message(on: Target) -> Answer:
    """A ControllerRevision whose data is JSON with a name a hundred thousand times."""
    raw = b"{" + b",".join([b'"a":{}'] * many(7)) + b"}"
    body = enveloped("apps/v1", "ControllerRevision", message(1, field(1, b"p")) + message(2, field(1, raw)))
    return await on.post("/apis/apps/v1/namespaces/edited/controllerrevisions", body, content_type=MEDIA_TYPE)


@attack(by="editor")
async def quantities(on: Target) -> Answer:
    """A Pod with a quantity of a million digits."""
    limit = message(1, field(1, b"cpu") + message(2, field(1, b"9" * 2_000_000)))
    return await _pod(on, message(2, field(1, b"c") + field(2, b"i") + message(8, limit)))


@attack(by="admin")
async def a_deep_definition(on: Target) -> Answer:
    """A CustomResourceDefinition whose schema has thousands of levels, in protobuf."""
    inside = b""
    for _ in range(4000):
        inside = message(36, inside)
    version = field(1, b"v1") + message(4, message(1, inside))
    body = enveloped("apiextensions.k8s.io/v1", "CustomResourceDefinition", message(2, message(7, version)))
    return await on.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body, content_type=MEDIA_TYPE)
