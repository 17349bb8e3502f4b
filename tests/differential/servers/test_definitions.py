"""Definitions without each of their fields, with null and with nothing in it: read and refused alike.

A client in another language than Go writes nulls and empty values where Go writes nothing. What comes back must be the
definition that a Go client would have written.

Covers: kubewright.apiserver.apiextensions
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import aiohttp
import pytest
from tests.differential.servers.rewrites import field_paths, with_value
from tests.differential.servers.server_pair import ServerPair, post, run_case

pytestmark = [pytest.mark.real]

Tree = dict[str, Any]

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PROPERTIES: Tree = {
    "spec": {"type": "object", "properties": {"a": {"type": "string", "enum": ["a"]}}},
    "list": {"type": "array", "items": {"type": "string", "description": ""}, "default": [], "nullable": False},
    "map": {"type": "object", "additionalProperties": {"type": "string", "pattern": ""}},
    "any": {"type": "string", "default": None, "example": "", "x-kubernetes-int-or-string": False},
}
WHOLE: Tree = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.{ns}.example.io", "labels": {"a": "b"}},
    "spec": {
        "group": "{ns}.example.io",
        "scope": "Namespaced",
        "names": {
            "plural": "things",
            "singular": "thing",
            "kind": "Thing",
            "listKind": "ThingList",
            "shortNames": ["t"],
            "categories": ["all"],
        },
        "conversion": {"strategy": "None"},
        "preserveUnknownFields": False,
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "deprecated": False,
                "deprecationWarning": None,
                "schema": {"openAPIV3Schema": {"type": "object", "description": "x", "properties": PROPERTIES}},
                "subresources": {
                    "status": {},
                    "scale": {
                        "specReplicasPath": ".spec.a",
                        "statusReplicasPath": ".status.a",
                        "labelSelectorPath": ".status.s",
                    },
                },
                "additionalPrinterColumns": [{"name": "a", "type": "string", "jsonPath": ".spec.a", "priority": 0}],
                "selectableFields": [{"jsonPath": ".spec.a"}],
            }
        ],
    },
    "status": {"conditions": [], "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": []},
}


def cases() -> Iterator[tuple[str, Tree]]:
    """The definition as it is, without each field, with null there and with an empty value."""
    yield "whole", WHOLE
    for path in field_paths(WHOLE, set()):
        for word in ("left out", "null", "empty"):
            yield f"{'.'.join(map(str, path))} {word}", with_value(WHOLE, path, word)
    for name in ("creationTimestamp", "deletionTimestamp"):
        for value in ("", "x", "2024-05-01T10:00:00+02:00", None):
            yield f"{name} {value}", {**WHOLE, "metadata": {**WHOLE["metadata"], name: value}}


async def test_a_definition_without_a_field_is_read_alike(quiet_pair: ServerPair) -> None:
    found, panics = [], []

    for name, tree in cases():
        try:
            await run_case(quiet_pair, [post(f"{DEFINITIONS}?dryRun=All", tree)])
        except AssertionError as error:
            found.append(f"{name}: {error}")
        except aiohttp.ServerDisconnectedError:
            panics.append(name)

    assert not found, f"{len(found)} differences\n" + "\n".join(found)
    # kube-apiserver follows a pointer that is nil there; the client of the embedded server gets an answer.
    assert all("spec.versions.0.schema" in name for name in panics)
