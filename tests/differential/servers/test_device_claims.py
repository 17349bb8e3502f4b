"""ResourceClaims, their templates, DeviceClasses and ResourceSlices are refused alike, in the same words.

Covers: kubewright.apiserver.builtin.validation
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.differential.servers.server_pair import Request, ServerPair, merge, post, run_case

pytestmark = pytest.mark.real

CLAIMS = "/apis/resource.k8s.io/v1/namespaces/{ns}/resourceclaims"
TEMPLATES = "/apis/resource.k8s.io/v1/namespaces/{ns}/resourceclaimtemplates"
CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
JSON = dict[str, Any]


def claim(*requests: JSON, **devices: Any) -> Request:
    return post(CLAIMS, {"metadata": {"name": "one"}, "spec": {"devices": {"requests": list(requests), **devices}}})


def exactly(name: str = "r", *selectors: str, **rest: Any) -> JSON:
    return {"name": name, "exactly": device_request(*selectors, **rest)}


def device_request(*selectors: str, **rest: Any) -> JSON:
    cel = [{"cel": {"expression": text}} for text in selectors]
    return {"deviceClassName": "any.example.com", **({"selectors": cel} if cel else {}), **rest}


def either(*alternatives: JSON) -> JSON:
    return {"name": "r", "firstAvailable": list(alternatives)}


def device_class(**spec: Any) -> Request:
    return post(CLASSES, {"metadata": {"name": "pair-refused"}, "spec": spec})


def a_slice(*devices: JSON, **spec: Any) -> Request:
    """One that is refused, if only because it has no place."""
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    content = {"driver": "d.example.com", "pool": pool, "devices": list(devices), **spec}
    return post(SLICES, {"metadata": {"name": "pair-refused"}, "spec": content})


def given(**status: Any) -> Request:
    return merge(f"{CLAIMS}/one/status", {"status": status})


def allocation(*results: JSON, **rest: Any) -> JSON:
    return {"allocation": {"devices": {"results": list(results)}, **rest}}


RESULT = {"request": "r", "driver": "d.example.com", "pool": "p", "device": "d"}
USER = {"resource": "pods", "name": "p", "uid": "1"}
TERM = {"matchExpressions": [{"key": "a", "operator": "Exists"}]}
CONFIG = {"opaque": {"driver": "d.example.com", "parameters": {"a": 1}}}
CASES: dict[str, Sequence[Request]] = {
    "names of requests": [claim(exactly("")), claim(exactly("R!")), claim(exactly(), exactly())],
    "kinds of requests": [
        claim({"name": "r"}),
        claim({"name": "r", "exactly": device_request(), **either({"name": "a"} | device_request())}),
    ],
    "modes": [
        claim(exactly(allocationMode="Some")),
        claim(exactly(allocationMode="All", count=2)),
        claim(exactly(count=-1)),
        claim(exactly(deviceClassName="")),
        claim(exactly(deviceClassName="No!")),
    ],
    "selectors": [
        claim(exactly("r", "device.colour")),
        claim(exactly("r", "1 + 1")),
        claim(exactly("r", "device.driver ==")),
        claim(exactly(selectors=[{}])),
        claim(exactly("r", 'cel.bind(a, device.attributes["x.example.com"], a.b == 1)')),
    ],
    "alternatives": [
        claim(either({"name": "a"} | device_request(), {"name": "a"} | device_request())),
        claim(either({"name": "A"} | device_request("device.x"), {"name": "b", "deviceClassName": ""})),
    ],
    "many requests": [claim(*(exactly(f"r{number}") for number in range(33)))],
    "constraints": [
        claim(exactly(), constraints=[{"matchAttribute": "model"}]),
        claim(exactly(), constraints=[{"matchAttribute": "/model"}]),
        claim(exactly(), constraints=[{"matchAttribute": "d.example.com/"}]),
        claim(exactly(), constraints=[{"matchAttribute": "d.example.com/1st"}]),
        claim(exactly(), constraints=[{"requests": ["q"], "matchAttribute": "d.example.com/model"}]),
        claim(exactly(), constraints=[{}]),
    ],
    "configuration": [
        claim(exactly(), config=[{}]),
        claim(exactly(), config=[{"requests": ["q", "r"], **CONFIG}]),
        claim(exactly(), config=[{"opaque": {"driver": "", "parameters": {}}}]),
    ],
    "a claim that is right, and does not change": [
        claim(exactly("r", 'device.driver == "d"'), constraints=[{"matchAttribute": "d.example.com/model"}]),
        merge(f"{CLAIMS}/one", {"metadata": {"labels": {"a": "b"}}}),
        merge(f"{CLAIMS}/one", {"spec": {"devices": {"constraints": None}}}),
    ],
    "templates": [
        post(TEMPLATES, {"metadata": {"name": "t"}, "spec": {"spec": {"devices": {"requests": [{"name": "r"}]}}}}),
        post(TEMPLATES, {"metadata": {"name": "t"}, "spec": {"metadata": {"labels": {"a b": "c"}}, "spec": {}}}),
        post(TEMPLATES, {"metadata": {"name": "t"}, "spec": {"spec": {"devices": {"requests": [exactly()]}}}}),
        merge(f"{TEMPLATES}/t", {"spec": {"metadata": {"labels": {"a": "b"}}}}),
    ],
    "places of slices": [
        a_slice(),
        a_slice(allNodes=False),
        a_slice(nodeName=""),
        a_slice(nodeName="No!"),
        a_slice(allNodes=True, nodeName="n"),
        a_slice(nodeSelector={"nodeSelectorTerms": [TERM, TERM]}),
        a_slice(nodeSelector={"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Near"}]}]}),
    ],
    "pools": [
        a_slice(driver="", allNodes=True),
        a_slice(driver="No!", allNodes=True),
        a_slice(pool={"name": "", "generation": -1, "resourceSliceCount": 0}, allNodes=True),
        a_slice(pool={"name": "a/B", "generation": 1, "resourceSliceCount": 1}, allNodes=True),
    ],
    "devices of slices": [
        a_slice({"name": "D!"}, {"name": "d"}, {"name": "d"}, allNodes=True),
        a_slice({"name": "d", "attributes": {"a": {}}}, allNodes=True),
        a_slice({"name": "d", "attributes": {"a": {"int": 1, "string": "x"}}}, allNodes=True),
        a_slice({"name": "d", "attributes": {"a": {"version": "1.2"}}}, allNodes=True),
        a_slice({"name": "d", "attributes": {"a": {"string": "x" * 65}}}, allNodes=True),
        a_slice({"name": "d", "attributes": {"1a": {"int": 1}}}, allNodes=True),
        a_slice({"name": "d", "attributes": {"/a": {"int": 1}}}, allNodes=True),
        a_slice({"name": "d", "capacity": {"x y": {"value": "1"}}}, allNodes=True),
        a_slice({"name": "d", "attributes": {f"a{number}": {"int": 1} for number in range(33)}}, allNodes=True),
    ],
    "users of claims": [
        claim(exactly()),
        given(reservedFor=[USER]),
        given(**allocation(RESULT), reservedFor=[USER, USER]),
        given(**allocation(RESULT), reservedFor=[{"resource": "", "name": "", "uid": ""}]),
        given(**allocation(RESULT), reservedFor=[USER]),
        given(**allocation({**RESULT, "device": "other"})),
        given(reservedFor=None),
        given(allocation=None),
    ],
    "allocations of claims": [
        claim(exactly()),
        given(**allocation({**RESULT, "request": "q"})),
        given(**allocation({**RESULT, "request": "a/b/c"})),
        given(**allocation({"request": "r", "driver": "", "pool": "", "device": ""})),
        given(**allocation(RESULT, nodeSelector={"nodeSelectorTerms": []})),
        given(allocation={"devices": {"results": [RESULT], "config": [{"source": "FromHell", **CONFIG}]}}),
        given(**allocation(RESULT), devices=[{"driver": "d.example.com", "pool": "p", "device": "x"}]),
        given(**allocation(RESULT), devices=[{"driver": "d.example.com", "pool": "p", "device": "d"}]),
    ],
    "classes": [
        device_class(selectors=[{"cel": {"expression": "device.colour"}}]),
        device_class(config=[{"opaque": {"driver": "No!", "parameters": {}}}]),
    ],
}


@pytest.mark.parametrize("case", CASES)
async def test_claims_for_devices_are_validated_alike(pair: ServerPair, case: str) -> None:
    await run_case(pair, CASES[case])
