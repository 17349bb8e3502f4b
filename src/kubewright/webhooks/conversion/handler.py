"""ConversionHandler: answers a ConversionReview, a list of objects to convert to another version.

The review fails as a whole if one object cannot be converted, and the message names that object: the API server accepts
no partial result. A long list yields to the event loop now and then. No HTTP; `serving.router` calls it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Any, Final, final

import msgspec

from kubewright._base.deep_json import DeepDecoder, deeply
from kubewright._base.json_values import has_more_values
from kubewright._base.logs import Logger
from kubewright.api.codec import encode_tree
from kubewright.api.resource import definition_of
from kubewright.errors import ApiError, DecodeError
from kubewright.webhooks.conversion.declarations import (
    ConversionDeclaration,
    ConversionError,
    Converters,
    group_kind_of,
)

__all__ = ("ConversionHandler",)

_log = Logger("kubewright.webhooks")

_TURN_SECONDS: Final = 0.01
"""Seconds of conversion after which other tasks of the event loop run."""


_OBJECT_LIMIT: Final = 3 * 1024 * 1024
"""Bytes of one object: the API server takes no larger one."""
_MAX_VALUES: Final = 100_000
"""Of one object, decoded. Objects of people have some thousands."""


@final
class _Object(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """What every object has; a list of anything smaller is refused before it is read into memory."""

    api_version: str
    kind: str


@final
class _RequestOutline(msgspec.Struct, frozen=True, gc=False):
    objects: list[_Object] = []


@final
class _ReviewOutline(msgspec.Struct, frozen=True, gc=False):
    request: _RequestOutline | None = None


@final
class _Request(msgspec.Struct, frozen=True, rename="camel", gc=False):
    uid: str
    desired_api_version: str = msgspec.field(name="desiredAPIVersion")
    objects: list[msgspec.Raw] = []


@final
class _Review(msgspec.Struct, frozen=True, rename="camel", gc=False):
    api_version: str = ""
    kind: str = ""
    request: _Request | None = None


_OUTLINE_DECODER: Final[DeepDecoder[_ReviewOutline]] = DeepDecoder(_ReviewOutline)
_DECODER: Final[DeepDecoder[_Review]] = DeepDecoder(_Review)
_TREE_DECODER: Final[DeepDecoder[dict[str, Any]]] = DeepDecoder(dict[str, Any])


@final
class ConversionHandler:
    """The converters of every kind, and the reviews they answer."""

    def __init__(self, *, on_failure: Callable[[], None] | None = None) -> None:
        self._kinds: dict[tuple[str, str], Converters] = {}
        self._on_failure = on_failure

    def add(self, declaration: ConversionDeclaration[Any, Any]) -> None:
        """Add a converter."""
        gvk = definition_of(declaration.old).gvk
        self._kinds.setdefault((gvk.group, gvk.kind), Converters(())).add(declaration)

    def __bool__(self) -> bool:
        return bool(self._kinds)

    def kinds(self) -> Iterable[tuple[str, str]]:
        """Group and kind of every kind that has converters."""
        return self._kinds.keys()

    async def handle(self, body: bytes) -> bytes:
        """The ConversionReview to send back; `DecodeError` if the body is no ConversionReview."""
        try:
            _OUTLINE_DECODER.decode(body)
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
            response["convertedObjects"] = await self._convert_all(request)
            response["result"] = {"status": "Success"}
        except ConversionError as error:
            response["result"] = {"status": "Failure", "message": str(error)}
        tree = {"apiVersion": review.api_version, "kind": "ConversionReview", "response": response}
        try:
            return encode_tree(tree)
        except RecursionError:
            return deeply(lambda: encode_tree(tree))

    async def _convert_all(self, request: _Request) -> list[dict[str, Any]]:
        result: list[dict[str, Any]] = []
        started = time.perf_counter()
        for encoded in request.objects:
            result.append(self._convert_one(_tree_of(encoded), request.desired_api_version))
            if time.perf_counter() - started > _TURN_SECONDS:
                await asyncio.sleep(0)
                started = time.perf_counter()
        return result

    def _convert_one(self, tree: dict[str, Any], wanted: str) -> dict[str, Any]:
        try:
            converters = self._kinds.get(group_kind_of(tree))
        except DecodeError as error:
            raise ConversionError(str(error)) from None
        if converters is None:
            raise ConversionError(f"there is no converter for {tree.get('apiVersion')} {tree.get('kind')}")
        try:
            try:
                return converters.convert_tree(tree, wanted)
            except RecursionError:  # one object that is so deep must not keep a list of others from being converted
                return deeply(lambda: converters.convert_tree(tree, wanted))
        except ConversionError:
            raise
        except Exception as error:
            metadata = tree.get("metadata") or {}
            where = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}".lstrip("/")
            if isinstance(error, ApiError) and not error.request:  # raised by the converter itself, with `deny`
                raise ConversionError(f"{tree.get('kind')} {where}: {error.message}") from None
            _log.exception("a converter failed", kind=tree.get("kind"), object=where, wanted=wanted, error=error)
            if self._on_failure is not None:
                self._on_failure()
            what = f"{tree.get('kind')} {where} could not be converted from {tree.get('apiVersion')} to {wanted}"
            notes = "".join(f"; {note}" for note in getattr(error, "__notes__", ()))
            raise ConversionError(f"{what}; the log of its operator says why{notes}") from None


def _tree_of(encoded: msgspec.Raw) -> dict[str, Any]:
    size = len(memoryview(encoded))
    if size > _OBJECT_LIMIT:
        raise ConversionError(f"an object has {size} bytes; the limit is {_OBJECT_LIMIT}")
    if has_more_values(bytes(encoded), _MAX_VALUES):
        raise ConversionError(f"an object has more than {_MAX_VALUES} values")
    try:
        return _TREE_DECODER.decode(encoded)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConversionError(f"an object cannot be decoded: {error}") from None
