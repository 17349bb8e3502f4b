"""Requests at random, but near the mark: drawn from the server's own OpenAPI documents, then spoilt here and there.

A path is one of the documented ones with names put in; a query has documented parameters with fitting and unfitting
values; a body follows the schema of the operation, or almost does, or is any JSON, or any bytes. For the common kinds
there is a proper object to start from: what is spoilt in one place gets further than what is wrong everywhere.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from hypothesis import strategies as st

from kubewright._base.yaml import load
from kubewright.apiserver.wire.protobuf import decode

__all__ = ("Operation", "RandomRequest", "is_meant", "operations_of", "requests_to")

Tree = dict[str, Any]

NAMES = ("default",) * 6 + ("a", "b", "c") * 2
ODD_NAMES = ("kubernetes", "x.y", "A_b", "..", "a/b", "%", "\x00", "ä", "a" * 300, "")
VALUES = (
    "",
    "0",
    "1",
    "-1",
    "true",
    "false",
    "All",
    "abc",
    "a=b",
    "a in (b)",
    "metadata.name=a",
    "1s",
    "Strict",
    "Exact",
)
WORDS = ("a", "", "v1", "ConfigMap", "Always", "10Mi", "1.5", "80%", "x/y", "2026-11-15T12:00:00Z", "ä\u0000", "a" * 70)
LEFT_OUT = ("proxy", "exec", "attach", "portforward", "log")
MEDIA = (
    *("application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "text/plain", ""),
    *("application/merge-patch+json", "application/json-patch+json", "application/strategic-merge-patch+json"),
    *("application/apply-patch+yaml", "application/apply-patch+yaml"),
)
ACCEPTED = (
    *("application/json",) * 8,
    *("application/json", "application/yaml", "*/*", "application/json;as=Table;v=v1;g=meta.k8s.io", "text/html"),
    *("application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", "application/vnd.kubernetes.protobuf", ";;q=x"),
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
)


_POD: Tree = {
    "containers": [
        {
            "name": "c",
            "image": "nginx",
            "ports": [{"containerPort": 80, "name": "http"}],
            "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            "resources": {"requests": {"cpu": "100m", "memory": "10Mi"}, "limits": {"memory": "20Mi"}},
            "livenessProbe": {"httpGet": {"path": "/", "port": "http"}},
            "volumeMounts": [{"name": "v", "mountPath": "/v"}],
        }
    ],
    "volumes": [{"name": "v", "configMap": {"name": "a", "items": [{"key": "k", "path": "p"}]}}],
    "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoSchedule"}],
    "nodeSelector": {"a": "b"},
}
_TEMPLATE: Tree = {"metadata": {"labels": {"app": "a"}}, "spec": _POD}
_SELECTOR: Tree = {"matchLabels": {"app": "a"}, "matchExpressions": [{"key": "app", "operator": "In", "values": ["a"]}]}
_JOB: Tree = {"template": {"spec": {**_POD, "restartPolicy": "Never"}}, "completions": 2, "backoffLimit": 1}
SAMPLES: dict[str, Tree] = {
    "configmaps": {"data": {"a": "b"}, "binaryData": {"c": "ZA=="}, "immutable": False},
    "secrets": {"type": "Opaque", "stringData": {"a": "b"}, "data": {"c": "ZA=="}},
    "namespaces": {"spec": {"finalizers": ["kubernetes"]}},
    "pods": {"spec": _POD},
    "deployments": {
        "spec": {
            "replicas": 1,
            "selector": _SELECTOR,
            "template": _TEMPLATE,
            "strategy": {"rollingUpdate": {"maxSurge": "25%"}},
        }
    },
    "statefulsets": {"spec": {"selector": _SELECTOR, "template": _TEMPLATE, "serviceName": "a"}},
    "daemonsets": {"spec": {"selector": _SELECTOR, "template": _TEMPLATE}},
    "jobs": {"spec": _JOB},
    "cronjobs": {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": _JOB}}},
    "services": {"spec": {"selector": {"a": "b"}, "ports": [{"port": 80, "targetPort": "http", "protocol": "TCP"}]}},
    "roles": {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]},
    "clusterroles": {
        "rules": [{"nonResourceURLs": ["/x"], "verbs": ["get"]}],
        "aggregationRule": {"clusterRoleSelectors": [_SELECTOR]},
    },
    "leases": {"spec": {"holderIdentity": "a", "leaseDurationSeconds": 5, "renewTime": "2026-11-15T12:00:00.000000Z"}},
    "horizontalpodautoscalers": {
        "spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "a", "apiVersion": "apps/v1"}}
    },
    "poddisruptionbudgets": {"spec": {"minAvailable": "50%", "selector": _SELECTOR}},
    "ingresses": {
        "spec": {
            "defaultBackend": {"service": {"name": "a", "port": {"number": 80}}},
            "rules": [{"host": "a.example.com"}],
        }
    },
    "networkpolicies": {
        "spec": {"podSelector": _SELECTOR, "ingress": [{"ports": [{"port": 80}]}], "policyTypes": ["Ingress"]}
    },
    "validatingwebhookconfigurations": {
        "webhooks": [
            {
                "name": "a.example.com",
                "clientConfig": {"url": "https://127.0.0.1:1/x"},
                "rules": [
                    {"apiGroups": ["x.example.com"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["*"]}
                ],
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
                "matchConditions": [{"name": "a", "expression": "true"}],
            }
        ]
    },
    "validatingadmissionpolicies": {
        "spec": {
            "matchConstraints": {
                "resourceRules": [
                    {"apiGroups": ["x.example.com"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}
                ]
            },
            "validations": [{"expression": "object.spec.size > 1", "messageExpression": "'a' + 'b'"}],
            "variables": [{"name": "v", "expression": "1 + 1"}],
        }
    },
    "customresourcedefinitions": {
        "spec": {
            "group": "random.example.com",
            "names": {"kind": "Thing", "plural": "things"},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "subresources": {
                        "status": {},
                        "scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"},
                    },
                    "additionalPrinterColumns": [{"name": "N", "type": "integer", "jsonPath": ".spec.n"}],
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {
                                "spec": {
                                    "type": "object",
                                    "properties": {"n": {"type": "integer", "minimum": 1, "default": 2}},
                                    "x-kubernetes-validations": [{"rule": "self.n > 0", "message": "m"}],
                                }
                            },
                        }
                    },
                }
            ],
        }
    },
}


class Operation(NamedTuple):
    """A method of a path, its parameters, the schema of its body, and the schemas that refers to."""

    method: str
    path: str
    parameters: tuple[str, ...]
    schema: Tree
    schemas: Mapping[str, Tree]
    kind: Mapping[str, str]
    """Group, version and kind of what the operation is about; empty if it is about no kind."""


class RandomRequest(NamedTuple):
    """One request."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes | None

    @property
    def is_watch(self) -> bool:
        """Whether the answer may have no end."""
        return "watch" in self.path


