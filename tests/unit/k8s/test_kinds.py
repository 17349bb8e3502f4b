"""The generated built-in kinds: found lazily, complete, and faithful to the wire.

Covers: kubewright.k8s
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from kubewright.api.codec import decode, decode_tree, encode, encode_tree
from kubewright.api.kinds import GroupVersionKind
from kubewright.api.quantity import Quantity
from kubewright.api.resource import definition_of
from kubewright.k8s import SERVER_VERSION, find, kinds
from kubewright.k8s.apiextensions.v1 import CustomResourceDefinition, JSONSchemaProps
from kubewright.k8s.apps.v1 import Deployment
from kubewright.k8s.coordination.v1 import Lease
from kubewright.k8s.core.v1 import Node, Pod, Secret, Service
from kubewright.k8s.discovery.v1 import EndpointSlice
from kubewright.k8s.documents import discovery, resolve, schema_of
from kubewright.k8s.events.v1 import Event
from kubewright.k8s.meta.v1 import LabelSelector
from kubewright.k8s.resource.v1 import DeviceAttribute


def _modules_after(statement: str) -> list[str]:
    code = f"import sys; {statement}; print('\\n'.join(name for name in sys.modules if name.startswith('kubewright')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_importing_the_package_imports_no_generated_module() -> None:
    loaded = _modules_after("import kubewright.k8s")

    assert "kubewright.k8s.index" in loaded
    assert not [name for name in loaded if name.startswith("kubewright.k8s.") and name != "kubewright.k8s.index"]


def test_finding_a_kind_imports_its_module_and_those_it_needs() -> None:
    find_lease = "from kubewright.k8s import find; from kubewright.api.kinds import GroupVersionKind; "
    find_lease += "find(GroupVersionKind('coordination.k8s.io', 'v1', 'Lease'))"

    loaded = _modules_after(find_lease)

    assert "kubewright.k8s.coordination.v1" in loaded
    assert "kubewright.k8s.core.v1" not in loaded


def test_a_kind_that_is_not_built_in_is_not_found() -> None:
    assert find(GroupVersionKind("cert-manager.io", "v1", "Certificate")) is None
    assert find(GroupVersionKind("apps", "v1", "PodSpec")) is None
    assert find(GroupVersionKind("apps", "v1", "DeploymentSpec")) is None


def test_every_resource_the_server_discovered_has_a_class_that_knows_where_it_is_served() -> None:
    for group in discovery():
        for version in group["versions"]:
            for resource in version["resources"]:
                kind = resource["responseKind"]["kind"]
                gvk = GroupVersionKind(group["metadata"].get("name", ""), version["version"], kind)
                found = find(gvk)
                assert found is not None, gvk
                definition = definition_of(found)
                subresources = [one["subresource"] for one in resource.get("subresources", ())]
                assert definition.gvk == gvk
                assert definition.plural == resource["resource"]
                assert definition.singular == resource["singularResource"]
                assert definition.namespaced == (resource["scope"] == "Namespaced")
                assert list(definition.short_names) == resource.get("shortNames", [])
                assert list(definition.categories) == resource.get("categories", [])
                assert definition.status == ("status" in subresources)
                assert (definition.scale is not None) == ("scale" in subresources)


def _smallest(schema: Mapping[str, Any]) -> Any:
    """A value with nothing but what the schema requires."""
    schema = resolve(schema)
    match schema.get("type"):
        case "object":
            required = schema.get("required", ())
            return {name: _smallest(schema["properties"][name]) for name in required}
        case "array":
            return []
        case "string":
            return {"date-time": "2024-05-01T10:00:00.000000Z", "byte": "AA=="}.get(schema.get("format", ""), "x")
        case "integer" | "number":
            return 1
        case "boolean":
            return True
    return "1" if "oneOf" in schema else {"any": ["thing"]}


def _largest(schema: Mapping[str, Any], within: tuple[str, ...] = ()) -> Any:
    """A value with every field the schema has; a schema inside itself is filled twice, then left empty."""
    name = (schema.get("allOf") or [schema])[0].get("$ref", "")
    if name and within.count(name) > 1:
        return _smallest(schema)
    schema, within = resolve(schema), (*within, name)
    if schema.get("type") == "object" and "properties" in schema:
        return {name: _largest(part, within) for name, part in schema["properties"].items()}
    if schema.get("type") == "object" and "additionalProperties" in schema:
        return {"some.key/with-punctuation_": _largest(schema["additionalProperties"], within)}
    if schema.get("type") == "array":
        return [_largest(schema["items"], within)]
    return _smallest(schema)


@pytest.mark.parametrize("gvk", list(kinds()), ids=str)
def test_every_kind_reads_its_smallest_object_and_keeps_what_it_says(gvk: GroupVersionKind) -> None:
    schema = schema_of(gvk)
    cls = find(gvk)
    assert cls is not None
    assert schema is not None
    tree = _smallest(schema) | {"metadata": {"name": "one"}}
    if "spec" in schema["properties"]:
        tree["spec"] = _smallest(schema["properties"]["spec"])

    read = decode(cls, encode_tree(tree))

    written = decode_tree(encode(read))
    assert written["apiVersion"] == gvk.api_version
    assert written["kind"] == gvk.kind
    assert _within(tree, written) == []


@pytest.mark.parametrize("gvk", list(kinds()), ids=str)
def test_every_kind_keeps_every_field_of_its_schema(gvk: GroupVersionKind) -> None:
    schema = schema_of(gvk)
    cls = find(gvk)
    assert cls is not None
    assert schema is not None
    tree = {name: value for name, value in _largest(schema).items() if name not in ("apiVersion", "kind", "metadata")}
    for claim in tree.get("spec", {}).get("volumeClaimTemplates", ()):
        # A kind within another kind: the server fills in what it is, whatever was sent.
        del claim["apiVersion"], claim["kind"]

    written = decode_tree(encode(decode(cls, encode_tree(tree))))

    assert _within(tree, written) == []


def _within(wanted: Any, actual: Any, path: str = "") -> list[str]:
    """Where the second tree lacks or changes something of the first; empty where both lists and maps agree."""
    if isinstance(wanted, dict) and isinstance(actual, dict):
        return [
            place
            for name, value in wanted.items()
            for place in (_within(value, actual.get(name), f"{path}.{name}") if _has_content(value) else ())
        ]
    if isinstance(wanted, list) and isinstance(actual, list) and len(wanted) == len(actual):
        return [place for one, other in zip(wanted, actual, strict=True) for place in _within(one, other, f"{path}[]")]
    if isinstance(wanted, str) and isinstance(actual, str) and wanted.startswith("2024"):
        return [] if wanted[:19] == actual[:19] else [path]
    return [] if wanted == actual else [f"{path}: {wanted!r} became {actual!r}"]


def _has_content(value: Any) -> bool:
    return value not in ({}, [], "", 0)


def test_a_deployment_is_written_with_the_names_of_the_wire() -> None:
    tree = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {
            "minReadySeconds": 0,
            "replicas": 0,
            "selector": {"matchLabels": {"app": "web"}},
            "strategy": {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "containers": [
                        {
                            "name": "web",
                            "image": "nginx",
                            "ports": [{"containerPort": 80, "hostIP": "127.0.0.1"}],
                            "resources": {"limits": {"cpu": "500m", "memory": "1Gi"}},
                        }
                    ],
                    "hostIPC": True,
                },
            },
        },
        "status": {"readyReplicas": 2},
    }

    web = decode(Deployment, encode_tree(tree))

    container = web.spec.template.spec.containers[0] if web.spec.template.spec else None
    assert container is not None
    assert container.resources is not None
    assert container.resources.limits == {"cpu": Quantity("0.5"), "memory": Quantity("1Gi")}
    assert web.spec.replicas == 0
    assert web.spec.strategy is not None
    assert web.spec.strategy.rolling_update is not None
    assert web.spec.strategy.rolling_update.max_surge == "25%"
    assert web.spec.strategy.rolling_update.max_unavailable == 1
    assert decode_tree(encode(web)) == tree


def test_a_new_object_needs_no_status() -> None:
    assert Pod().status.phase is None
    assert Node().status.conditions is None
    assert Service().spec.cluster_ip is None


def test_a_list_the_server_sends_as_null_is_read_as_empty() -> None:
    slices = decode(EndpointSlice, b'{"addressType":"IPv4","endpoints":null,"ports":null,"metadata":{"name":"web-1"}}')

    assert slices.endpoints == []
    assert slices.ports is None


def test_a_zero_time_the_server_sends_as_null_is_read_as_none() -> None:
    event = decode(Event, b'{"eventTime":null,"metadata":{"name":"web.1"},"reason":"Started"}')

    assert event.event_time is None
    assert event.reason == "Started"


def test_a_schema_that_contains_schemas_of_its_own_kind_is_read_whole() -> None:
    tree: dict[str, Any] = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": {"size": {"type": "integer", "x-kubernetes-int-or-string": True}}}
        },
        "not": {"required": ["a"]},
        "$ref": "#/definitions/x",
        "x-kubernetes-preserve-unknown-fields": True,
        "default": {"any": ["json", 1]},
        "items": {"type": "string"},
    }

    schema = decode(JSONSchemaProps, encode_tree(tree))

    assert schema.properties is not None
    size = (schema.properties["spec"].properties or {})["size"]
    assert size.x_kubernetes_int_or_string is True
    assert schema.ref == "#/definitions/x"
    assert decode_tree(encode(schema)) == tree
    assert definition_of(CustomResourceDefinition).namespaced is False


def test_secret_data_is_bytes_in_python_and_base64_on_the_wire() -> None:
    secret = decode(Secret, b'{"data":{"password":"aHVudGVyMg==","empty":""}}')

    assert secret.data == {"password": b"hunter2", "empty": b""}
    assert decode_tree(encode(secret))["data"] == {"password": "aHVudGVyMg==", "empty": ""}


def test_a_lease_keeps_microseconds() -> None:
    lease = decode(Lease, b'{"spec":{"renewTime":"2024-05-01T10:00:00.000000Z"}}')

    assert lease.spec.renew_time == datetime(2024, 5, 1, 10, tzinfo=UTC)
    assert decode_tree(encode(lease))["spec"]["renewTime"] == "2024-05-01T10:00:00.000000Z"


def test_fields_named_like_builtin_types_have_an_underscore() -> None:
    attribute = DeviceAttribute(bool_=True, int_=3)

    assert decode_tree(encode(attribute)) == {"bool": True, "int": 3}


def test_what_every_object_has_comes_from_the_object_model() -> None:
    from kubewright.api import metadata
    from kubewright.k8s.meta import v1

    assert v1.ObjectMeta is metadata.ObjectMeta
    assert LabelSelector.__module__ == "kubewright.k8s.meta.v1"


def test_the_version_of_the_server_is_known() -> None:
    assert SERVER_VERSION.startswith("v1.")
