"""ConversionReview: a list of objects in, the same list in another version out.

All or nothing, as the API server wants it: one object that cannot be converted fails the review, and the message names
it. A long list gives the event loop its turn now and then. No HTTP; `service` calls it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Any, Final, final

import msgspec

from kubewright._base.logs import Logger
from kubewright.api.codec import encode_tree
from kubewright.api.resource import definition_of
from kubewright.errors import ApiError, DecodeError
from kubewright.webhooks.conversion.declarations import (
    ConversionDeclaration,
    ConversionFailed,
    Converters,
    group_kind_of,
)

__all__ = ("Conversions",)

_log = Logger("kubewright.webhooks")

_TURN: Final = 0.01
"""Seconds of conversion after which others get their turn."""


@final
class _Request(msgspec.Struct, frozen=True, rename="camel", gc=False):
    uid: str
    desired_api_version: str = msgspec.field(name="desiredAPIVersion")
    objects: list[dict[str, Any]] = []


@final
class _Review(msgspec.Struct, frozen=True, rename="camel", gc=False):
    api_version: str = ""
    kind: str = ""
    request: _Request | None = None


_DECODER: Final = msgspec.json.Decoder(_Review)


@final
class Conversions:
    """The converters of every kind, and the reviews they answer."""

    def __init__(self, *, on_failure: Callable[[], None] | None = None) -> None:
        self._kinds: dict[tuple[str, str], Converters] = {}
        self._on_failure = on_failure

    def add(self, declaration: ConversionDeclaration[Any, Any]) -> None:
        """One converter more."""
        gvk = definition_of(declaration.old).gvk
        self._kinds.setdefault((gvk.group, gvk.kind), Converters(())).add(declaration)

    def __bool__(self) -> bool:
        return bool(self._kinds)

    def kinds(self) -> Iterable[tuple[str, str]]:
        """Group and kind of what can be converted."""
        return self._kinds.keys()

    async def answer(self, body: bytes) -> bytes:
        """The review to send back; `DecodeError` if the body is none."""
        try:
            review = _DECODER.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise DecodeError(f"the body is no ConversionReview: {error}") from None
        request = review.request
        if (
            request is None
            or review.kind != "ConversionReview"
            or not review.api_version.startswith("apiextensions.k8s.io/")
        ):
            raise DecodeError("the body is no ConversionReview of apiextensions.k8s.io with a request")
        response: dict[str, Any] = {"uid": request.uid}
        try:
            response["convertedObjects"] = await self._converted(request)
            response["result"] = {"status": "Success"}
        except ConversionFailed as error:
            response["result"] = {"status": "Failure", "message": str(error)}
        return encode_tree({"apiVersion": review.api_version, "kind": "ConversionReview", "response": response})

    async def _converted(self, request: _Request) -> list[dict[str, Any]]:
        result: list[dict[str, Any]] = []
        started = time.perf_counter()
        for tree in request.objects:
            result.append(self._one(tree, request.desired_api_version))
            if time.perf_counter() - started > _TURN:
                await asyncio.sleep(0)
                started = time.perf_counter()
        return result

    def _one(self, tree: dict[str, Any], wanted: str) -> dict[str, Any]:
        try:
            converters = self._kinds.get(group_kind_of(tree))
        except DecodeError as error:
            raise ConversionFailed(str(error)) from None
        if converters is None:
            raise ConversionFailed(f"nothing was declared to convert {tree.get('apiVersion')} {tree.get('kind')}")
        try:
            return converters.converted_tree(tree, wanted)
        except ConversionFailed:
            raise
        except Exception as error:
            metadata = tree.get("metadata") or {}
            where = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}".lstrip("/")
            if isinstance(error, ApiError) and not error.request:  # said by the converter itself, with `deny`
                raise ConversionFailed(f"{tree.get('kind')} {where}: {error.message}") from None
            _log.exception("a converter failed", kind=tree.get("kind"), object=where, wanted=wanted, error=error)
            if self._on_failure is not None:
                self._on_failure()
            what = f"{tree.get('kind')} {where} could not be converted from {tree.get('apiVersion')} to {wanted}"
            raise ConversionFailed(f"{what}; the log of its operator says why") from None
