"""AdmissionHandler: answers the AdmissionRequests of one admission webhook.

It decodes the object to its class and calls the handler function. What the function changed becomes a JSON patch
against the bytes that the API server sent, so that a field the class does not know stays where it is, in lists too,
and a default that the class filled in while decoding is not mistaken for a change.

A function that raises is answered for here, never with its traceback. `failure_policy` decides how: under Fail the
response denies the request, under Ignore the HTTP call itself fails and the API server goes on without the webhook.
No HTTP; `serving.router` calls it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Final, final

import msgspec

from kubewright._base.logs import Logger
from kubewright.api.codec import decode_stored, decode_tree, encode, problems_of
from kubewright.api.diff import overlay
from kubewright.api.field_errors import FieldError
from kubewright.api.patches import json_equal, make_json_patch
from kubewright.api.resource import KubeObject, definition_of
from kubewright.cache.cache import Cache
from kubewright.client.client import Client
from kubewright.errors import ApiError, ConfigError, DecodeError, KubewrightError
from kubewright.webhooks.admission.arguments import Arguments
from kubewright.webhooks.admission.declarations import AdmissionDeclaration
from kubewright.webhooks.admission.dry_runs import dry_run_client
from kubewright.webhooks.admission.requests import AdmissionRequest
from kubewright.webhooks.admission.responses import AdmissionResponse, error_status, failure_status, invalid_status
from kubewright.webhooks.handlers.invocation import HandlerTimeout, Invoker

__all__ = ("AdmissionHandler", "HandlerError")

_log = Logger("kubewright.webhooks")

_UNVALIDATED_METADATA: Final = (
    "finalizers",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)


@final
class HandlerError(KubewrightError):
    """There is no response: the handler function raised or took too long, and the API server is to go on without it.

    `serving.router` catches it and sends its HTTP code instead of an AdmissionReview.
    """

    def __init__(self, message: str, *, code: int) -> None:
        super().__init__(message)
        self.code = code


@final
class AdmissionHandler:
    """Answers the requests of one declaration."""

    def __init__(
        self,
        declaration: AdmissionDeclaration[Any, Any],
        *,
        invoker: Invoker,
        client: Client | None = None,
        cache: Cache | None = None,
        on_failure: Callable[[], None] | None = None,
    ) -> None:
        if declaration.reads and cache is None:
            raise ConfigError(f"{declaration.name} reads from a cache, and there is none; serve it with a manager")
        self.declaration = declaration
        self._kind: type[KubeObject] = declaration.kind
        self._definition = definition_of(declaration.kind)
        self._invoker = invoker
        self._client = client
        self._dry_client = dry_run_client(client) if client is not None else None
        self._cache = cache
        self._on_failure = on_failure

    async def handle(self, request: AdmissionRequest, *, seconds: float) -> AdmissionResponse:  # hot
        """The response to one request, within `seconds`."""
        if request.kind != self._definition.gvk:
            return self._wrong_kind(request)
        declaration = self.declaration
        mutating = declaration.type == "mutating"
        if mutating and request.operation == "DELETE" and declaration.verb == "default":
            return AdmissionResponse()
        if not mutating and declaration.ratchet and request.operation == "UPDATE" and _has_nothing_to_validate(request):
            return AdmissionResponse()
        try:
            arguments = self._arguments(request)
        except DecodeError as error:
            if declaration.verb == "default":
                # Mutating webhooks run before the schema is checked, and the schema's errors name each field.
                return AdmissionResponse()
            return AdmissionResponse(
                allowed=False, status=failure_status(f"the object cannot be read: {error}", code=400)
            )
        if arguments.new is not None and problems_of(arguments.new):
            response = self._problem_response(request, arguments)
            if response is not None:
                return response
        before = encode(arguments.new) if mutating and arguments.new is not None else b""
        try:
            seconds = await self._wait_for_cache(seconds)
            function = partial(declaration.parameters.call, declaration.handler, arguments)
            result = await self._invoker.call(function, seconds=seconds)
            if arguments.errors:
                return self._invalid_response(request, arguments)
            patch = self._patch(request, before, arguments.new if result is None else result) if before else None
        except Exception as error:
            return self._failure_response(error, request, arguments, seconds)
        return AdmissionResponse(patch=patch, warnings=tuple(arguments.warnings), audit=_audit(arguments))

    def _arguments(self, request: AdmissionRequest) -> Arguments:
        new, old = self._object(request.object, request), self._object(request.old_object, request)
        client = None
        if "client" in self.declaration.parameters.names:
            client = self._dry_client if request.dry_run else self._client
        cached = None if self._cache is None else self._cache.reader
        return Arguments(
            obj=old if new is None else new, new=new, old=old, request=request, client=client, cached=cached
        )

    def _problem_response(self, request: AdmissionRequest, arguments: Arguments) -> AdmissionResponse | None:
        """The response to an object with values that its class does not know; None if the handler is to be asked.

        What is stored already may stay (ratcheting), or nobody could change or finalize the object (decision 23).
        """
        known = () if arguments.old is None else problems_of(arguments.old)
        added: list[FieldError] = [problem for problem in problems_of(arguments.new) if problem not in known]
        if not added:
            # A handler that stumbles over such a value must not keep an object that is being deleted.
            unchanged = self.declaration.type == "mutating" and _has_nothing_to_validate(request)
            return AdmissionResponse() if unchanged else None
        if self.declaration.verb == "default":
            # Mutating webhooks run before the schema is checked, and the schema's errors name each field.
            return AdmissionResponse()
        arguments.errors.extend(added)
        return self._invalid_response(request, arguments)

    async def _wait_for_cache(self, seconds: float) -> float:  # hot
        """Wait until the kinds that the handler reads are in sync; returns the seconds that are left."""
        cache, kinds = self._cache, self.declaration.reads
        if cache is None or all(map(cache.watches, kinds)):
            return seconds
        loop = asyncio.get_running_loop()
        started = loop.time()
        try:
            async with asyncio.timeout(seconds) as limit:
                await cache.wait_for_sync(*kinds)
        except TimeoutError:
            if not limit.expired():
                raise
            missing = [kind.__name__ for kind in kinds if not cache.watches(kind)]
            raise HandlerTimeout(f"not in sync yet: {', '.join(missing)}") from None
        return max(0.0, seconds - (loop.time() - started))

    def _object(self, raw: msgspec.Raw, request: AdmissionRequest) -> KubeObject | None:
        if bytes(raw) == b"null":
            return None
        obj = decode_stored(self._kind, raw)
        if self._definition.namespaced and not obj.metadata.namespace:
            # The body of a request may omit the namespace, which is in its path.
            obj.metadata.namespace = request.namespace
        return obj

    def _patch(self, request: AdmissionRequest, before: bytes, changed: Any) -> list[dict[str, Any]] | None:
        if not isinstance(changed, self._kind):
            raise TypeError(f"it returned a {type(changed).__name__}; return a {self._kind.__name__}, or nothing")
        after = encode(changed)
        if after == before:
            return None
        sent = decode_tree(request.object)
        # `overlay` shares every unchanged part with `sent`, so make_json_patch skips it by identity.
        return make_json_patch(sent, overlay(sent, decode_tree(before), decode_tree(after)))

    def _invalid_response(self, request: AdmissionRequest, arguments: Arguments) -> AdmissionResponse:
        tree = decode_tree(request.old_object if arguments.new is None else request.object)
        name = request.name or arguments.obj.metadata.name
        status = invalid_status(request.kind, name, arguments.errors.with_values_of(tree))
        return AdmissionResponse(
            allowed=False, status=status, warnings=tuple(arguments.warnings), audit=_audit(arguments)
        )

    def _wrong_kind(self, request: AdmissionRequest) -> AdmissionResponse:
        message = f"the webhook {self.declaration.name} is for {self._definition.gvk}, but got {request.kind}"
        return AdmissionResponse(allowed=False, status=failure_status(message, code=400))

    def _failure_response(
        self, error: Exception, request: AdmissionRequest, arguments: Arguments, seconds: float
    ) -> AdmissionResponse:
        name = self.declaration.name
        if isinstance(error, ApiError) and not error.request:
            # Raised by the handler itself, not by a request that it made.
            return AdmissionResponse(
                allowed=False, status=error_status(error), warnings=tuple(arguments.warnings), audit=_audit(arguments)
            )
        if isinstance(error, HandlerTimeout):
            why = f" ({error})" if str(error) else ""
            message, code = f"the webhook {name} did not respond within {seconds:.1f} s{why}", 504
            _log.error("a handler took too long", webhook=name, seconds=seconds, uid=request.uid, why=str(error))
        else:
            message, code = f"the webhook {name} failed; the log of its operator says why", 500
            _log.exception("a handler failed", webhook=name, error=error, uid=request.uid)
        if self._on_failure is not None:
            self._on_failure()
        if self.declaration.failure_policy == "Ignore":
            raise HandlerError(message, code=code)
        return AdmissionResponse(allowed=False, status=failure_status(message, code=code))


def _audit(arguments: Arguments) -> dict[str, str]:
    return {name: str(value) for name, value in arguments.audit.items()}


def _has_nothing_to_validate(request: AdmissionRequest) -> bool:
    """Whether an update changes only fields that no validator checks: finalizers, owners, status.

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
    metadata = [tree.get("metadata") or {} for tree in (new, old)]
    if metadata[0].get("deletionTimestamp"):
        return True
    kept = [{name: value for name, value in fields.items() if name not in _UNVALIDATED_METADATA} for fields in metadata]
    return json_equal(*kept)
