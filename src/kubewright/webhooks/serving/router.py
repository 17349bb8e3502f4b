"""WebhookRouter: from path and body of a request to the handler of the webhook, without a socket.

A request that is no review is answered with an HTTP error (400, 404, 405, 413, 415), which the API server treats as a
failed call; a review is answered with a review, whatever the handler did. A bounded number of handlers run at a time;
the rest wait, within their time limit. `serving.server` reads HTTP and calls this.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol, final
from urllib.parse import unquote

import msgspec

from kubewright._base.deep_json import DeepDecoder
from kubewright._base.http.messages import Request, Response
from kubewright._base.json_values import has_more_values
from kubewright.api.times import Duration
from kubewright.cache.cache import Cache
from kubewright.client.client import Client
from kubewright.errors import ConfigError, DecodeError
from kubewright.webhooks.admission.declarations import AdmissionDeclaration
from kubewright.webhooks.admission.handler import AdmissionHandler, HandlerError
from kubewright.webhooks.admission.requests import AdmissionReview
from kubewright.webhooks.admission.responses import AdmissionResponse, failure_status, review_bytes
from kubewright.webhooks.conversion.declarations import ConversionDeclaration
from kubewright.webhooks.conversion.handler import ConversionHandler
from kubewright.webhooks.handlers.invocation import Invoker
from kubewright.webhooks.handlers.threads import DaemonThreads

__all__ = ("CONVERSION_PATH", "WebhookDeclaration", "WebhookObserver", "WebhookRouter")

WebhookDeclaration = AdmissionDeclaration[Any, Any] | ConversionDeclaration[Any, Any]

CONCURRENCY: Final = 128
CONVERSION_PATH: Final = "/convert"

_JSON: Final = "application/json"
_MAX_SECONDS: Final = 30.0
"""The most that `timeoutSeconds` of a webhook can be."""
_MAX_VALUES: Final = 150_000
"""Of an AdmissionReview, decoded: those of both objects. Objects of people have some thousands."""
_REVIEWS: Final = frozenset({"admission.k8s.io/v1", "admission.k8s.io/v1beta1"})
_DECODER: Final[DeepDecoder[AdmissionReview]] = DeepDecoder(AdmissionReview)


class WebhookObserver(Protocol):
    """Called for every request; the manager's metrics implement it."""

    def on_start(self, path: str) -> None: ...

    def on_end(self, path: str, code: int, seconds: float) -> None:
        """`code` is the HTTP status of the response."""
        ...

    def on_panic(self, path: str) -> None:
        """A handler raised, or took too long."""
        ...


