"""Which webhook answers which request, without a socket: path and body in, code and body out.

What is no review at all is answered with an HTTP code (400, 404, 405, 413, 415), which the API server treats as a
failed call; what is one is answered with a review, whatever the handler did. At most so many handlers run at a time;
the rest wait, within their time limit. `server` speaks HTTP and calls this.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import Any, Final, Protocol, final

import msgspec

from kubewright._base.http_server import Answer, Question
from kubewright.api.times import Duration
from kubewright.cache.cache import Cache
from kubewright.client.client import Client
from kubewright.errors import ConfigError, DecodeError
from kubewright.webhooks.admission.declarations import AdmissionDeclaration
from kubewright.webhooks.admission.handler import Admission, HandlerFailed
from kubewright.webhooks.admission.requests import AdmissionReview
from kubewright.webhooks.admission.responses import AdmissionResponse, refused, review_bytes
from kubewright.webhooks.conversion.declarations import ConversionDeclaration
from kubewright.webhooks.conversion.reviews import Conversions
from kubewright.webhooks.handlers.invocation import Invoker
from kubewright.webhooks.handlers.threads import Threads

__all__ = ("WebhookDeclaration", "WebhookObserver", "Webhooks")

WebhookDeclaration = AdmissionDeclaration[Any, Any] | ConversionDeclaration[Any, Any]

CONCURRENCY: Final = 128

_JSON: Final = "application/json"
_REVIEWS: Final = frozenset({"admission.k8s.io/v1", "admission.k8s.io/v1beta1"})
_DECODER: Final = msgspec.json.Decoder(AdmissionReview)


class WebhookObserver(Protocol):
    """Told of every request to a webhook; by default nobody is."""

    def on_start(self, path: str) -> None: ...

    def on_end(self, path: str, code: int, seconds: float) -> None:
        """`code` is that of the HTTP answer."""
        ...

    def on_panic(self, path: str) -> None:
        """A handler failed, or took too long."""
        ...


@final
class Webhooks:
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
        self._threads = Threads()
        self._free = asyncio.Semaphore(concurrency)
        self._admissions: dict[str, Admission] = {}
        self._conversions = Conversions(on_failure=lambda: self._panic("/convert"))
        self.declarations: list[WebhookDeclaration] = []
        for declaration in declarations:
            self.add(declaration)

    def add(self, declaration: WebhookDeclaration) -> None:
        """Answer for this one too. Two for one path are refused."""
        if isinstance(declaration, ConversionDeclaration):
            self._conversions.add(declaration)
            self.declarations.append(declaration)
            return
        path = declaration.path
        if path in self._admissions or path == "/convert":
            raise ConfigError(
                f"{declaration.name}: the path {path} is taken already; give one of the two a name of its own, "
                f'such as @{declaration.verb}({declaration.kind.__name__}, name="limits")'
            )
        calls = Invoker(declaration.name, is_async=declaration.is_async, threads=self._threads)
        self._admissions[path] = Admission(
            declaration, calls=calls, client=self._client, cache=self._cache, on_failure=lambda: self._panic(path)
        )
        self.declarations.append(declaration)

    @property
    def paths(self) -> tuple[str, ...]:
        """Where there is something to ask."""
        return (*self._admissions, *(("/convert",) if self._conversions else ()))

    def close(self) -> None:
        """Let the threads go; a handler that still runs in one is not waited for."""
        self._threads.close()

    async def answer(self, question: Question) -> Answer:  # hot
        """The answer to one request; never raises but for cancellation."""
        path = question.path
        admission = self._admissions.get(path)
        if admission is None and not (path == "/convert" and self._conversions):
            return _no(404, f"there is no webhook at {path}")
        if question.method != "POST":
            return _no(405, f"a webhook is asked by POST, not by {question.method}")
        if question.headers.get("content-type", "").partition(";")[0].strip().lower() != _JSON:
            return _no(415, f"the content type must be {_JSON}")
        started = time.perf_counter()
        if self._observer is not None:
            self._observer.on_start(path)
        code = 500
        try:
            answer = await (self._convert(question) if admission is None else self._admit(admission, question))
            code = answer.status
            return answer
        finally:
            if self._observer is not None:
                self._observer.on_end(path, code, time.perf_counter() - started)

    async def _admit(self, admission: Admission, question: Question) -> Answer:  # hot
        try:
            review = _DECODER.decode(question.body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return _no(400, f"the body is no AdmissionReview: {error}")
        request = review.request
        if request is None or review.kind != "AdmissionReview" or review.api_version not in _REVIEWS:
            return _no(400, "the body is no AdmissionReview of admission.k8s.io/v1 with a request")
        seconds = _limit(question.query, admission.declaration.timeout_seconds)
        entered = time.perf_counter()
        if self._free.locked():
            try:
                async with asyncio.timeout(seconds):
                    await self._free.acquire()
            except TimeoutError:
                verdict = AdmissionResponse(
                    allowed=False, status=refused("the webhook has too much to do; try again", code=429)
                )
                return _json(review_bytes(verdict, uid=request.uid, api_version=review.api_version))
        else:
            await self._free.acquire()
        try:
            verdict = await admission.answer(request, seconds=seconds - (time.perf_counter() - entered))
        except HandlerFailed as error:
            return _no(error.code, str(error))
        finally:
            self._free.release()
        return _json(review_bytes(verdict, uid=request.uid, api_version=review.api_version))

    async def _convert(self, question: Question) -> Answer:
        try:
            return _json(await self._conversions.answer(question.body))
        except DecodeError as error:
            return _no(400, str(error))

    def _panic(self, path: str) -> None:
        if self._observer is not None:
            self._observer.on_panic(path)


def _no(code: int, message: str) -> Answer:
    return Answer.text(f"{message}\n", status=code)


def _limit(query: str, declared: float) -> float:
    """Seconds for a handler: a little less than what the API server waits, so that it hears why."""
    seconds = float(declared)
    for part in query.split("&"):
        name, _, value = part.partition("=")
        if name == "timeout" and value:
            try:
                asked = Duration(value).seconds
            except DecodeError:
                continue
            if asked > 0:
                seconds = asked
    return seconds - min(0.5, seconds * 0.1)


def _json(body: bytes) -> Answer:
    return Answer(body=body, content_type=_JSON)
