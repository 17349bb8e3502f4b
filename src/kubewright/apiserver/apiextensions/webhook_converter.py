"""Converts custom resources between versions by the conversion webhook of their CRD.

One call converts many objects. Kind, name, namespace and uid must stay the same, and all metadata but labels and
annotations are restored. If the webhook fails, the request fails. It follows
k8s.io/apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, Final, final

from kubewright.api.field_errors import summary
from kubewright.apiserver.kinds.resources import Tree
from kubewright.apiserver.outbound.service_resolver import ServiceResolver
from kubewright.apiserver.outbound.webhook_client import (
    WebhookCallError,
    WebhookClient,
    check_fields,
    check_status,
    check_type,
)
from kubewright.apiserver.outbound.webhook_target import target_of_client_config
from kubewright.apiserver.wire.go_json import json_type_name
from kubewright.apiserver.wire.status_errors import StatusError, status_error
from kubewright.schema.check.object_metadata import shared_metadata_errors

__all__ = ("WebhookConverter", "converter_of")

_GROUP: Final = "apiextensions.k8s.io"
_KNOWN: Final = frozenset({(f"{_GROUP}/v1", "ConversionReview"), (f"{_GROUP}/v1beta1", "ConversionReview")})
_TYPES: Final = {"result": (dict, "v1.Status"), "convertedObjects": (list, "[]runtime.RawExtension")}
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
    """The converter of one CRD."""

    def __init__(self, webhook: Mapping[str, Any], caller: WebhookClient, resolver: ServiceResolver) -> None:
        self._caller = caller
        self._target = target_of_client_config(webhook.get("clientConfig") or {}, resolver)
        self._versions = tuple(webhook.get("conversionReviewVersions") or ())

    async def convert(self, trees: list[Tree], api_version: str) -> list[Tree]:
        """The objects in another version; raises `StatusError` if the webhook fails."""
        version = next((item for item in self._versions if item in ("v1", "v1beta1")), "")
        if not version:
            raise _conversion_error("no supported conversion review versions")
        if not trees:
            return []
        kind = _kind_of(trees[0])
        uid = str(uuid.uuid4())
        review = {
            "kind": "ConversionReview",
            "apiVersion": f"{_GROUP}/{version}",
            "request": {"uid": uid, "desiredAPIVersion": api_version, "objects": trees},
            "response": {"uid": "", "convertedObjects": None, "result": {"metadata": {}}},
        }
        try:
            review_response = await self._caller.call(self._target, review, timeout=_TIMEOUT)
            found = _converted_objects(review_response, uid, version)
        except WebhookCallError as error:
            raise _conversion_error(f"conversion webhook for {kind} failed: {error}") from None
        if len(found) != len(trees):
            raise _conversion_error(
                f"conversion webhook for {kind} returned {len(found)} objects, expected {len(trees)}"
            )
        for index, (before, after) in enumerate(zip(trees, found, strict=True)):
            _validate_converted(before, after, index, api_version, kind)
        return found


def _converted_objects(review_response: Mapping[str, Any], uid: str, version: str) -> list[Any]:
    api_version = f"{_GROUP}/{version}"
    check_type(review_response, api_version, "ConversionReview", _KNOWN)
    if version == "v1" and (review_response.get("apiVersion"), review_response.get("kind")) != (
        api_version,
        "ConversionReview",
    ):
        given_version = str(review_response.get("apiVersion") or "/")
        raise WebhookCallError(
            f"expected webhook response of {api_version}, Kind=ConversionReview, got {given_version}, Kind="
            f"{review_response.get('kind') or ''}"
        )
    response = review_response.get("response")
    if response is None:
        raise WebhookCallError("no response provided")
    if not isinstance(response, dict):
        raise WebhookCallError(
            f"json: cannot unmarshal {json_type_name(response)} into Go struct field ConversionReview.response of type"
            f" {version}.ConversionResponse"
        )
    if version == "v1" and response.get("uid", "") != uid:
        raise WebhookCallError(f'expected response.uid="{uid}", got "{response.get("uid", "")}"')
    check_fields(response, _TYPES, "ConversionResponse.response")
    result = response.get("result") or {}
    check_status(result, "response.result")
    if result.get("status") != "Success":
        status = result.get("status") or ""
        raise WebhookCallError(result.get("message") or f"response.result.status was '{status}', not 'Success'")
    found: list[Any] = response.get("convertedObjects") or []
    return found


def _validate_converted(before: Tree, after: Any, index: int, api_version: str, kind: str) -> None:
    """Raise if this is not the same object in the other version, and restore what a conversion may not change."""
    where = f"conversion webhook for {kind} returned invalid object at index {index}: "
    if not isinstance(after, dict) or not after.get("kind"):
        raise _conversion_error(f"{where}Object 'Kind' is missing")
    given_version = str(after.get("apiVersion") or "")
    if given_version != api_version:
        raise _conversion_error(f"{where}invalid groupVersion (expected {api_version}, received {given_version})")
    if after["kind"] != before["kind"]:
        raise _conversion_error(f"{where}invalid kind (expected {before['kind']}, received {after['kind']})")
    meta = after.get("metadata") if isinstance(after.get("metadata"), dict) else {}
    for name, word in (("name", "name"), ("namespace", "namespace"), ("uid", "UID")):
        wanted, given = (before.get("metadata") or {}).get(name) or "", (meta or {}).get(name) or ""
        if wanted != given:
            text = f"must have the same {word}: {wanted} != {given}"
            raise _conversion_error(f"conversion webhook for {kind} returned invalid object: {text}")
    _restore_object_meta(before, after, kind)


def _restore_object_meta(before: Tree, after: Tree, kind: str) -> None:
    where = f"conversion webhook for {kind} returned invalid metadata: "
    if "metadata" not in after:
        raise _conversion_error(f"{where}missing metadata in converted object")
    given = after["metadata"]
    if not isinstance(given, dict):
        raise _conversion_error(f"{where}invalid metadata of type {_go_type(given)} in converted object")
    own = before.get("metadata") or {}  # none after a prune by server-side apply
    restored = {name: value for name, value in own.items() if name not in ("labels", "annotations")}
    for name in ("labels", "annotations"):
        if given.get(name) is not None:
            _check_text_map(given[name], name, where)
            if given[name]:
                restored[name] = given[name]
    after["metadata"] = restored


def _check_text_map(value: Any, name: str, where: str) -> None:
    """Raise unless these are labels or annotations: nobody looks at them again before they are stored and selected."""
    if not isinstance(value, dict):
        raise _conversion_error(f"{where}invalid metadata.{name} of type {_go_type(value)} in converted object")
    for key, text in value.items():
        if not isinstance(text, str):
            what = f"metadata.{name}[{key}] must be a string, but is {_go_type(text)} in converted object"
            raise _conversion_error(f"{where}{what}")
    errors = shared_metadata_errors({name: value}, path="metadata", finalizers=False)
    if errors:
        raise _conversion_error(where + summary(errors))


def _go_type(value: Any) -> str:
    return _GO.get(type(value), "<nil>" if value is None else "int64")


def _kind_of(tree: Tree) -> str:
    return f"{tree.get('apiVersion', '')}, Kind={tree.get('kind', '')}"


def _conversion_error(message: str) -> StatusError:
    return status_error(500, "", message)
