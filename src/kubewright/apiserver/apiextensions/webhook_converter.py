"""Custom resources converted between versions by a webhook, as their definition says.

One call converts many objects. What may not change is checked and put back: kind, name, namespace, uid, and all of the
metadata but labels and annotations. A webhook that fails makes the request fail that needed it.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, Final, final

from kubewright.apiserver.kinds.resources import Tree
from kubewright.apiserver.outbound.service_resolver import ServiceResolver
from kubewright.apiserver.outbound.webhook_client import CallFailed, WebhookClient, check_type
from kubewright.apiserver.outbound.webhook_target import target_of_client
from kubewright.apiserver.wire.go_json import json_type_name
from kubewright.apiserver.wire.status_errors import StatusError, status_error

__all__ = ("WebhookConverter", "converter_of")

_GROUP: Final = "apiextensions.k8s.io"
_KNOWN: Final = frozenset({(f"{_GROUP}/v1", "ConversionReview"), (f"{_GROUP}/v1beta1", "ConversionReview")})
_TIMEOUT: Final = 30
_GO: Final = {dict: "map[string]interface {}", list: "[]interface {}", str: "string", bool: "bool", float: "float64"}


def converter_of(
    conversion: Mapping[str, Any], *, webhooks: WebhookClient, addresses: ServiceResolver
) -> WebhookConverter | None:
    """The converter for the conversion stanza of a definition; None if the strategy is to rewrite apiVersion alone."""
    if conversion.get("strategy") != "Webhook":
        return None
    return WebhookConverter(conversion.get("webhook") or {}, webhooks, addresses)


@final
class WebhookConverter:
    """The converter of one definition."""

    def __init__(self, webhook: Mapping[str, Any], caller: WebhookClient, addresses: ServiceResolver) -> None:
        self._caller = caller
        self._target = target_of_client(webhook.get("clientConfig") or {}, addresses)
        self._versions = tuple(webhook.get("conversionReviewVersions") or ())

    async def convert(self, trees: list[Tree], api_version: str) -> list[Tree]:
        """The objects in another version; raises `StatusError` if the webhook does not do it."""
        version = next((item for item in self._versions if item in ("v1", "v1beta1")), "")
        if not version:
            raise _failed("no supported conversion review versions")
        if not trees:
            return []
        about = _kind_of(trees[0])
        uid = str(uuid.uuid4())
        review = {
            "kind": "ConversionReview",
            "apiVersion": f"{_GROUP}/{version}",
            "request": {"uid": uid, "desiredAPIVersion": api_version, "objects": trees},
            "response": {"uid": "", "convertedObjects": None, "result": {"metadata": {}}},
        }
        try:
            answer = await self._caller.call(self._target, review, timeout=_TIMEOUT)
            found = _objects(answer, uid, version)
        except CallFailed as error:
            raise _failed(f"conversion webhook for {about} failed: {error}") from None
        if len(found) != len(trees):
            raise _failed(f"conversion webhook for {about} returned {len(found)} objects, expected {len(trees)}")
        for index, (before, after) in enumerate(zip(trees, found, strict=True)):
            _check(before, after, index, api_version, about)
        return found


def _objects(answer: Mapping[str, Any], uid: str, version: str) -> list[Any]:
    api_version = f"{_GROUP}/{version}"
    check_type(answer, api_version, "ConversionReview", _KNOWN)
    if version == "v1" and (answer.get("apiVersion"), answer.get("kind")) != (api_version, "ConversionReview"):
        said = str(answer.get("apiVersion") or "/")
        raise CallFailed(
            f"expected webhook response of {api_version}, Kind=ConversionReview, got {said}, Kind="
            f"{answer.get('kind') or ''}"
        )
    response = answer.get("response")
    if response is None:
        raise CallFailed("no response provided")
    if not isinstance(response, dict):
        raise CallFailed(
            f"json: cannot unmarshal {json_type_name(response)} into Go struct field ConversionReview.response of type"
            f" {version}.ConversionResponse"
        )
    if version == "v1" and response.get("uid", "") != uid:
        raise CallFailed(f'expected response.uid="{uid}", got "{response.get("uid", "")}"')
    result = response.get("result") or {}
    if result.get("status") != "Success":
        status = result.get("status") or ""
        raise CallFailed(result.get("message") or f"response.result.status was '{status}', not 'Success'")
    found: list[Any] = response.get("convertedObjects") or []
    return found


def _check(before: Tree, after: Any, index: int, api_version: str, about: str) -> None:
    """Refuse what is not the same object in the other version; put back what a conversion may not change."""
    where = f"conversion webhook for {about} returned invalid object at index {index}: "
    if not isinstance(after, dict) or not after.get("kind"):
        raise _failed(f"{where}Object 'Kind' is missing")
    said = str(after.get("apiVersion") or "")
    if said != api_version:
        raise _failed(f"{where}invalid groupVersion (expected {api_version}, received {said})")
    if after["kind"] != before["kind"]:
        raise _failed(f"{where}invalid kind (expected {before['kind']}, received {after['kind']})")
    meta = after.get("metadata") if isinstance(after.get("metadata"), dict) else {}
    for name, word in (("name", "name"), ("namespace", "namespace"), ("uid", "UID")):
        wanted, given = (before.get("metadata") or {}).get(name) or "", (meta or {}).get(name) or ""
        if wanted != given:
            text = f"must have the same {word}: {wanted} != {given}"
            raise _failed(f"conversion webhook for {about} returned invalid object: {text}")
    _restore(before, after, about)


def _restore(before: Tree, after: Tree, about: str) -> None:
    where = f"conversion webhook for {about} returned invalid metadata: "
    if "metadata" not in after:
        raise _failed(f"{where}missing metadata in converted object")
    given = after["metadata"]
    if not isinstance(given, dict):
        kind = _GO.get(type(given), "<nil>" if given is None else "int64")
        raise _failed(f"{where}invalid metadata of type {kind} in converted object")
    own = before.get("metadata") or {}  # none, where an apply has taken away everything of it
    kept = {name: value for name, value in own.items() if name not in ("labels", "annotations")}
    for name in ("labels", "annotations"):
        if given.get(name):
            kept[name] = given[name]
    after["metadata"] = kept


def _kind_of(tree: Tree) -> str:
    return f"{tree.get('apiVersion', '')}, Kind={tree.get('kind', '')}"


def _failed(message: str) -> StatusError:
    return status_error(500, "", message)