@final
class WebhookRouter:
    """Every webhook of one operator, by path."""

    def __init__(
        self,
        declarations: Iterable[WebhookDeclaration] = (),
        *,
        client: Client | None = None,
        cache: Cache | None = None,
        concurrency: int = CONCURRENCY,
        observer: WebhookObserver | None = None,
    ) -> None:
        self._client = client
        self._cache = cache
        self._observer = observer
        self._threads = DaemonThreads()
        self._slots = asyncio.Semaphore(concurrency)
        self._admissions: dict[str, AdmissionHandler] = {}
        self._conversion = ConversionHandler(on_failure=lambda: self._panic(CONVERSION_PATH))
        self.declarations: list[WebhookDeclaration] = []
        for declaration in declarations:
            self.add(declaration)

    def add(self, declaration: WebhookDeclaration) -> None:
        """Serve this webhook too; two for one path are a ConfigError."""
        if isinstance(declaration, ConversionDeclaration):
            self._conversion.add(declaration)
            self.declarations.append(declaration)
            return
        path = declaration.path
        if path in self._admissions or path == CONVERSION_PATH:
            raise ConfigError(
                f"{declaration.name}: the path {path} is taken already; give one of the two a name of its own, "
                f'such as @{declaration.verb}({declaration.kind.__name__}, name="limits")'
            )
        invoker = Invoker(declaration.name, is_async=declaration.is_async, threads=self._threads)
        self._admissions[path] = AdmissionHandler(
            declaration, invoker=invoker, client=self._client, cache=self._cache, on_failure=lambda: self._panic(path)
        )
        self.declarations.append(declaration)

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths that have a webhook."""
        return (*self._admissions, *((CONVERSION_PATH,) if self._conversion else ()))

    def close(self) -> None:
        """Let the threads end; does not wait for a handler that still runs in one."""
        self._threads.close()

    async def handle(self, request: Request) -> Response:  # hot
        """The answer to one request; raises nothing but CancelledError."""
        refusal = self.refusal(request.method, request.target, request.headers)
        if refusal is not None:
            return refusal
        path = request.path
        admission = self._admissions.get(path)
        started = time.perf_counter()
        if self._observer is not None:
            self._observer.on_start(path)
        code = 500
        try:
            response = await (self._convert(request) if admission is None else self._admit(admission, request))
            code = response.code
            return response
        except RecursionError:
            code = 400
            return _error(code, "the body is nested too deeply")
        finally:
            if self._observer is not None:
                self._observer.on_end(path, code, time.perf_counter() - started)

    def refusal(self, method: str, target: str, headers: Mapping[str, str]) -> Response | None:
        """The answer to a request that no webhook takes, whatever its body; None if one does."""
        path = unquote(target.partition("?")[0])
        if path not in self._admissions and not (path == CONVERSION_PATH and self._conversion):
            return _error(404, f"there is no webhook at {path}")
        if method != "POST":
            return _error(405, f"a webhook takes POST, not {method}")
        if headers.get("content-type", "").partition(";")[0].strip().lower() != _JSON:
            return _error(415, f"the content type must be {_JSON}")
        return None

    async def _admit(self, admission: AdmissionHandler, request: Request) -> Response:  # hot
        if has_more_values(request.body, _MAX_VALUES):
            return _error(413, f"the body has more than {_MAX_VALUES} values")
        try:
            review = _DECODER.decode(request.body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return _error(400, f"the body is no AdmissionReview: {error}")
        admission_request = review.request
        if admission_request is None or review.kind != "AdmissionReview" or review.api_version not in _REVIEWS:
            return _error(400, "the body is no AdmissionReview of admission.k8s.io/v1 with a request")
        seconds = _handler_seconds(request.query, admission.declaration.timeout_seconds)
        started = time.perf_counter()
        if self._slots.locked():
            try:
                async with asyncio.timeout(seconds):
                    await self._slots.acquire()
            except TimeoutError:
                response = AdmissionResponse(
                    allowed=False,
                    status=failure_status("too many requests to this webhook are in flight; try again", code=429),
                )
                return _json(review_bytes(response, uid=admission_request.uid, api_version=review.api_version))
        else:
            await self._slots.acquire()
        try:
            response = await admission.handle(admission_request, seconds=seconds - (time.perf_counter() - started))
        except HandlerError as error:
            return _error(error.code, str(error))
        except RecursionError:
            # Whoever asks has made it so deep: no failure policy is to let it pass.
            status = failure_status("the object is nested too deep for this webhook", code=400)
            response = AdmissionResponse(allowed=False, status=status)
        finally:
            self._slots.release()
        return _json(review_bytes(response, uid=admission_request.uid, api_version=review.api_version))

    async def _convert(self, request: Request) -> Response:
        try:
            return _json(await self._conversion.handle(request.body))
        except DecodeError as error:
            return _error(400, str(error))

    def _panic(self, path: str) -> None:
        if self._observer is not None:
            self._observer.on_panic(path)


def _error(code: int, message: str) -> Response:
    return Response.text(f"{message}\n", code=code)


def _handler_seconds(query: str, declared: float) -> float:
    """The time limit of a handler: a little less than the API server waits, so that it receives the reason.

    kube-apiserver sends its own limit as the query parameter `timeout`
    (staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/mutating/dispatcher.go). Who else calls gets no more
    than the API lets a webhook take.
    """
    seconds = float(declared)
    for part in query.split("&"):
        name, _, value = part.partition("=")
        if name == "timeout" and value:
            try:
                requested = Duration(value).seconds
            except DecodeError:
                continue
            if requested > 0:
                seconds = min(requested, _MAX_SECONDS)
    return seconds - min(0.5, seconds * 0.1)


def _json(body: bytes) -> Response:
    return Response(body=body, content_type=_JSON)
