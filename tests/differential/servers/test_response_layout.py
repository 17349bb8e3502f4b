"""How answers are laid out: JSON is indented for people and dense for programs, YAML is sorted.

Covers: kubewright.apiserver.wire
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.differential.servers.server_pair import Response, ServerPair

pytestmark = pytest.mark.real

ONE = "/api/v1/namespaces/{ns}/configmaps/one"
CURL = {"User-Agent": "curl/8.0"}
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
GROUPS = {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}

QUESTIONS: dict[str, tuple[str, dict[str, str]]] = {
    "a program": (ONE, {}),
    "curl": (ONE, CURL),
    "wget": (ONE, {"User-Agent": "Wget/1.21"}),
    "a browser": (ONE, {"User-Agent": "Mozilla/5.0 (X11)"}),
    "a browser in small letters": (ONE, {"User-Agent": "mozilla/5.0"}),
    "a program that asks for it": (f"{ONE}?pretty=true", {}),
    "a program that asks for it in a number": (f"{ONE}?pretty=1", {}),
    "a program that asks for it in no words of Go": (f"{ONE}?pretty=yes", {}),
    "curl that asks for nothing": (f"{ONE}?pretty=", CURL),
    "curl that does not want it": (f"{ONE}?pretty=false", CURL),
    "a media type that asks for it": (ONE, {"Accept": "application/json;pretty=1"}),
    "a media type that asks for it in words": (ONE, {"Accept": "application/json;pretty=true"}),
    "a table": (ONE, {**CURL, **TABLE}),
    "a list": ("/api/v1/namespaces/{ns}/configmaps?labelSelector=mine", CURL),
    "an empty list": ("/api/v1/namespaces/{ns}/configmaps?labelSelector=nobodys", CURL),
    "a refusal": ("/api/v1/namespaces/{ns}/configmaps/nobody", CURL),
    "a path that is nowhere": ("/nowhere", CURL),
    "a watch": ("/api/v1/namespaces/{ns}/configmaps?watch=1&labelSelector=mine&timeoutSeconds=1", CURL),
    "versions": ("/api", CURL),
    "groups, by a program": ("/apis/apps", {}),
    "a group": ("/apis/apps", CURL),
    "groups in one": ("/apis", {**CURL, **GROUPS}),
    "schemas": ("/openapi/v3", CURL),
}


@pytest.mark.parametrize("case", QUESTIONS)
async def test_json_is_indented_for_those_whom_the_real_server_indents_it_for(pair: ServerPair, case: str) -> None:
    await _with_one(pair)
    path, headers = QUESTIONS[case]

    real, embedded = await _both(pair, path, headers)

    assert _layout(embedded) == _layout(real)


async def test_yaml_is_the_same_text(pair: ServerPair) -> None:
    await _with_one(pair)

    real, embedded = await _both(pair, ONE, {"Accept": "application/yaml"})

    assert _keys(embedded) == _keys(real)


async def _both(pair: ServerPair, path: str, headers: dict[str, str]) -> tuple[Response, Response]:
    path, sent = path.replace("{ns}", pair.namespace), {"User-Agent": "differential/1", **headers}
    real = await pair.real.send("GET", path, None, sent, 30.0)
    return real, await pair.embedded.send("GET", path, None, sent, 30.0)


async def _with_one(pair: ServerPair) -> None:
    body: dict[str, Any] = {"metadata": {"name": "one", "labels": {"mine": "1"}}, "data": {"b": "x<&>\u00e9", "a": ""}}
    await pair.both("POST", "/api/v1/namespaces/{ns}/configmaps", body)


def _layout(answer: Response) -> tuple[int, bool, bool, bool]:
    """What is seen from afar: the code, whether there are many lines, a first indented one, and a last break."""
    text = answer.body.decode()
    return answer.code, text.count("\n") > 1, text.startswith('{\n  "'), text.endswith("\n")


def _keys(answer: Response) -> list[str]:
    return [line.partition(":")[0] for line in answer.body.decode().splitlines()]
