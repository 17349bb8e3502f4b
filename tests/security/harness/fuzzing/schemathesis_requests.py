"""The requests that schemathesis draws from the server's OpenAPI documents: fitting ones, and ones that must not fit.

schemathesis only draws them here; they are sent and judged like all others (`run`). It is in the dependency group
`fuzz` and imported nowhere else.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final
from urllib.parse import urlencode

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import HypothesisException
from tests.scenarios.embedded.requests_at_random import LEFT_OUT
from tests.security.harness.exchange import request_bytes
from tests.security.harness.fuzzing.generator import FuzzedRequest

__all__ = ("DOCUMENTS", "schemathesis_requests")

DOCUMENTS: Final = (
    *("api/v1", "apis/apps/v1", "apis/batch/v1", "apis/apiextensions.k8s.io/v1", "apis/authorization.k8s.io/v1"),
    *("apis/admissionregistration.k8s.io/v1", "apis/rbac.authorization.k8s.io/v1", "apis/resource.k8s.io/v1"),
)


def schemathesis_requests(document: dict[str, Any], *, drawn: int, each: int) -> Iterator[FuzzedRequest]:
    """For each operation of a document `each` requests that fit it and as many that do not, of the seed `drawn`."""
    schemathesis = importlib.import_module("schemathesis")
    modes = importlib.import_module("schemathesis.generation").GenerationMode
    for found in schemathesis.openapi.from_dict(document).get_all_operations():
        operation = found.ok()
        if operation is None or any(part in LEFT_OUT for part in operation.path.split("/")):
            continue
        for mode in (modes.POSITIVE, modes.NEGATIVE):
            for case in _cases(operation.as_strategy(generation_mode=mode), drawn, each):
                yield _request(case)


def _cases(strategy: Any, drawn: int, each: int) -> list[Any]:
    cases: list[Any] = []

    @seed(drawn)
    @settings(
        max_examples=each,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def keep(case: Any) -> None:
        cases.append(case)

    # Nothing can be drawn where an operation without parameters has no request that does not fit.
    with suppress(HypothesisException):
        keep()
    return cases[:each]


def _request(case: Any) -> FuzzedRequest:
    # Drawn names of namespaces do not exist: the requests are to get further than to that.
    parameters = {**(case.path_parameters or {}), **({"namespace": "edited"} if "{namespace}" in case.path else {})}
    case.path_parameters = parameters
    query = urlencode({name: _text(value) for name, value in (case.query or {}).items()}, errors="replace")
    path = case.formatted_path + (f"?{query}" if query else "")
    body = case.body if isinstance(case.body, bytes) else None
    if body is None and type(case.body).__name__ != "NotSet":
        body = json.dumps(case.body).encode()
    headers = {name: value for name, value in (case.headers or {}).items() if value.isascii() and value.isprintable()}
    if body is not None:
        headers["Content-Type"] = case.media_type or "application/json"
    # A document says */* for any body.
    if headers.get("Content-Type", "") not in _UNDERSTOOD and body is not None and len(body) % 4:
        headers["Content-Type"] = "application/json"
    return FuzzedRequest("admin", request_bytes(case.method, path, body, headers=headers), endless="watch" in path)


_UNDERSTOOD: Final = ("application/json", "application/yaml")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
