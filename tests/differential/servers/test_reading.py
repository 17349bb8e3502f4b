"""Lists, pages, selectors and watches: both servers must show the same objects, in the same order and form.

Covers: kubewright.apiserver.verbs, kubewright.apiserver.printers
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
from tests.builders.pods import pod_tree
from tests.differential.servers.server_pair import (
    Request,
    ServerClient,
    ServerPair,
    delete,
    fresh_pair,
    get,
    merge,
    post,
    put,
    run_case,
)

pytestmark = pytest.mark.real

CMS = "/api/v1/namespaces/{ns}/configmaps"
MINE = "labelSelector=mine"
PODS = "/api/v1/namespaces/{ns}/pods"
EVENTS = "/api/v1/namespaces/{ns}/events"
SECRETS = "/api/v1/namespaces/{ns}/secrets"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
ITEMS = ("items",)


def cm(name: str, **labels: str) -> dict[str, Any]:
    """A ConfigMap that the cases find again."""
    return {"metadata": {"name": name, "labels": {"mine": "1", **labels}}}


pod = partial(pod_tree, app="", labels={"mine": "1"})
"""A pod of one container."""


def has(*names: str, changed: str = "") -> Any:
    """A condition on a list that may be of any version: these are in it, and one of them as it is now.

    A server answers from what it remembers, and hears of what was written a moment later.
    """

    def holds(tree: Any) -> bool:
        found = {item["metadata"]["name"]: item for item in tree["items"]}
        return found.keys() >= set(names) and (not changed or "data" in found.get(changed, {}))

    return holds


def is_changed(tree: Any) -> bool:
    """Whether an answer shows a ConfigMap that has data by now."""
    return "data" in tree


def has_all(tree: Any) -> bool:
    """Whether a watch of a second got as far as to the end of what was there."""
    return "initial-events-end" in str(tree)


ACCOUNT = post("/api/v1/namespaces/{ns}/serviceaccounts", {"metadata": {"name": "default"}}, quiet=True)
FIVE = [post(CMS, cm(f"c{number}", color="red" if number % 2 else "blue")) for number in range(5)]

LISTS: dict[str, Sequence[Request]] = {
    "nothing": [get(f"{CMS}?labelSelector=none")],
    "all of mine": [*FIVE, get(f"{CMS}?{MINE}")],
    "all of a namespace that is not there": [get("/api/v1/namespaces/nono/configmaps")],
    "all anywhere": [*FIVE, get(f"/api/v1/configmaps?{MINE}&fieldSelector=metadata.namespace%3D{{ns}}")],
    "pages": [
        *FIVE,
        get(f"{CMS}?{MINE}&limit=2", keep={"token": "metadata.continue"}),
        get(f"{CMS}?{MINE}&limit=2&continue=${{token}}", keep={"token": "metadata.continue"}),
        get(f"{CMS}?{MINE}&limit=2&continue=${{token}}"),
    ],
    "pages with what remains": [
        *[post(SECRETS, {"metadata": {"name": f"s{number}"}}) for number in range(4)],
        get(f"{SECRETS}?limit=1", keep={"token": "metadata.continue"}),
        get(f"{SECRETS}?limit=1&continue=${{token}}", keep={"token": "metadata.continue"}),
        get(f"{SECRETS}?continue=${{token}}"),
    ],
    "a page as large as all": [*FIVE, get(f"{CMS}?{MINE}&limit=5"), get(f"{CMS}?{MINE}&limit=6")],
    "a page of what has changed since": [
        *FIVE,
        get(f"{CMS}?{MINE}&limit=2", keep={"token": "metadata.continue"}),
        post(CMS, cm("c21")),
        delete(f"{CMS}/c3"),
        merge(f"{CMS}/c4", {"data": {"a": "b"}}),
        get(f"{CMS}?{MINE}&limit=2&continue=${{token}}"),
    ],
    "a page with other selectors": [
        *FIVE,
        get(f"{CMS}?{MINE}&limit=1", keep={"token": "metadata.continue"}),
        get(f"{CMS}?labelSelector=color%3Dred&limit=1&continue=${{token}}"),
    ],
    "pages that begin at any version": [
        *FIVE,
        get(f"{CMS}?{MINE}&limit=2&resourceVersion=0", until=has("c0", "c1", "c2", "c3", "c4")),
    ],
    "a page and a version": [
        *FIVE,
        get(f"{CMS}?{MINE}&limit=2", keep={"token": "metadata.continue"}),
        get(f"{CMS}?{MINE}&continue=${{token}}&resourceVersion=5"),
        get(f"{CMS}?{MINE}&continue=${{token}}&resourceVersion=0"),
        get(f"{CMS}?{MINE}&continue=${{token}}&resourceVersion=5&resourceVersionMatch=Exact"),
    ],
    "a page that nobody gave": [
        get(f"{CMS}?continue=abc"),
        get(f"{CMS}?continue=%21"),
        get(f"{CMS}?limit=1&continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MCwic3RhcnQiOiJhIn0"),
        get(f"{CMS}?limit=1&continue=eyJ2IjoiZm9vIiwicnYiOjEwLCJzdGFydCI6ImEifQ"),
        get(f"{CMS}?limit=1&continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MTAsInN0YXJ0IjoiLi4vYSJ9"),
    ],
    "what is not stored": [
        get("/api/v1/componentstatuses/etcd-0"),
        get("/api/v1/componentstatuses?fieldSelector=metadata.name%3Detcd-0&limit=1"),
        get("/api/v1/componentstatuses?labelSelector=a%3Db"),
    ],
    "a limit that is none": [get(f"{CMS}?{MINE}&limit=-1"), get(f"{CMS}?{MINE}&limit=x"), get(f"{CMS}?{MINE}&limit=")],
    "a version that is none": [
        get(f"{CMS}?resourceVersion=abc"),
        get(f"{CMS}?resourceVersion=-1"),
        get(f"{CMS}/a?resourceVersion=abc"),
    ],
    "a past version exactly": [
        post(CMS, cm("a"), keep={"then": "metadata.resourceVersion"}),
        post(CMS, cm("b")),
        merge(f"{CMS}/a", {"data": {"x": "y"}}),
        get(f"{CMS}?{MINE}&resourceVersion=${{then}}&resourceVersionMatch=Exact"),
        get(f"{CMS}?{MINE}&resourceVersion=${{then}}&resourceVersionMatch=NotOlderThan", until=has("b", changed="a")),
        get(f"{CMS}?{MINE}&resourceVersion=${{then}}", until=has("b", changed="a")),
        get(f"{CMS}?{MINE}&resourceVersion=${{then}}&limit=1"),
        get(f"{CMS}?{MINE}&resourceVersion=${{then}}&limit=1&resourceVersionMatch=Exact"),
        get(f"{CMS}?{MINE}&resourceVersion=0", until=has("b", changed="a")),
        get(f"{CMS}/a?resourceVersion=${{then}}", until=is_changed),
        get(f"{CMS}/a?resourceVersion=0", until=is_changed),
    ],
    "a match that makes no sense": [
        get(f"{CMS}?resourceVersionMatch=Exact"),
        get(f"{CMS}?resourceVersionMatch=Exact&resourceVersion=0"),
        get(f"{CMS}?resourceVersionMatch=Foo&resourceVersion=3"),
        get(f"{CMS}?resourceVersionMatch=Foo"),
        get(f"{CMS}?resourceVersionMatch=NotOlderThan&continue=abc"),
        get(f"{CMS}?sendInitialEvents=true"),
        get(f"{CMS}?sendInitialEvents=true&resourceVersionMatch=NotOlderThan"),
    ],
    "in the form of metadata": [
        *FIVE,
        get(f"{CMS}?{MINE}", accept=PARTIAL_LIST),
        get(f"{CMS}?{MINE}&limit=1", accept=PARTIAL_LIST),
    ],
    "in YAML": [*FIVE[:2], get(f"{CMS}?{MINE}", accept="application/yaml")],
    "as a table": [*FIVE[:2], get(f"{CMS}?{MINE}&includeObject=None", accept=TABLE, ignore=("rows",))],
    "as a table of metadata": [get(f"{CMS}?labelSelector=none", accept=TABLE)],
    "of several namespaces, in order": [
        post("/api/v1/namespaces", {"metadata": {"name": "{ns}-2"}}),
        post("/api/v1/namespaces", {"metadata": {"name": "{ns}2"}}),
        post(CMS, cm("z", only="{ns}")),
        post("/api/v1/namespaces/{ns}-2/configmaps", cm("a", only="{ns}")),
        post("/api/v1/namespaces/{ns}2/configmaps", cm("a", only="{ns}")),
        get("/api/v1/configmaps?labelSelector=only%3D{ns}"),
        get("/api/v1/configmaps?labelSelector=only%3D{ns}&limit=1", keep={"token": "metadata.continue"}),
        get(
            "/api/v1/configmaps?labelSelector=only%3D{ns}&limit=1&continue=${token}",
            keep={"token": "metadata.continue"},
        ),
        get("/api/v1/configmaps?labelSelector=only%3D{ns}&limit=1&continue=${token}"),
        get(f"{CMS}?labelSelector=only"),
    ],
}

LABELS = [
    "color=red", "color==red", "color!=red", "color in (red,blue)", "color in (red)", "color notin (red)", "color",
    "!color", "color,mine", "color=red,color=blue", "size>1", "size<3", "size>x", "color in ()", "color=", "=",
    "a b", "color in red", "!", "-x=1", "x=-1", "a/b/c=1", "color in (red,)", ",", "color=red,", "x=" + "a" * 64,
    "color = red", " color", "notin", "in in (in)", "size>=1", "x/y notin (1,2), color",
]  # fmt: skip

FIELDS = [
    "metadata.name=c1", "metadata.name!=c1", "metadata.name==c1", "metadata.namespace={ns}", "metadata.namespace=nono",
    "metadata.name=c1,metadata.namespace={ns}", "foo=bar", "foo", "metadata.name", "metadata.labels=x", "=",
    "metadata.name=", "metadata.name=a=b", "metadata.name=a\\,b", "metadata.uid=x", "metadata.name=c1,",
    "metadata.name=A_B", "metadata.name=a\\b", "a>b",
]  # fmt: skip

POD_FIELDS = [
    "spec.nodeName=", "spec.nodeName=n", "spec.nodeName!=n", "status.phase=Pending", "status.phase!=Pending",
    "spec.restartPolicy=Never",
    "spec.schedulerName=default-scheduler", "spec.serviceAccountName=default", "spec.hostNetwork=false",
    "spec.hostNetwork=true", "status.podIP=", "status.nominatedNodeName=", "spec.foo=x", "status.podIPs=",
]  # fmt: skip

OTHER_FIELDS: dict[str, Sequence[Request]] = {
    "events": [
        post(
            EVENTS,
            {
                "metadata": {"name": "e1"},
                "involvedObject": {"kind": "Pod", "name": "p", "namespace": "{ns}", "uid": "u", "fieldPath": "x"},
                "reason": "Because",
                "type": "Normal",
                "source": {"component": "me"},
                "reportingComponent": "you",
            },
        ),
        *[
            get(f"{EVENTS}?fieldSelector={selector}")
            for selector in (
                "involvedObject.kind%3DPod",
                "involvedObject.name%3Dp,involvedObject.uid%3Du,involvedObject.namespace%3D{ns}",
                "involvedObject.fieldPath%3Dx",
                "involvedObject.resourceVersion%3D",
                "involvedObject.apiVersion%3Dv1",
                "reason%3DBecause",
                "type!%3DNormal",
                "source%3Dme",
                "reportingComponent%3Dyou",
                "message%3Dx",
            )
        ],
        get("/apis/events.k8s.io/v1/namespaces/{ns}/events?fieldSelector=regarding.kind%3DPod"),
        get("/apis/events.k8s.io/v1/namespaces/{ns}/events?fieldSelector=involvedObject.kind%3DPod"),
        get("/apis/events.k8s.io/v1/namespaces/{ns}/events?fieldSelector=reportingController%3Dyou"),
    ],
    "secrets": [
        post(SECRETS, {"metadata": {"name": "s"}, "type": "my/type"}),
        get(f"{SECRETS}?fieldSelector=type%3Dmy/type"),
        get(f"{SECRETS}?fieldSelector=type%3DOpaque"),
        get(f"{SECRETS}?fieldSelector=data%3Dx"),
    ],
    "namespaces": [
        get("/api/v1/namespaces?fieldSelector=metadata.name%3D{ns}"),
        get("/api/v1/namespaces?fieldSelector=metadata.name%3D{ns},status.phase%3DActive"),
        get("/api/v1/namespaces?fieldSelector=metadata.name%3D{ns},status.phase%3DTerminating"),
        get("/api/v1/namespaces?fieldSelector=name%3D{ns}"),
    ],
    "nodes": [
        get("/api/v1/nodes?fieldSelector=spec.unschedulable%3Dfalse"),
        get("/api/v1/nodes?fieldSelector=spec.foo%3Dx"),
    ],
    "replica sets": [
        get("/apis/apps/v1/namespaces/{ns}/replicasets?fieldSelector=status.replicas%3D1"),
        get("/apis/apps/v1/namespaces/{ns}/replicasets?fieldSelector=spec.replicas%3D1"),
        get("/apis/apps/v1/namespaces/{ns}/deployments?fieldSelector=status.replicas%3D1"),
    ],
    "jobs": [
        get("/apis/batch/v1/namespaces/{ns}/jobs?fieldSelector=status.successful%3D1"),
        get("/apis/batch/v1/namespaces/{ns}/jobs?fieldSelector=status.failed%3D1"),
        get("/apis/batch/v1/namespaces/{ns}/cronjobs?fieldSelector=status.successful%3D1"),
    ],
    "certificates": [get("/apis/certificates.k8s.io/v1/certificatesigningrequests?fieldSelector=spec.signerName%3Dx")],
}

WATCHES: dict[str, Sequence[Request]] = {
    "the old way to watch one": [
        *FIVE[:2],
        get("/api/v1/watch/namespaces/{ns}/configmaps/c0?timeoutSeconds=1", until=bool),
    ],
    "the old way to watch": [
        *FIVE[:1],
        get("/api/v1/watch/namespaces/{ns}/configmaps?labelSelector=mine&timeoutSeconds=1", until=bool),
    ],
    "a version to come": [
        get(f"{CMS}?resourceVersion=99999999"),
        get(f"{CMS}/kube-root-ca.crt?resourceVersion=99999999"),
        get(f"{CMS}?resourceVersion=99999999&resourceVersionMatch=Exact"),
    ],
    "from the present": [*FIVE[:2], get(f"{CMS}?watch=1&{MINE}&timeoutSeconds=1", until=bool)],
    "from any version": [*FIVE[:2], get(f"{CMS}?watch=true&{MINE}&timeoutSeconds=1&resourceVersion=0", until=bool)],
    "from then on": [
        post(CMS, cm("a"), keep={"then": "metadata.resourceVersion"}),
        post(CMS, cm("b")),
        merge(f"{CMS}/a", {"data": {"x": "y"}}),
        merge(f"{CMS}/a", {"data": {"x": "y"}}),
        delete(f"{CMS}/a"),
        post(CMS, cm("a")),
        get(f"{CMS}?watch=1&{MINE}&timeoutSeconds=1&resourceVersion=${{then}}", until=bool),
        get(f"{CMS}?watch=1&fieldSelector=metadata.name%3Db&timeoutSeconds=1&resourceVersion=${{then}}", until=bool),
        get(f"{CMS}?watch=1&{MINE}&timeoutSeconds=1&resourceVersion=${{then}}", accept=PARTIAL, until=bool),
        get("/api/v1/watch/namespaces/{ns}/configmaps/b?timeoutSeconds=1&resourceVersion=${then}", until=bool),
    ],
    "into and out of what is selected": [
        post(CMS, cm("a", color="red"), keep={"then": "metadata.resourceVersion"}),
        merge(f"{CMS}/a", {"metadata": {"labels": {"color": "blue"}}}),
        merge(f"{CMS}/a", {"metadata": {"labels": {"color": "green"}}}),
        merge(f"{CMS}/a", {"metadata": {"labels": {"color": "blue"}}}),
        merge(f"{CMS}/a", {"metadata": {"labels": {"color": None}}}),
        delete(f"{CMS}/a"),
        get(f"{CMS}?watch=1&labelSelector=color%3Dblue&timeoutSeconds=1&resourceVersion=${{then}}", until=bool),
        get(f"{CMS}?watch=1&labelSelector=color&timeoutSeconds=1&resourceVersion=${{then}}", until=bool),
        get(f"{CMS}?watch=1&labelSelector=!color,mine&timeoutSeconds=1&resourceVersion=${{then}}", until=bool),
        get(
            f"{CMS}?watch=1&labelSelector=color%3Dgreen&timeoutSeconds=1&resourceVersion=${{then}}",
            accept=PARTIAL,
            until=bool,
        ),
    ],
    "by the field of a pod": [
        ACCOUNT,
        post(PODS, pod("p"), keep={"then": "metadata.resourceVersion"}),
        merge(f"{PODS}/p/status", {"status": {"phase": "Running"}}),
        merge(f"{PODS}/p/status", {"status": {"phase": "Succeeded"}}),
        delete(f"{PODS}/p?gracePeriodSeconds=0"),
        get(
            f"{PODS}?watch=1&fieldSelector=status.phase%3DRunning&timeoutSeconds=1&resourceVersion=${{then}}",
            until=bool,
        ),
        get(
            f"{PODS}?watch=1&fieldSelector=status.phase!%3DRunning&timeoutSeconds=1&resourceVersion=${{then}}",
            until=bool,
        ),
    ],
    "of an object with finalizers": [
        post(
            CMS,
            {"metadata": {"name": "a", "finalizers": ["a.io/b"], "labels": {"mine": "1"}}},
            keep={"then": "metadata.resourceVersion"},
        ),
        delete(f"{CMS}/a"),
        merge(f"{CMS}/a", {"metadata": {"finalizers": None}}),
        get(f"{CMS}?watch=1&{MINE}&timeoutSeconds=1&resourceVersion=${{then}}", until=bool),
    ],
    "of a collection that is deleted": [
        post(CMS, cm("a"), keep={"then": "metadata.resourceVersion"}),
        post(CMS, cm("b")),
        delete(f"{CMS}?{MINE}"),
        get(f"{CMS}?watch=1&{MINE}&timeoutSeconds=1&resourceVersion=${{then}}", until=bool),
    ],
    "with all that is there first": [
        *FIVE[:2],
        get(
            f"{CMS}?watch=1&{MINE}&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
            until=has_all,
        ),
        get(
            f"{CMS}?watch=1&{MINE}&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
            "&allowWatchBookmarks=true&resourceVersion=0",
            until=has_all,
        ),
        get(f"{CMS}?watch=1&{MINE}&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"),
        get(
            f"{CMS}?watch=1&{MINE}&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
            "&allowWatchBookmarks=true",
            accept=PARTIAL,
            until=has_all,
        ),
    ],
    "without what is there": [
        post(CMS, cm("a"), keep={"then": "metadata.resourceVersion"}),
        post(CMS, cm("b")),
        get(f"{CMS}?watch=1&{MINE}&timeoutSeconds=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"),
        get(
            f"{CMS}?watch=1&{MINE}&timeoutSeconds=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"
            "&resourceVersion=${then}",
            until=bool,
        ),
    ],
    "with what makes no sense": [
        get(f"{CMS}?watch=1&sendInitialEvents=true"),
        get(f"{CMS}?watch=1&sendInitialEvents=true&resourceVersionMatch=Exact"),
        get(f"{CMS}?watch=1&resourceVersionMatch=NotOlderThan&resourceVersion=1"),
        get(f"{CMS}?watch=1&timeoutSeconds=x"),
        get(f"{CMS}?watch=1&resourceVersion=x"),
        get(f"{CMS}?watch=1&fieldSelector=foo%3Dx"),
        get(f"{CMS}?watch=1&labelSelector=a%20b"),
        get(f"{CMS}?watch=foo&{MINE}&timeoutSeconds=1"),
        get(f"{CMS}?watch=0&{MINE}"),
        get("/api/v1/foos?watch=1"),
    ],
    "as a table": [
        *FIVE[:1],
        get(
            f"{CMS}?watch=1&{MINE}&timeoutSeconds=1&includeObject=Metadata", accept=TABLE, ignore=("object.rows.cells",)
        ),
        get(
            f"{CMS}?watch=1&{MINE}&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
            "&allowWatchBookmarks=true",
            accept=TABLE,
            until=has_all,
            ignore=("object.rows.cells",),
        ),
    ],
    "as YAML": [
        *FIVE[:1],
        get(f"{CMS}?watch=1&{MINE}&timeoutSeconds=1", accept="application/yaml"),
    ],
    "of a Service": [
        post(
            "/api/v1/namespaces/{ns}/services",
            {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}},
            keep={"then": "metadata.resourceVersion"},
        ),
        put(
            "/api/v1/namespaces/{ns}/services/s",
            {"metadata": {"name": "s", "labels": {"a": "b"}}, "spec": {"ports": [{"port": 81}]}},
        ),
        get("/api/v1/namespaces/{ns}/services?watch=1&timeoutSeconds=1&resourceVersion=${then}", until=bool),
    ],
}

GROUPS = {"list": LISTS, "field": OTHER_FIELDS}


@pytest.fixture(scope="module")
async def watched(quiet_servers: tuple[ServerClient, ServerClient]) -> dict[str, BaseException | None]:
    """How each case of `WATCHES` went. Each waits for its watches to time out, so all are run at the same time."""
    pair = [await fresh_pair(quiet_servers) for _ in WATCHES]
    outcomes = await asyncio.gather(*map(run_case, pair, WATCHES.values()), return_exceptions=True)
    return dict(zip(WATCHES, outcomes, strict=True))


@pytest.mark.parametrize("name", WATCHES)
async def test_what_happens_is_told_alike(watched: dict[str, BaseException | None], name: str) -> None:
    if (outcome := watched[name]) is not None:
        raise outcome


@pytest.mark.parametrize(
    "requests",
    [
        pytest.param(requests, id=f"{group}: {name}")
        for group, cases in GROUPS.items()
        for name, requests in cases.items()
    ],
)
async def test_what_is_there_is_shown_alike(quiet_pair: ServerPair, requests: Sequence[Request]) -> None:
    await run_case(quiet_pair, requests)


def _escaped(selector: str) -> str:
    for character, code in (
        ("%", "%25"),
        (" ", "%20"),
        ("=", "%3D"),
        ("\\", "%5C"),
        ("<", "%3C"),
        (">", "%3E"),
        ("+", "%2B"),
    ):
        selector = selector.replace(character, code)
    return selector


async def test_label_selectors_select_alike(quiet_pair: ServerPair) -> None:
    sized = post(CMS, {"metadata": {"name": "sized", "labels": {"size": "2"}}})
    requests = [get(f"{CMS}?labelSelector={_escaped(selector)}") for selector in LABELS]
    await run_case(quiet_pair, [*FIVE, sized, *requests])


async def test_field_selectors_select_alike(quiet_pair: ServerPair) -> None:
    requests = [get(f"{CMS}?{MINE}&fieldSelector={_escaped(selector)}") for selector in FIELDS]
    await run_case(quiet_pair, [*FIVE, *requests])


async def test_fields_of_pods_are_selected_alike(quiet_pair: ServerPair) -> None:
    pods = [post(PODS, pod("a")), post(PODS, pod("b", restartPolicy="Never", nodeName="n"))]
    requests = [get(f"{PODS}?fieldSelector={_escaped(selector)}") for selector in POD_FIELDS]
    await run_case(quiet_pair, [ACCOUNT, *pods, *requests])


def token(content: Any) -> str:
    """A continue token with this content."""
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")


V1 = "meta.k8s.io/v1"
TOKENS: dict[str, str] = {
    "no JSON": "xx",
    "one letter": "x",
    "five letters": "eyJ2I",
    "other letters": "***",
    "padded": "e30%3D",
    "of the other alphabet": "%2B%2F%2B%2F",
    "a list": token([1]),
    "a number": token(123),
    "null": token(None),
    "without a version": token({"rv": 1, "start": "a"}),
    "of another version": token({"v": "v1", "rv": 1, "start": "a"}),
    "without a resource version": token({"v": V1, "start": "a"}),
    "with a text for a resource version": token({"v": V1, "rv": "1", "start": "a"}),
    "with a fraction for a resource version": token({"v": V1, "rv": 1.5, "start": "a"}),
    "without a start": token({"v": V1, "rv": 1}),
    "with a start above": token({"v": V1, "rv": 1, "start": "../a"}),
    "with a number for a start": token({"v": V1, "rv": 1, "start": 1}),
}


@pytest.mark.parametrize("name", TOKENS)
async def test_a_bad_continue_token_is_refused_alike(quiet_pair: ServerPair, name: str) -> None:
    await run_case(quiet_pair, [get(f"/api/v1/namespaces/{{ns}}/configmaps?limit=1&continue={TOKENS[name]}")])
