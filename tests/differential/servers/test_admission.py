"""What webhooks and policies say has the same consequences on both servers, word by word.

One local server plays the webhooks of both. Every case has a webhook of its own, chosen by a label; both servers know
all of them before the first case begins.

Covers: kubewright.apiserver.admission
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from tests.differential.servers.server_pair import ServerClient, ServerPair, delete, get, normalized, post, run_case
from tests.stub_server import ReceivedRequest, StubResponse, StubServer

from kubewright.testing import time_limit

pytestmark = pytest.mark.real

JSON = dict[str, Any]
LABEL = "admission.example.io/case"
GROUP = "/apis/admissionregistration.k8s.io/v1"
KINDS = {"mutating": "MutatingWebhookConfiguration", "validating": "ValidatingWebhookConfiguration"}
MAPS = "/api/v1/namespaces/{ns}/configmaps"


def review(received: ReceivedRequest, **response: Any) -> JSON:
    """The answer of a webhook."""
    uid = received.tree["request"]["uid"]
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {"uid": uid, **response}}


def says(**response: Any) -> Callable[[ReceivedRequest], StubResponse]:
    return lambda received: StubResponse(review(received, **response))


def patches(*operations: JSON, kind: str | None = "JSONPatch") -> Callable[[ReceivedRequest], StubResponse]:
    patch = base64.b64encode(json.dumps(operations).encode()).decode()
    return says(allowed=True, patch=patch, **({} if kind is None else {"patchType": kind}))


def changed(**members: Any) -> Callable[[ReceivedRequest], StubResponse]:
    """An answer in which some members are others; None is left out."""

    def answer(received: ReceivedRequest) -> StubResponse:
        tree = {**review(received, allowed=True), **members}
        return StubResponse({name: value for name, value in tree.items() if value is not None})

    return answer


def fails(
    code: int, text: str = "words", content_type: str = "text/plain"
) -> Callable[[ReceivedRequest], StubResponse]:
    return lambda received: StubResponse(text.encode(), code, content_type)


def where(received: ReceivedRequest) -> StubResponse:
    """A refusal that says what was asked."""
    uid = received.tree["request"]["uid"] if received.body else "none"
    status = {"message": f"{received.method} {received.path}"}
    return StubResponse({**KIND, "response": {"uid": uid, "allowed": False, "status": status}})


def redirects(code: int, location: str) -> Callable[[ReceivedRequest], StubResponse]:
    return lambda received: StubResponse(code=code, location=location)


KIND = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
STATUS = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "I say no", "code": 403}
ANSWERS: dict[str, Callable[[ReceivedRequest], StubResponse]] = {
    "allow": says(allowed=True),
    "warn": says(allowed=True, warnings=["one", 'tw"o', "one"]),
    "deny": says(allowed=False),
    "deny-message": says(allowed=False, status={"message": "no way"}),
    "deny-code": says(
        allowed=False,
        status={"code": 418, "message": "tea", "reason": "Teapot", "details": {"causes": [{"field": "x"}]}},
    ),
    "deny-success": says(allowed=False, status={"code": 200, "reason": "JustBecause", "status": "Success"}),
    "deny-warn": says(allowed=False, warnings=["w"], status={"message": "m"}),
    "uid-wrong": lambda received: StubResponse({**review(received), "response": {"uid": "other", "allowed": True}}),
    "uid-none": changed(response={"allowed": True}),
    "response-none": changed(response=None),
    "response-list": changed(response=[]),
    "response-types": says(allowed="yes"),
    "type-none": changed(kind=None, apiVersion=None),
    "type-other": changed(kind="Pod", apiVersion="v1"),
    "type-old": changed(apiVersion="admission.k8s.io/v1beta1"),
    "type-future": changed(apiVersion="admission.k8s.io/v3"),
    "type-status": lambda received: StubResponse(STATUS),
    "json-bad": lambda received: StubResponse(b"{nope"),
    "json-cut": lambda received: StubResponse(b'{"a": "b'),
    "json-empty": lambda received: StubResponse(b""),
    "json-text": lambda received: StubResponse(b"hello"),
    "json-list": lambda received: StubResponse(b"[]"),
    **{f"code-{code}": fails(code) for code in (400, 401, 403, 404, 405, 406, 409, 410, 413, 415, 418, 422, 429)},
    **{f"code-{code}": fails(code) for code in (500, 502, 503, 504)},
    "code-json": fails(500, "{}", "application/json"),
    "code-status": lambda received: StubResponse(STATUS, 403),
    "code-201": lambda received: StubResponse(review(received, allowed=True), 201),
    "hang-up": lambda received: StubResponse(code=0),
    "where": where,
    **{f"redirect-{code}": redirects(code, "/where/?a=b") for code in (300, 301, 302, 303, 307, 308)},
    "redirect-nowhere": fails(307),
    "redirect-for-ever": redirects(307, "/redirect-for-ever"),
    "patch": patches({"op": "add", "path": "/data", "value": {"p": "1"}}),
    "patch-untyped": patches({"op": "add", "path": "/data", "value": {"p": "1"}}, kind=None),
    "patch-merge": patches({"op": "add", "path": "/data", "value": {"p": "1"}}, kind="Merge"),
    "patch-typed-empty": patches({"op": "add", "path": "/data", "value": {}}, kind=""),
    "patch-type-only": says(allowed=True, patchType="JSONPatch"),
    "patch-no-base64": says(allowed=True, patchType="JSONPatch", patch="###"),
    "patch-object": says(allowed=True, patchType="JSONPatch", patch=base64.b64encode(b'{"a":1}').decode()),
    "patch-junk": says(allowed=True, patchType="JSONPatch", patch=base64.b64encode(b"junk").decode()),
    "patch-empty": patches(),
    "patch-remove-missing": patches({"op": "remove", "path": "/data/none"}),
    "patch-replace-missing": patches({"op": "replace", "path": "/data/none", "value": "x"}),
    "patch-add-far": patches({"op": "add", "path": "/a/b/c", "value": "x"}),
    "patch-test": patches({"op": "test", "path": "/kind", "value": "x"}),
    "patch-unknown-op": patches({"op": "frob", "path": "/kind", "value": "x"}),
    "patch-list": patches({"op": "add", "path": "/metadata/finalizers", "value": ["a.b/c"]},
                          {"op": "add", "path": "/metadata/finalizers/5", "value": "x"}),
    "patch-move": patches({"op": "move", "from": "/metadata/no", "path": "/metadata/yes"}),
    "patch-wrong-type": patches({"op": "add", "path": "/data", "value": 5}),
    "patch-unknown-field": patches({"op": "add", "path": "/unknown", "value": 5}),
    "patch-name": patches({"op": "replace", "path": "/metadata/name", "value": "other"}),
    "patch-namespace": patches({"op": "replace", "path": "/metadata/namespace", "value": "default"}),
    "patch-invalid": patches({"op": "add", "path": "/data", "value": {"b/d": "x"}}),
    "patch-denied": says(allowed=False, patchType="JSONPatch", patch=base64.b64encode(b"[]").decode()),
}  # fmt: skip
SPECIAL: dict[str, JSON] = {
    "refused": {"clientConfig": {"url": "https://127.0.0.1:{dead}/x"}},
    "unknown-ca": {"clientConfig": {"url": "{url}/allow", "caBundle": "{other}"}},
    "no-service": {"clientConfig": {"service": {"namespace": "default", "name": "gone", "path": "/x"}}},
    "slow": {"clientConfig": {"url": "{url}/slow"}, "timeoutSeconds": 1},
    "slow-ignored": {"clientConfig": {"url": "{url}/slow"}, "timeoutSeconds": 1, "failurePolicy": "Ignore"},
    "ignored": {"clientConfig": {"url": "https://127.0.0.1:{dead}/x"}, "failurePolicy": "Ignore"},
    "ignored-deny": {"clientConfig": {"url": "{url}/deny"}, "failurePolicy": "Ignore"},
    "path-slashes": {"clientConfig": {"url": "{url}//where//a/"}},
    "path-dots": {"clientConfig": {"url": "{url}/a/../where/./b/"}},
    "path-escapes": {"clientConfig": {"url": "{url}/where/a%2Fb%20c(d)~%3Fe"}},
    "old-version": {"clientConfig": {"url": "{url}/type-old"}, "admissionReviewVersions": ["v1beta1"]},
    "holds": {"clientConfig": {"url": "{url}/deny"}, "matchConditions": [
        {"name": "a", "expression": "object.metadata.name == 'it' && request.namespace != '' && oldObject == null"},
        {"name": "b", "expression": "authorizer.requestResource.check('create').allowed()"},
        {"name": "c", "expression": "request.userInfo.groups.exists(g, g == 'system:masters')"}]},
    "holds-not": {"clientConfig": {"url": "{url}/deny"}, "matchConditions": [
        {"name": "a", "expression": "object.spec.x == 1"}, {"name": "b", "expression": "false"}]},
    "unknown": {"clientConfig": {"url": "{url}/deny"}, "matchConditions": [
        {"name": "a", "expression": "object.spec.x == 1"}, {"name": "b", "expression": "object.data.x > 1"}]},
    "unknown-ignored": {"clientConfig": {"url": "{url}/deny"}, "failurePolicy": "Ignore", "matchConditions": [
        {"name": "a", "expression": "object.spec.x == 1"}]},
    "other-operation": {"clientConfig": {"url": "{url}/deny"}, "rules": [
        {"operations": ["DELETE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}]},
    "other-scope": {"clientConfig": {"url": "{url}/deny"}, "rules": [{"operations": ["*"], "apiGroups": ["*"],
        "apiVersions": ["*"], "resources": ["*"], "scope": "Cluster"}]},
    "everything": {"clientConfig": {"url": "{url}/deny"}, "rules": [{"operations": ["*"], "apiGroups": ["*"],
        "apiVersions": ["*"], "resources": ["*/*"], "scope": "Namespaced"}]},
}  # fmt: skip


@pytest.fixture(scope="module")
async def stub() -> AsyncIterator[StubServer]:
    async with StubServer() as server:
        server.handlers.update({f"/{name}": answer for name, answer in ANSWERS.items()})
        server.handlers["/slow"] = lambda received: asyncio.get_running_loop().create_future()
        yield server


def configuration(kind: str, stub: StubServer, dead: int) -> JSON:
    """All webhooks of all cases."""
    cases: dict[str, JSON] = {name: {"clientConfig": {"url": f"{{url}}/{name}"}} for name in ANSWERS} | SPECIAL
    hooks = []
    for name, parts in cases.items():
        client = {"caBundle": "{bundle}", **parts["clientConfig"]}
        hooks.append(
            {
                "name": f"{name}.{kind}.example.io",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "timeoutSeconds": 30,  # a busy machine is not what is tested
                "rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
                "objectSelector": {"matchLabels": {LABEL: f"{kind}-{name}"}},
                **parts,
                "clientConfig": client,
            }
        )
    text = json.dumps({"kind": KINDS[kind], "metadata": {"name": f"pair-{kind}"}, "webhooks": hooks})
    other = base64.b64encode(type(stub.authority).create("other").certificate).decode()
    for name, value in {"url": stub.url, "bundle": stub.bundle, "dead": str(dead), "other": other}.items():
        text = text.replace("{" + name + "}", value)
    tree: JSON = json.loads(text)
    return tree


async def until_denied(apiserver: ServerClient, label: str) -> None:
    """Wait until a server knows the webhooks or policies, which the real one learns from a watch."""
    probe = {"metadata": {"name": "probe", "labels": {LABEL: label}}}
    headers = {"Content-Type": "application/json"}
    async with time_limit(30):
        while True:
            path = "/api/v1/namespaces/default/configmaps?dryRun=All"
            answer = await apiserver.send("POST", path, json.dumps(probe).encode(), headers, 10)
            if answer.code >= 400:
                return
            await asyncio.sleep(0.05)


@pytest.fixture(scope="module")
async def webhooks(
    both_servers: tuple[ServerClient, ServerClient], stub: StubServer, dead_port: int
) -> AsyncIterator[None]:
    """Both servers know all webhooks."""
    pair = ServerPair(*both_servers, "default")
    for kind in KINDS:
        path = f"{GROUP}/{kind}webhookconfigurations"
        answers = await pair.both("POST", path, configuration(kind, stub, dead_port))
        assert [answer.code for answer in answers] == [201, 201]
        for apiserver in both_servers:
            await until_denied(apiserver, f"{kind}-deny")
    yield
    for kind in KINDS:
        await pair.both("DELETE", f"{GROUP}/{kind}webhookconfigurations/pair-{kind}")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [*ANSWERS, *SPECIAL])
@pytest.mark.usefixtures("webhooks")
async def test_an_answer_of_a_webhook_has_the_same_consequence(pair: ServerPair, name: str, kind: str) -> None:
    body = {"metadata": {"name": "it", "labels": {LABEL: f"{kind}-{name}"}}, "data": {"x": "y"}}

    await run_case(pair, [post(MAPS, body)])


@pytest.mark.usefixtures("webhooks")
async def test_expressions_of_a_configuration_are_checked(pair: ServerPair, stub: StubServer, dead_port: int) -> None:
    hook = configuration("validating", stub, dead_port)["webhooks"][0]
    for text in ("object.x ==", "'x'", "foo.bar == request.nope", "params.x == 1", "variables.x == 1", "1 == 1"):
        changed = {**hook, "matchConditions": [{"name": "a", "expression": text}]}
        tree = {"metadata": {"name": "checked"}, "webhooks": [changed]}
        await run_case(pair, [post(f"{GROUP}/validatingwebhookconfigurations?dryRun=All", tree)])


# what is sent


STEPS: list[tuple[str, str, Any, str]] = [
    ("POST", MAPS, {"metadata": {"name": "a"}, "data": {"x": "1"}}, ""),
    ("POST", f"{MAPS}?dryRun=All&fieldManager=me&fieldValidation=Strict", {"metadata": {"name": "b"}}, ""),
    ("POST", MAPS, {"metadata": {"generateName": "g-"}}, ""),
    ("PUT", f"{MAPS}/a", {"metadata": {"name": "a"}, "data": {"x": "2"}}, ""),
    ("PATCH", f"{MAPS}/a?fieldManager=m", {"data": {"x": "3"}}, "application/merge-patch+json"),
    (
        "PATCH",
        f"{MAPS}/c?fieldManager=m&force=true",
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}},
        "application/apply-patch+yaml",
    ),
    ("DELETE", f"{MAPS}/a", {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}, ""),
    ("DELETE", f"{MAPS}/c?gracePeriodSeconds=0", None, ""),
    (
        "POST",
        "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers",
        {
            "metadata": {"name": "h"},
            "spec": {"maxReplicas": 2, "scaleTargetRef": {"kind": "A", "name": "b", "apiVersion": "apps/v1"}},
        },
        "",
    ),
    ("PATCH", "/api/v1/namespaces/{ns}", {"metadata": {"labels": {"x": "y"}}}, "application/merge-patch+json"),
]


async def test_webhooks_are_sent_the_same_reviews(pair: ServerPair, stub: StubServer) -> None:
    # Every namespace gets one by a controller, which must not be what the webhooks see.
    await run_case(pair, [get(f"{MAPS}/kube-root-ca.crt", until=lambda tree: tree["kind"] == "ConfigMap", quiet=True)])
    sent: list[list[JSON]] = []
    for name, apiserver in (("real", pair.real), ("embedded", pair.embedded)):
        stub.handlers[f"/sent/{name}"] = says(allowed=True)
        for kind in KINDS:
            await _send(apiserver, "POST", f"{GROUP}/{kind}webhookconfigurations", _spy(kind, name, pair, stub))
        for kind in KINDS:  # of which the real server learns by a watch each
            await until_denied(apiserver, f"{kind}-spy-{pair.namespace}")
        stub.received.clear()
        for method, path, body, content_type in STEPS:
            await _send(apiserver, method, path.replace("{ns}", pair.namespace), body, content_type)
        sent.append([_seen(received) for received in stub.received if received.path.startswith(f"/sent/{name}")])
        for kind in KINDS:
            await _send(apiserver, "DELETE", f"{GROUP}/{kind}webhookconfigurations/spy-{pair.namespace}")

    assert len(sent[0]) == 2 * len(STEPS)
    for real, embedded in zip(*sent, strict=True):
        assert embedded == real


def _spy(kind: str, name: str, pair: ServerPair, stub: StubServer) -> JSON:
    rule = {"operations": ["*"], "apiGroups": ["", "autoscaling"], "apiVersions": ["v1"],
            "resources": ["configmaps", "namespaces", "horizontalpodautoscalers"]}  # fmt: skip
    common = {
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "timeoutSeconds": 30,  # a busy machine is not what is tested
        "rules": [rule],
    }
    spy = {
        "name": "spy.example.io",
        "clientConfig": {"url": f"{stub.url}/sent/{name}", "caBundle": stub.bundle},
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": pair.namespace}},
        # What controllers do in a new namespace is none of the steps.
        "matchConditions": [{"name": "own", "expression": "!has(request.name) || request.name != 'kube-root-ca.crt'"}],
    }
    marker = {
        "name": "marker.example.io",
        "clientConfig": {"url": f"{stub.url}/deny", "caBundle": stub.bundle},
        "objectSelector": {"matchLabels": {LABEL: f"{kind}-spy-{pair.namespace}"}},
    }
    hooks = [{**common, **spy}, {**common, **marker}]
    return {"kind": KINDS[kind], "metadata": {"name": f"spy-{pair.namespace}"}, "webhooks": hooks}


async def _send(apiserver: ServerClient, method: str, path: str, body: Any = None, content_type: str = "") -> None:
    headers = {"User-Agent": "differential/1", "Content-Type": content_type or "application/json"}
    data = None if body is None else json.dumps(body).encode()
    answer = await apiserver.send(method, path, data, headers, 90)
    assert answer.code < 300, (path, answer.tree)


def _seen(received: ReceivedRequest) -> JSON:
    tree: JSON = normalized(received.tree)
    request = tree["request"]
    request["userInfo"].pop("extra", None)
    for name in ("object", "oldObject"):
        meta = (request.get(name) or {}).get("metadata") or {}
        meta.pop("managedFields", None)  # compared elsewhere
        if meta.get("generateName"):
            meta.pop("name", None)
    if (request.get("object") or {}).get("metadata", {}).get("generateName"):
        request.pop("name", None)
    return tree


@pytest.mark.parametrize("again", ["ab", "a", "b", ""], ids=lambda names: f"again-{names or 'none'}")
async def test_webhooks_are_asked_again_alike(pair: ServerPair, stub: StubServer, again: str) -> None:
    """Each webhook adds its letter to what it is shown; which of them want to be asked again is the case."""

    def letter(name: str) -> Callable[[ReceivedRequest], StubResponse]:
        def answer(received: ReceivedRequest) -> StubResponse:
            trace = received.tree["request"]["object"]["data"]["trace"] + name
            return patches({"op": "replace", "path": "/data/trace", "value": trace})(received)

        return answer

    hooks = []
    for name in "ab":
        stub.handlers[f"/again/{name}"] = letter(name)
        hooks.append(
            {
                "name": f"{name}.again.example.io",
                "clientConfig": {"url": f"{stub.url}/again/{name}", "caBundle": stub.bundle},
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
                "objectSelector": {"matchLabels": {LABEL: pair.namespace}},
                "reinvocationPolicy": "IfNeeded" if name in again else "Never",
            }
        )
    tree = {"kind": KINDS["mutating"], "metadata": {"name": pair.namespace}, "webhooks": hooks}
    path = f"{GROUP}/mutatingwebhookconfigurations"
    await pair.both("POST", path, tree)
    body = {"metadata": {"generateName": "it-", "labels": {LABEL: pair.namespace}}, "data": {"trace": "-"}}
    known = post(f"{MAPS}?dryRun=All", body, quiet=True, until=lambda tree: "b" in tree["data"]["trace"])

    await run_case(pair, [known, post(MAPS, body)])

    await pair.both("DELETE", f"{path}/{pair.namespace}")


# policies


def policy(name: str, binding: JSON | None = None, **spec: Any) -> tuple[str, JSON, JSON]:
    rules = [
        {"operations": ["CREATE", "UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
    ]
    match = {"resourceRules": rules, "objectSelector": {"matchLabels": {LABEL: f"policy-{name}"}}}
    bound = {"policyName": f"pair-{name}", "validationActions": ["Deny"], **(binding or {})}
    return name, {"matchConstraints": match, **spec}, bound


def rule(expression: str, **parts: str) -> JSON:
    return {"validations": [{"expression": expression, **parts}]}


POLICIES = [
    policy("simple", **rule("object.data.x == 'ok'")),
    policy("message", **rule("false", message=" x must be ok ")),
    policy("expression", **rule("false", messageExpression="'x is ' + object.data.x + ' in ' + request.namespace")),
    policy("fallback", **rule("false", message="fallback", messageExpression="string(object.data.nope)")),
    policy("forbidden", **rule("false", reason="Forbidden", message="no")),
    policy("large", **rule("false", reason="RequestEntityTooLarge")),
    policy("error", **rule("object.spec.y == 1")),
    policy("error-ignored", failurePolicy="Ignore", **rule("object.spec.y == 1")),
    policy("warn", {"validationActions": ["Warn", "Audit"]}, **rule("false", message="warned")),
    policy("both", {"validationActions": ["Deny", "Audit"]}, **rule("false", message="both")),
    policy("elsewhere", matchConditions=[{"name": "a", "expression": "false"}], **rule("false")),
    policy("condition", matchConditions=[{"name": "a", "expression": "object.spec.y == 1"}], **rule("false")),
    policy(
        "variables",
        variables=[{"name": "x", "expression": "object.data.x"}, {"name": "y", "expression": "variables.x + '!'"}],
        **rule("variables.y == 'ok!'", messageExpression="'got ' + variables.y"),
    ),
    policy("variable-error", variables=[{"name": "x", "expression": "object.spec.x"}], **rule("variables.x == 1")),
    policy("second", validations=[{"expression": "true"}, {"expression": "1 == 2", "message": "second"}]),
    policy("namespace", **rule("namespaceObject.metadata.labels.size() == 0 || namespaceObject.status.phase == ''")),
    policy("authorizer", **rule("!authorizer.group('').resource('pods').check('create').allowed()")),
    policy("no-params", paramKind={"apiVersion": "v1", "kind": "ConfigMap"}, **rule("params != null", message="none")),
    policy(
        "params-gone",
        {"paramRef": {"name": "none", "parameterNotFoundAction": "Deny"}},
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
        **rule("true"),
    ),
    policy(
        "params-unknown",
        {"paramRef": {"name": "none", "parameterNotFoundAction": "Deny"}},
        paramKind={"apiVersion": "nowhere.example.io/v1", "kind": "Nothing"},
        **rule("true"),
    ),
    policy("unbound", {"matchResources": {"objectSelector": {"matchLabels": {"other": "x"}}}}, **rule("false")),
    policy("notes", auditAnnotations=[{"key": "k", "valueExpression": "'v ' + object.metadata.name"}]),
    policy(
        "services",
        matchConstraints={
            "resourceRules": [
                {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["services"]}
            ],
            "objectSelector": {"matchLabels": {LABEL: "policy-services"}},
        },
        **rule(
            "false",
            messageExpression="object.spec.ipFamilies[0] + ' ' + string(object.spec.ports[0].nodePort)",
        ),
    ),
    policy("lines", **rule("object.data.x ==\n 'ok'")),
]


@pytest.fixture(scope="module")
async def policies(both_servers: tuple[ServerClient, ServerClient]) -> AsyncIterator[None]:
    """Both servers know all policies."""
    pair = ServerPair(*both_servers, "default")
    for name, spec, binding in POLICIES:
        for kind, tree in (("policies", spec), ("policybindings", binding)):
            body = {"metadata": {"name": f"pair-{name}"}, "spec": tree}
            answers = await pair.both("POST", f"{GROUP}/validatingadmission{kind}", body)
            assert [answer.code for answer in answers] == [201, 201], answers[0].tree
    for name in ("lines", "forbidden", "params-gone", "params-unknown", "second"):
        for apiserver in both_servers:
            await until_denied(apiserver, f"policy-{name}")
    yield
    for name, _, _ in POLICIES:
        for kind in ("policybindings", "policies"):
            await pair.both("DELETE", f"{GROUP}/validatingadmission{kind}/pair-{name}")


@pytest.mark.parametrize("name", [name for name, _, _ in POLICIES])
@pytest.mark.usefixtures("policies")
async def test_a_policy_has_the_same_consequence(pair: ServerPair, name: str) -> None:
    body = {"metadata": {"name": "it", "labels": {LABEL: f"policy-{name}"}}, "data": {"x": "bad"}}

    await run_case(pair, [post(MAPS, body)])


@pytest.mark.usefixtures("policies")
async def test_a_policy_sees_what_a_service_was_allocated_and_frees_it_if_it_refuses(pair: ServerPair) -> None:
    path = "/api/v1/namespaces/{ns}/services"
    spec = {"type": "NodePort", "ports": [{"port": 80, "nodePort": 31997}]}
    refused = {"metadata": {"name": "it", "labels": {LABEL: "policy-services"}}, "spec": spec}

    await run_case(
        pair,
        [
            post(f"{path}?dryRun=All", refused, quiet=True, until=lambda tree: tree["kind"] == "Status"),
            post(path, refused),
            post(path, {"metadata": {"name": "it"}, "spec": spec}),
            post(path, {"metadata": {"name": "other"}, "spec": spec}),
            delete(f"{path}/it", ignore=("details.uid",)),
        ],
    )


BROKEN: dict[str, JSON] = {
    "syntax": rule("object.data ="),
    "type": rule("1"),
    "undeclared": {"validations": [{"expression": "params.x == 1"}, {"expression": "variables.q == 2"}]},
    "message": rule("true", messageExpression="1"),
    "message-authorizer": rule("true", messageExpression="authorizer.path('/x').check('get').reason()"),
    "variables": {
        "variables": [{"name": "x", "expression": "nope"}, {"name": "y", "expression": "variables.z"}],
        **rule("variables.y == variables.x"),
    },
    "notes": {"auditAnnotations": [{"key": "k", "valueExpression": "1"}]},
    "condition": {"matchConditions": [{"name": "a", "expression": "'s'"}], **rule("true")},
    "condition-variables": {
        "variables": [{"name": "x", "expression": "1"}],
        "matchConditions": [{"name": "a", "expression": "variables.x == 1"}],
        **rule("true"),
    },
    "fine": {
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "variables": [{"name": "x", "expression": "params.data"}],
        **rule("has(variables.x.y) && request.userInfo.extra['a'].size() == 1", messageExpression="'a'"),
    },
}


@pytest.mark.parametrize("name", BROKEN)
async def test_expressions_of_a_policy_are_checked(pair: ServerPair, name: str) -> None:
    _, spec, _ = policy(name, **BROKEN[name])

    body = {"metadata": {"name": "checked"}, "spec": spec}

    await run_case(pair, [post(f"{GROUP}/validatingadmissionpolicies?dryRun=All", body)])