def operations_of(document: Tree) -> list[Operation]:
    """Every operation of an OpenAPI 3 document, but those that need a kubelet."""
    found = []
    schemas = document.get("components", {}).get("schemas", {})
    for path, item in document["paths"].items():
        if any(part in LEFT_OUT for part in path.split("/")):
            continue
        shared = [parameter["name"] for parameter in item.get("parameters", ()) if parameter.get("in") == "query"]
        for method in ("get", "post", "put", "patch", "delete"):
            if method not in item:
                continue
            own = [each["name"] for each in item[method].get("parameters", ()) if each.get("in") == "query"]
            content = item[method].get("requestBody", {}).get("content", {})
            schema: Tree = next((value.get("schema", {}) for value in content.values()), {})
            kind = item[method].get("x-kubernetes-group-version-kind", {})
            found.append(Operation(method.upper(), path, (*shared, *own), schema, schemas, kind))
    return found


def is_meant(code: int, body: bytes) -> bool:
    """Whether an error is one kube-apiserver gives, too: for a version yet to come, or an error without a reason."""
    # YAML knows no control characters, which a message may quote.
    read = decode if body.startswith(b"k8s\x00") else json.loads if body.startswith(b"{") else load
    status: Any = read(body) or {}
    too_large = code == 504 and "Too large resource version" in status.get("message", "")
    return too_large or (code == 500 and status.get("kind") == "Status" and not status.get("reason"))


def _json(depth: int = 3) -> st.SearchStrategy[Any]:
    plain = (
        st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.sampled_from(WORDS)
    )
    return st.recursive(
        plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=3)
    ) if depth else plain  # fmt: skip


ANYTHING = _json()


def _name() -> st.SearchStrategy[str]:
    return st.integers(0, 9).flatmap(lambda odd: st.sampled_from(NAMES if odd else ODD_NAMES))


def _resolved(schema: Tree, schemas: Mapping[str, Tree]) -> Tree:
    while "$ref" in schema or "allOf" in schema:
        schema = schema["allOf"][0] if "allOf" in schema else schemas[schema["$ref"].rpartition("/")[2]]
    return schema


