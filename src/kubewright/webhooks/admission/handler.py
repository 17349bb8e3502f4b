"""One admission webhook at work: an AdmissionRequest in, a verdict out.

The object is decoded to its class, the handler changes it or finds errors, and what it changed becomes a JSON patch
against the bytes that were received. So a field the class does not know stays where it is, in lists too, and a default
that the class filled in while decoding is not mistaken for a change.

A handler that raises is answered for here, never with its traceback. `failure_policy` decides how: under Fail the
request is refused, under Ignore the call itself fails, and the API server goes on without it. No HTTP; `service`
calls it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Final, final

import msgspec

from kubewright._base.logs import Logger
from kubewright.api.codec import decode, decode_tree, encode
from kubewright.api.diff import overlay
from kubewright.api.patches import json_equal, make_json_patch
from kubewright.api.resource import KubeObject, definition_of
from kubewright.cache.cache import Cache
from kubewright.client.client import Client
from kubewright.errors import ApiError, ConfigError, DecodeError, KubewrightError
from kubewright.webhooks.admission.arguments import Given
from kubewright.webhooks.admission.declarations import AdmissionDeclaration
from kubewright.webhooks.admission.dry_runs import dry_run_client
from kubewright.webhooks.admission.requests import AdmissionRequest
from kubewright.webhooks.admission.responses import AdmissionResponse, invalid, refused, refused_by
from kubewright.webhooks.handlers.invocation import HandlerTimeout, Invoker

__all__ = ("Admission", "HandlerFailed")

_log = Logger("kubewright.webhooks")

_KEPT_BY_THE_SERVER: Final = (
    "finalizers",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)


@final
class HandlerFailed(KubewrightError):
    """There is no verdict: the handler raised or took too long, and the API server is to go on without it.

    Raised towards `service` only, which answers with its code instead of a review.
    """

    def __init__(self, message: str, *, code: int) -> None:
        super().__init__(message)
        self.code = code


@final
class Admission:
    """Answers for one declaration."""

    def __init__(
        self,
        declaration: AdmissionDeclaration[Any, Any],
        *,
        calls: Invoker,
        client: Client | None = None,
        cache: Cache | None = None,
        on_failure: Callable[[], None] | None = None,
    ) -> None:
        if declaration.reads and cache is None:
            raise ConfigError(f"{declaration.name} reads from a cache, and there is none; serve it with a manager")
        self.declaration = declaration
        self._kind: type[KubeObject] = declaration.kind
        self._definition = definition_of(declaration.kind)
        self._calls = calls
        self._client = client
        self._dry_client = dry_run_client(client) if client is not None else None
        self._cache = cache
        self._on_failure = on_failure

    async def answer(self, request: AdmissionRequest, *, seconds: float) -> AdmissionResponse:  # hot
        """The verdict on one request, within so many seconds."""
        if request.kind != self._definition.gvk:
            return self._misdirected(request)
        declaration = self.declaration
        mutating = declaration.type == "mutating"
        if mutating and request.operation == "DELETE" and declaration.verb == "default":
            return AdmissionResponse()
        if not mutating and declaration.ratchet and request.operation == "UPDATE" and _is_bookkeeping(request):
            return AdmissionResponse()
        try:
            given = self._given(request)
        except DecodeError as error:
            if declaration.verb == "default":
                return AdmissionResponse()  # the server asks the schema next, which tells field by field what is wrong
            return AdmissionResponse(allowed=False, status=refused(f"the object cannot be read: {error}", code=400))
        before = encode(given.new) if mutating and given.new is not None else b""
        try:
            seconds = await self._synced(seconds)
            function = partial(declaration.arguments.call, declaration.handler, given)
            answer = await self._calls.call(function, seconds=seconds)
            if given.errors:
                return self._invalid(request, given)
            patch = self._patch(request, before, given.new if answer is None else answer) if before else None
        except Exception as error:
            return self._failed(error, request, given, seconds)
        return AdmissionResponse(patch=patch, warnings=tuple(given.warnings), audit=_audit(given))

    def _given(self, request: AdmissionRequest) -> Given:
        new, old = self._object(request.object, request), self._object(request.old_object, request)
        client = None
        if "client" in self.declaration.arguments.names:
            client = self._dry_client if request.dry_run else self._client
        cached = None if self._cache is None else self._cache.reader
        return Given(obj=old if new is None else new, new=new, old=old, request=request, client=client, cached=cached)

    async def _synced(self, seconds: float) -> float:  # hot
        """Wait until the kinds that the handler reads are in memory, all of them; how much of the time is left."""
        cache, waited_for = self._cache, self.declaration.reads
        if cache is None or all(map(cache.watches, waited_for)):
            return seconds
        loop = asyncio.get_running_loop()
        asked = loop.time()
        try:
            async with asyncio.timeout(seconds) as limit:
                await cache.wait_for_sync(*waited_for)
        except TimeoutError:
            if not limit.expired():
                raise
            missing = [kind.__name__ for kind in waited_for if not cache.watches(kind)]
            raise HandlerTimeout(f"not in sync yet: {', '.join(missing)}") from None
        return max(0.0, seconds - (loop.time() - asked))

    def _object(self, raw: msgspec.Raw, request: AdmissionRequest) -> KubeObject | None:
        if bytes(raw) == b"null":
            return None
        obj = decode(self._kind, raw)
        if self._definition.namespaced and not obj.metadata.namespace:
            # The object may leave it to the path of the request.
            obj.metadata.namespace = request.namespace
        return obj

    def _patch(self, request: AdmissionRequest, before: bytes, changed: Any) -> list[dict[str, Any]] | None:
        if not isinstance(changed, self._kind):
            raise TypeError(f"it returned a {type(changed).__name__}; return a {self._kind.__name__}, or nothing")
        after = encode(changed)
        if after == before:
            return None
        sent = decode_tree(request.object)
        # What stayed the same is shared with what was sent, so the comparison skips it.
        return make_json_patch(sent, overlay(sent, decode_tree(before), decode_tree(after)))

    def _invalid(self, request: AdmissionRequest, given: Given) -> AdmissionResponse:
        tree = decode_tree(request.old_object if given.new is None else request.object)
        name = request.name or given.obj.metadata.name
        status = invalid(request.kind, name, given.errors.with_values_of(tree))
        return AdmissionResponse(allowed=False, status=status, warnings=tuple(given.warnings), audit=_audit(given))

    def _misdirected(self, request: AdmissionRequest) -> AdmissionResponse:
        message = (
            f"the webhook {self.declaration.name} is for {self._definition.gvk}, and was asked about {request.kind}"
        )
        return AdmissionResponse(allowed=False, status=refused(message, code=400))

    def _failed(self, error: Exception, request: AdmissionRequest, given: Given, seconds: float) -> AdmissionResponse:
        name = self.declaration.name
        if isinstance(error, ApiError) and not error.request:
            # Raised by the handler itself, not by a request that it made.
            return AdmissionResponse(
                allowed=False, status=refused_by(error), warnings=tuple(given.warnings), audit=_audit(given)
            )
        if isinstance(error, HandlerTimeout):
            why = f" ({error})" if str(error) else ""
            message, code = f"the webhook {name} gave no answer within {seconds:.1f} s{why}", 504
            _log.error("a handler took too long", webhook=name, seconds=seconds, uid=request.uid, why=str(error))
        else:
            message, code = f"the webhook {name} failed; the log of its operator says why", 500
            _log.exception("a handler failed", webhook=name, error=error, uid=request.uid)
        if self._on_failure is not None:
            self._on_failure()
        if self.declaration.failure_policy == "Ignore":
            raise HandlerFailed(message, code=code)
        return AdmissionResponse(allowed=False, status=refused(message, code=code))


def _audit(given: Given) -> dict[str, str]:
    return {name: str(value) for name, value in given.audit.items()}


def _is_bookkeeping(request: AdmissionRequest) -> bool:
    """Whether an update changes nothing that a validator would judge: finalizers, owners, status.

    While the object is being deleted, all metadata counts as such.
    """
    if request.subresource:
        return False
    try:
        new, old = decode_tree(request.object), decode_tree(request.old_object)
    except DecodeError:
        return False
    if not isinstance(new, dict) or not isinstance(old, dict):
        return False
    content = [
        {name: value for name, value in tree.items() if name not in ("metadata", "status")} for tree in (new, old)
    ]
    if not json_equal(*content):
        return False
    marks = [tree.get("metadata") or {} for tree in (new, old)]
    if marks[0].get("deletionTimestamp"):
        return True
    kept = [{name: value for name, value in mark.items() if name not in _KEPT_BY_THE_SERVER} for mark in marks]
    return json_equal(*kept)
