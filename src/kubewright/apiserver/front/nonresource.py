"""Handlers of non-resource paths: `/version`, health, metrics, and the index of paths at `/`."""

from __future__ import annotations

import json
import platform
from typing import Final, final

from kubewright._base.metrics import CONTENT_TYPE, Metrics
from kubewright.apiserver.catalog import Catalog
from kubewright.apiserver.front.health import Check, Health
from kubewright.apiserver.wire.requests import Request
from kubewright.apiserver.wire.responses import Response
from kubewright.apiserver.wire.users import User
from kubewright.k8s.release import KUBERNETES_MINOR_VERSION, KUBERNETES_VERSION

__all__ = ("NonResourcePaths",)

_TEXT: Final = "text/plain; charset=utf-8"
_MAJOR, _MINOR = KUBERNETES_MINOR_VERSION.split(".")
_VERSION: Final = {
    "major": _MAJOR,
    "minor": _MINOR,
    "emulationMajor": _MAJOR,
    "emulationMinor": _MINOR,
    "minCompatibilityMajor": _MAJOR,
    "minCompatibilityMinor": str(int(_MINOR) - 1),
    "gitVersion": f"v{KUBERNETES_VERSION}+kubewright",
    "gitCommit": "",
    "gitTreeState": "",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": f"python{platform.python_version()}",
    "compiler": platform.python_implementation().lower(),
    "platform": "linux/amd64",
}

_STATIC_PATHS: Final = (
    *("/.well-known/openid-configuration", "/api", "/api/v1", "/apis", "/apis/", "/metrics", "/metrics/slis"),
    *("/openapi/v2", "/openapi/v3", "/openapi/v3/", "/openid/v1/jwks", "/version"),
)


@final
class NonResourcePaths:
    """The handlers, which `server` registers with the router."""

    def __init__(self, catalog: Catalog, metrics: Metrics, health: Health) -> None:
        self._catalog = catalog
        self._health = health
        self._metrics = metrics
        self._slis = slis = Metrics()
        self._passes = slis.gauge("kubernetes_healthcheck", "Whether a check passes.", labels=("name", "type"))
        self._total = slis.counter(
            "kubernetes_healthchecks_total", "How checks ended.", labels=("name", "status", "type")
        )

    def version(self, request: Request, user: User) -> Response:
        """`/version`."""
        return Response(200, json.dumps(_VERSION, indent=2).encode())

    def health(self, request: Request, user: User) -> Response:
        """`/healthz`, `/livez`, `/readyz`: all checks, or one by its name."""
        kind, _, name = request.path.strip("/").partition("/")
        if name:
            check = self._health.checks_of(kind).get(name)
            if check is None:
                return Response(404, b"404 page not found\n", _TEXT)
            return Response(200, b"ok", _TEXT) if check() else Response(500, b"internal server error\n", _TEXT)
        excluded = request.query.get("exclude", "").split(",")
        lines, healthy = [], True
        for label, check in self._health.checks_of(kind).items():
            if label in excluded:
                lines.append(f"[+]{label} excluded: ok")
                continue
            good = self._run_check(kind, label, check)
            healthy = healthy and good
            lines.append(f"[+]{label} ok" if good else f"[-]{label} failed: reason withheld")
        if healthy and "verbose" not in request.query:
            return Response(200, b"ok", _TEXT)
        verdict = "passed" if healthy else "failed"
        text = "\n".join((*lines, f"{kind} check {verdict}")) + "\n"
        return Response(200 if healthy else 500, text.encode(), _TEXT)

    def _run_check(self, kind: str, name: str, check: Check) -> bool:
        good = check()
        self._passes.child(name, kind).set(good)
        self._total.child(name, "success" if good else "error", kind).inc()
        return good

    def metrics(self, request: Request, user: User) -> Response:
        """`/metrics`, and `/metrics/slis` with the health checks that have run."""
        if request.path.endswith("/slis"):
            return Response(200, self._slis.exposition(), CONTENT_TYPE)
        return Response(200, self._metrics.exposition(), CONTENT_TYPE)

    def index(self, request: Request, user: User) -> Response:
        """`/`: all paths."""
        found = {*_STATIC_PATHS}
        for resource in self._catalog:
            kind = resource.kind
            if kind.group:
                found.update((f"/apis/{kind.group}", f"/apis/{kind.api_version}"))
        for endpoint in ("healthz", "livez", "readyz"):
            found.add(f"/{endpoint}")
            found.update(f"/{endpoint}/{name}" for name in self._health.checks_of(endpoint))
        return Response(200, json.dumps({"paths": sorted(found)}, indent=2).encode())