@st.composite
def _fitting(draw: st.DrawFn, schema: Tree, schemas: Mapping[str, Tree], depth: int = 0) -> Any:
    """A value of a schema; now and then it is something else."""
    if draw(st.integers(0, 120)) == 120:
        return draw(ANYTHING)
    schema = _resolved(schema, schemas)
    kind = schema.get("type")
    if kind == "object" and "properties" in schema:
        names = [name for name in schema["properties"] if name not in ("status", "managedFields")]
        needed = [name for name in schema.get("required", ()) if name in names]
        some = draw(st.lists(st.sampled_from(names), max_size=3 if depth < 6 else 0, unique=True)) if names else []
        return {
            name: draw(_fitting(schema["properties"][name], schemas, depth + 1))
            for name in dict.fromkeys([*needed, *some])
        }
    if kind == "object":
        inner = schema.get("additionalProperties")
        values = _fitting(inner, schemas, depth + 1) if isinstance(inner, dict) and depth < 6 else ANYTHING
        return draw(st.dictionaries(st.sampled_from(WORDS), values, max_size=2))
    if kind == "array":
        return draw(st.lists(_fitting(schema.get("items", {}), schemas, depth + 1), max_size=2 if depth < 6 else 0))
    if kind == "integer":
        return draw(st.integers(-2, 100) | st.integers(-(2**70), 2**70))
    if kind == "boolean":
        return draw(st.booleans())
    return draw(st.sampled_from((*WORDS, *schema.get("enum", ()))))


@st.composite
def requests_to(draw: st.DrawFn, operations: list[Operation]) -> RandomRequest:
    """A request to one of the operations."""
    operation = draw(st.sampled_from(operations))
    path = operation.path
    while "{" in path:
        before, _, rest = path.partition("{")
        path = before + quote(draw(_name()), safe=draw(st.sampled_from(("", "/")))) + rest.partition("}")[2]
    names = st.sampled_from(operation.parameters or ("x",))
    query = draw(st.dictionaries(names, st.sampled_from((*VALUES, *WORDS)), max_size=3))
    method = draw(st.sampled_from((operation.method,) * 12 + ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")))
    media = draw(st.sampled_from(MEDIA)) if method == "PATCH" or draw(st.integers(0, 9)) == 9 else "application/json"
    headers = {"Content-Type": media, "Accept": draw(st.sampled_from(ACCEPTED)), "User-Agent": "random/1"}
    return RandomRequest(
        method, path + (f"?{urlencode(query)}" if query else ""), headers, draw(_body(operation, method))
    )


@st.composite
def _spoilt(draw: st.DrawFn, sample: Tree) -> Tree:
    """A proper object with a few of its members, wherever they are, replaced or taken away."""
    tree: Tree = json.loads(json.dumps(sample))
    for _ in range(draw(st.integers(0, 3))):
        places: list[tuple[Any, Any]] = []
        _collect(tree, places)
        if not places:
            break
        holder, key = draw(st.sampled_from(places))
        if draw(st.booleans()):
            holder[key] = draw(ANYTHING)
        else:
            del holder[key]
    return tree


def _collect(node: Any, places: list[tuple[Any, Any]]) -> None:
    inner = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in inner:
        places.append((node, key))
        _collect(value, places)


@st.composite
def _body(draw: st.DrawFn, operation: Operation, method: str) -> bytes | None:
    if method in ("GET", "OPTIONS"):
        return None
    chosen = draw(st.integers(0, 19))
    if chosen == 19:
        return draw(st.binary(max_size=60))
    if method == "PATCH" and chosen > 12:
        operator = st.sampled_from(("add", "remove", "replace", "move", "copy", "test", "x"))
        where = st.sampled_from(
            ("", "/", "/metadata/labels", "/metadata/name", "/spec", "/data/a", "/x/0", "a", "/kind")
        )
        step = st.fixed_dictionaries({"op": operator, "path": where, "from": where, "value": ANYTHING})
        return json.dumps(draw(st.lists(step, max_size=3))).encode()
    sample = next((SAMPLES[part] for part in operation.path.split("/")[::-1] if part in SAMPLES), None)
    if sample is not None and chosen < 13:
        crd = "things.random.example.com" if sample is SAMPLES["customresourcedefinitions"] else ""
        name = crd or draw(_name())
        return json.dumps(draw(_spoilt({"metadata": {"name": name, "labels": {"a": "b"}}, **sample}))).encode()
    tree = draw(ANYTHING if chosen == 18 else _fitting(operation.schema, operation.schemas))
    if isinstance(tree, dict) and chosen < 16 and isinstance(tree.get("metadata", {}), dict):
        tree["metadata"] = {**tree.get("metadata", {}), "name": draw(_name())}
        tree.pop("apiVersion", None)
        tree.pop("kind", None)
    return json.dumps(tree).encode()
