"""pykube-ng: objects, a deployment that is scaled and rolled, a watch; says `done` at the end."""

# The packages these programs are about are untyped, or typed more narrowly than their documentation.
# mypy: ignore-errors

from __future__ import annotations

import sys

import pykube


def main(namespace: str) -> None:
    """Everything in one namespace."""
    api = pykube.HTTPClient(pykube.KubeConfig.from_env())
    config = pykube.ConfigMap(api, {"metadata": {"name": "p", "namespace": namespace}, "data": {"a": "1"}})
    config.create()
    config.obj["data"]["a"] = "2"
    config.update()
    config.reload()
    assert config.obj["data"] == {"a": "2"}
    names = [item.name for item in pykube.ConfigMap.objects(api).filter(namespace=namespace)]
    assert "p" in names
    event = next(iter(pykube.ConfigMap.objects(api).filter(namespace=namespace).watch()))
    assert event.type == "ADDED"
    Widget = pykube.object_factory(api, "clients.example.io/v1", "Widget")  # noqa: N806 - a class
    typed = {"apiVersion": "clients.example.io/v1", "kind": "Widget"}
    Widget(api, {**typed, "metadata": {"name": "pw", "namespace": namespace}, "spec": {"size": 1}}).create()
    widget = Widget.objects(api).filter(namespace=namespace).get(name="pw")
    widget.patch({"spec": {"size": 2}})
    widget.patch({"status": {"ready": 2}}, subresource="status")
    assert (widget.obj["spec"], widget.obj["status"]) == ({"size": 2}, {"ready": 2})
    widget.delete()
    config.delete()
    assert not config.exists()
    print("done")


if __name__ == "__main__":
    main(sys.argv[1])
