"""Reviews to send to webhooks in tests, and their answers read back."""

from __future__ import annotations

import base64
import json
from typing import Any

from kubewright._base.http.messages import Request, Response
from kubewright.api.kinds import GroupVersionKind
from kubewright.api.patches import apply_json_patch
from kubewright.webhooks.serving.router import WebhookRouter

__all__ = ("admit", "patched", "request", "response", "review")


def review(
    gvk: GroupVersionKind,
    obj: Any = None,
    *,
    old: Any = None,
    operation: str = "CREATE",
    version: str = "v1",
    **request: Any,
) -> dict[str, Any]:
    kind = {"group": gvk.group, "version": gvk.version, "kind": gvk.kind}
    return {
        "apiVersion": f"admission.k8s.io/{version}",
        "kind": "AdmissionReview",
        "request": {
            "uid": "7d3f",
            "kind": kind,
            "resource": {"group": gvk.group, "version": gvk.version, "resource": f"{gvk.kind.lower()}s"},
            "name": "web",
            "namespace": "shop",
            "operation": operation,
            "userInfo": {"username": "jo", "groups": ["dev"], "extra": {"scopes": ["a"]}},
            "object": obj,
            "oldObject": old,
            "dryRun": False,
            "options": None,
            **request,
        },
    }


def request(path: str, body: Any, *, content_type: str = "application/json", query: str = "") -> Request:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    target = f"{path}?{query}" if query else path
    return Request(method="POST", target=target, headers={"content-type": content_type}, body=data)


def response(answer: Response) -> dict[str, Any]:
    assert answer.code == 200, answer.body
    tree: dict[str, Any] = json.loads(answer.body)["response"]
    return tree


async def admit(webhooks: WebhookRouter, path: str, body: Any, *, query: str = "") -> dict[str, Any]:
    return response(await webhooks.handle(request(path, body, query=query)))


def patched(obj: Any, answered: dict[str, Any]) -> Any:
    """The object after the patch in the answer."""
    if "patch" not in answered:
        return obj
    assert answered["patchType"] == "JSONPatch"
    return apply_json_patch(obj, json.loads(base64.b64decode(answered["patch"])))
