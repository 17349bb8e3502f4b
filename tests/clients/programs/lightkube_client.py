"""lightkube: typed objects, a generic custom resource, apply, waiting, deletion; says `done` at the end."""

# The packages these programs are about are untyped, or typed more narrowly than their documentation.
# mypy: ignore-errors

from __future__ import annotations

import sys

import pytest
from lightkube import ApiError, Client, codecs
from lightkube.generic_resource import create_namespaced_resource
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import ConfigMap, Pod
from lightkube.types import CascadeType, PatchType

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: light}
spec:
  replicas: 1
  selector: {matchLabels: {app: light}}
  template:
    metadata: {labels: {app: light}}
    spec: {containers: [{name: c, image: nginx}]}
"""


def main(namespace: str) -> None:
    """Everything in one namespace."""
    client = Client(namespace=namespace, field_manager="lightkube")
    made = client.create(ConfigMap(metadata=ObjectMeta(name="a"), data={"x": "1"}))
    client.patch(ConfigMap, "a", {"data": {"x": "2"}}, patch_type=PatchType.MERGE)
    assert client.get(ConfigMap, "a").data == {"x": "2"}
    with pytest.raises(ApiError, match="the object has been modified"):
        client.replace(made)
    for obj in codecs.load_all_yaml(WEB):
        client.apply(obj)
    client.wait(Deployment, "light", for_conditions=["Available"])
    assert [pod.status.phase for pod in client.list(Pod, labels={"app": "light"})] == ["Running"]
    Widget = create_namespaced_resource("clients.example.io", "v1", "Widget", "widgets")  # noqa: N806 - a class
    client.create(Widget(metadata=ObjectMeta(name="w"), spec={"size": 4}))
    event, found = next(iter(client.watch(Widget)))
    assert (event, found.spec) == ("ADDED", {"size": 4})
    client.delete(Deployment, "light", cascade=CascadeType.FOREGROUND)
    client.deletecollection(ConfigMap)
    client.delete(Widget, "w")
    print("done")


if __name__ == "__main__":
    main(sys.argv[1])
