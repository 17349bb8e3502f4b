"""Metrics of requests and storage, under kube-apiserver's names, so that its dashboards and alerts work."""

from __future__ import annotations

from typing import Final, final

from kubewright._base.metrics import Metrics
from kubewright.apiserver.storage.store import Store
from kubewright.apiserver.wire.requests import Request, RequestInfo
from kubewright.apiserver.wire.responses import LongResponse, Reply, Response, Stream
from kubewright.apiserver.wire.users import User

__all__ = ("RequestMetrics",)

_BUCKETS: Final = (0.001, 0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 60.0)
_VERBS: Final = {
    "get": "GET",
    "list": "LIST",
    "watch": "WATCH",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
    "deletecollection": "DELETE",
}


@final
class RequestMetrics:
    """An observer of the router that counts and times requests; measures the store on each scrape."""

    def __init__(self, metrics: Metrics, store: Store) -> None:
        labels = ("verb", "group", "version", "resource", "subresource", "scope", "code")
        self._total = metrics.counter("apiserver_request_total", "Requests by verb, resource and code.", labels=labels)
        self._seconds = metrics.histogram(
            "apiserver_request_duration_seconds",
            "How long requests took.",
            buckets=_BUCKETS,
            labels=labels[:-1],
        )
        self._objects = metrics.gauge("apiserver_storage_objects", "Stored objects.", labels=("resource",))
        self._bytes = metrics.gauge("apiserver_storage_size_bytes", "Bytes of stored objects.", labels=("resource",))
        self._watchers = metrics.gauge("apiserver_longrunning_requests", "Open watches.", labels=("resource",))
        self._store = store
        metrics.before_exposition(self._measure)

    def observe(self, request: Request, info: RequestInfo, user: User | None, reply: Reply, *, seconds: float) -> None:
        """Count one request."""
        code = str(reply.code) if isinstance(reply, (Response, LongResponse, Stream)) else "101"
        scope = "resource" if info.name else "namespace" if info.namespace else "cluster"
        verb = _VERBS.get(info.verb, info.verb.upper())
        labels = (verb, info.group, info.version, info.resource, info.subresource, scope)
        self._total.child(*labels, code).inc()
        if not isinstance(reply, Stream):
            self._seconds.child(*labels).observe(seconds)

    def _measure(self) -> None:
        for table in self._store.tables():
            group, _, plural = table.name.partition("/")
            name = f"{plural}.{group}" if group else plural
            self._objects.child(name).set(len(table))
            self._bytes.child(name).set(table.bytes)
            self._watchers.child(name).set(table.watchers)
