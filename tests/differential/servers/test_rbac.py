"""Who may do what: the embedded server's verdicts and words next to the real one's, request by request.

Each case is a list of requests; both servers get the same ones, and every answer must be the same but for what is
different by nature (uids, versions, times, signatures). One request at a time: what comes first prepares what follows.

Covers: kubewright.apiserver.auth
"""

from __future__ import annotations

import asyncio
import base64
import http.client
import json
import re
import ssl
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from kubewright._base.certificates import KeyPair
from kubewright._base.yaml import load
from kubewright.apiserver.auth.access import RbacAccess
from kubewright.apiserver.auth.tokens import ServiceAccountTokens
from kubewright.apiserver.front.audit import AuditLog
from kubewright.apiserver.server import ApiServer
from kubewright.apiserver.storage.store import Store
from kubewright.cluster.binaries.finder import Binaries
from kubewright.cluster.pki.files import Pki
from kubewright.cluster.planes.real import RealCluster

pytestmark = pytest.mark.real

GROUP = "rbac.authorization.k8s.io"
RBAC = f"/apis/{GROUP}/v1"
AUTHENTICATION = "/apis/authentication.k8s.io/v1"
AUTHORIZATION = "/apis/authorization.k8s.io/v1"
SPACE = "verdicts"
NAMESPACED = f"/api/v1/namespaces/{SPACE}"
MERGE = "application/merge-patch+json"


class Request(NamedTuple):
    """One request. `who` is `admin`, `nobody`, or the name of a service account whose token is sent."""

    method: str
    path: str
    body: Any = None
    headers: dict[str, str] | list[tuple[str, str]] = {}
    content_type: str = "application/json"
    who: str = "admin"


class Response(NamedTuple):
    """An answer."""

    code: int
    headers: dict[str, str]
    body: Any


@dataclass
class Plane:
    """A server to ask, over TLS and as anybody."""

    host: str
    port: int
    admin: ssl.SSLContext
    audit: Path
    tokens: dict[str, str] = field(default_factory=dict)
    uids: dict[str, str] = field(default_factory=dict)

    async def send(self, request: Request) -> Response:
        return await asyncio.to_thread(self._send, request)

    def _send(self, request: Request) -> Response:
        context = self.admin if request.who == "admin" else ssl._create_unverified_context()
        connection = http.client.HTTPSConnection(self.host, self.port, context=context, timeout=30)
        headers = list(request.headers.items() if isinstance(request.headers, dict) else request.headers)
        if request.who in self.tokens:
            headers.append(("Authorization", f"Bearer {self.tokens[request.who]}"))
        body = b"" if request.body is None else self._filled(request.body)
        connection.putrequest(request.method, request.path)
        for name, value in [("User-Agent", "verdicts/1"), ("Content-Type", request.content_type), *headers]:
            connection.putheader(name, value)
        connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return Response(answer.status, dict(answer.getheaders()), _decoded(text))

    def _filled(self, body: Any) -> bytes:
        """`$name` stands for the token of a service account."""
        text = body if isinstance(body, str) else json.dumps(body)
        return re.sub(r"\$(\w+)", lambda found: self.tokens[found[1]], text).encode()


def _decoded(text: bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return load(text) if b"kind: Status\n" in text else text.decode(errors="replace")


@pytest.fixture(scope="module")
async def real(real_binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Plane]:
    """A real server of its own, with an audit log."""
    folder = tmp_path_factory.mktemp("real")
    async with RealCluster(start_timeout=300, version=real_binaries.version, audit_log=folder / "audit.log") as cluster:
        tree = load(cluster.kubeconfig.read_bytes())
        user = tree["users"][0]["user"]
        pair = KeyPair(base64.b64decode(user["client-certificate-data"]), base64.b64decode(user["client-key-data"]))
        at = urlsplit(cluster.url)
        yield Plane(str(at.hostname), int(at.port or 0), _admin(cluster.ca_data, pair, folder), folder / "audit.log")


@pytest.fixture(scope="module")
async def embedded(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Plane]:
    """The server in this process."""
    folder = tmp_path_factory.mktemp("embedded")
    pki = Pki.prepare(persistent=folder / "kept", temporary=folder / "fresh")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pki.certificate("server"), pki.key("server"))
    context.load_verify_locations(pki.certificate("ca"))
    context.verify_mode = ssl.CERT_OPTIONAL
    store = Store()
    access = RbacAccess(
        store,
        signer=ServiceAccountTokens(_read(pki.key("service-account"))),
        client_ca=pki.ca,
        proxy_ca=_read(pki.certificate("front-proxy-ca")),
    )
    audit = AuditLog(folder / "audit.log")
    server = ApiServer(store=store, access=access, observers=[audit])
    port = await server.start(tls=context)
    pair = pki.authority.client("admin", groups=("system:masters",))
    yield Plane("127.0.0.1", port, _admin(pki.ca, pair, folder), folder / "audit.log")
    await server.stop()
    await audit.close()


def _read(path: str) -> bytes:
    return Path(path).read_bytes()


def _admin(ca: bytes, pair: KeyPair, folder: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=ca.decode())
    file = folder / "admin.pem"
    file.write_bytes(pair.certificate + b"\n" + pair.key)
    context.load_cert_chain(file)
    return context


# What is prepared

ACCOUNTS = ("plain", "actor")


def _role(name: str, *rules: dict[str, Any], cluster: bool = True, **more: Any) -> Request:
    place = f"{RBAC}/clusterroles" if cluster else f"{RBAC}/namespaces/{SPACE}/roles"
    return Request("POST", place, {"metadata": {"name": name, **more}, "rules": list(rules)})


def _rule(verbs: str, resources: str = "", groups: str = "", **more: Any) -> dict[str, Any]:
    rule: dict[str, Any] = {"verbs": verbs.split()}
    if resources:
        rule |= {"resources": resources.split(), "apiGroups": groups.split(",")}
    return rule | more


def _bind(name: str, role: str, *subjects: dict[str, Any], cluster: bool = True, kind: str = "ClusterRole") -> Request:
    place = f"{RBAC}/clusterrolebindings" if cluster else f"{RBAC}/namespaces/{SPACE}/rolebindings"
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role}
    return Request("POST", place, {"metadata": {"name": name}, "roleRef": ref, "subjects": list(subjects)})


def _user(name: str) -> dict[str, Any]:
    return {"kind": "User", "name": name, "apiGroup": "rbac.authorization.k8s.io"}


PREPARED = (
    Request("POST", "/api/v1/namespaces", {"metadata": {"name": SPACE}}),
    *(Request("POST", f"{NAMESPACED}/serviceaccounts", {"metadata": {"name": name}}) for name in ACCOUNTS),
    Request("POST", f"{NAMESPACED}/secrets", {"metadata": {"name": "anchor"}}),
    _role("v-pods", _rule("get list", "pods"), _rule("get", nonResourceURLs=["/metrics", "/logs/*"])),
    _role("v-one", _rule("get watch list", "configmaps", resourceNames=["chosen"]), _rule("*", "*/scale", "*")),
    _role("v-logs", _rule("get", "pods/log"), cluster=False),
    _role("v-actor", _rule("impersonate", "users", resourceNames=["bob"]), _rule("impersonate", "serviceaccounts")),
    _role(
        "v-maker",
        _rule("get create update patch", "roles rolebindings", GROUP),
        _rule("get create update patch", "clusterroles clusterrolebindings", GROUP),
        _rule("get", "pods"),
    ),
    _role("v-escalate", _rule("escalate bind", "clusterroles", "rbac.authorization.k8s.io", resourceNames=["view"])),
    _bind("v-ann", "v-pods", _user("ann")),
    _bind("v-one", "v-one", {"kind": "Group", "name": "pickers", "apiGroup": "rbac.authorization.k8s.io"}),
    _bind("v-logs", "v-logs", _user("ann"), {"kind": "ServiceAccount", "name": "plain"}, cluster=False, kind="Role"),
    _bind("v-pods", "v-pods", _user("ben"), cluster=False),
    _bind("v-actor", "v-actor", {"kind": "ServiceAccount", "name": "actor", "namespace": SPACE}),
    _bind("v-maker", "v-maker", _user("rick"), _user("carl"), _user("dora")),
    _bind("v-escalate", "v-escalate", _user("dora")),
    _bind("v-lost", "v-nowhere", _user("carl")),
    _bind("v-lost", "v-nowhere", _user("carl"), cluster=False, kind="Role"),
)  # fmt: skip


@pytest.fixture(scope="module")
async def planes(real: Plane, embedded: Plane) -> tuple[Plane, Plane]:
    """Both servers, with the same accounts, roles and bindings."""
    for plane in (real, embedded):
        for request in PREPARED:
            said = await plane.send(request)
            assert said.code == 201, said
        for name in ACCOUNTS:
            said = await plane.send(Request("POST", f"{NAMESPACED}/serviceaccounts/{name}/token", {}))
            plane.tokens[name] = said.body["status"]["token"]
    await _until_known(real)
    return real, embedded


async def _until_known(real: Plane) -> None:
    """The real server reads each of the four kinds from a cache of its own: ask until the last ones have arrived."""

    def of(user: str, **attributes: str) -> Request:
        spec = {"user": user, "resourceAttributes": {"verb": "get", **attributes}}
        return Request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": spec})

    lost = Request("GET", f"{NAMESPACED}/pods", headers={"Impersonate-User": "carl"})
    logs = of("ann", resource="pods", subresource="log", namespace=SPACE)
    views = of("dora", verb="escalate", group="rbac.authorization.k8s.io", resource="clusterroles", name="view")
    for probe, words in (
        (lost, ("clusterrole.rbac.authorization.k8s.io", " role.rbac.authorization.k8s.io")),
        (logs, ("'allowed': True",)),
        (views, ("'allowed': True",)),
    ):
        told = ""
        while not all(word in told for word in words):
            told = str((await real.send(probe)).body)


# What is asked


def _as(name: str, *groups: str) -> list[tuple[str, str]]:
    return [("Impersonate-User", name), *(("Impersonate-Group", group) for group in groups)]


def _get(path: str, name: str, *groups: str) -> Request:
    return Request("GET", path, headers=_as(name, *groups))


ODD = 'b"o<b>\\&'
REQUESTS = (
    *(_get(path, "ann") for path in (
        "/api/v1/pods", f"{NAMESPACED}/pods", f"{NAMESPACED}/pods/x", f"{NAMESPACED}/pods/x/status",
        f"{NAMESPACED}/configmaps", f"{NAMESPACED}/configmaps/x", "/api/v1/namespaces",
        f"/api/v1/namespaces/{SPACE}", "/api/v1/nodes/n", "/apis/apps/v1/deployments", "/logs", "/logs/a/b", "/debug",
        "/a%3Cb%3E&c", "/apis/foo.io/v1/things", "/apis/foo.io/v1/namespaces/x/things/y/z", "/api/v1/pods?watch=1",
        "/api/v1/watch/pods", f"{NAMESPACED}/pods?fieldSelector=metadata.name%3Dx", "/api", "/api/v1",
    )),
    *(_get(path, "ben") for path in ("/api/v1/pods", f"{NAMESPACED}/pods/x", "/metrics", "/version")),
    *(_get(path, "carl") for path in (
        "/api/v1/pods", f"{NAMESPACED}/pods", "/metrics", "/api/v1/namespaces/default/pods",
    )),
    *(_get(path, "eve", "pickers") for path in (
        f"{NAMESPACED}/configmaps/chosen", f"{NAMESPACED}/configmaps/other", f"{NAMESPACED}/configmaps",
        f"{NAMESPACED}/configmaps?fieldSelector=metadata.name%3Dchosen",
        f"{NAMESPACED}/configmaps?fieldSelector=metadata.name%3Dother",
        f"/apis/apps/v1/namespaces/{SPACE}/deployments/x/scale", f"/apis/apps/v1/namespaces/{SPACE}/deployments/x",
    )),
    _get("/api/v1/pods", ODD),
    _get("/api/v1/pods", "eve", "system:masters"),
    Request("DELETE", f"{NAMESPACED}/pods", headers=_as("ann")),
    Request("DELETE", f"{NAMESPACED}/pods/x", headers=_as("ann")),
    Request("PATCH", f"{NAMESPACED}/pods/x", {}, _as("ann"), MERGE),
    Request("PUT", "/metrics", headers=_as("ann")),
    Request("GET", "/api/v1/pods", headers=[*_as("zoe"), ("Accept", "application/yaml")]),
    *(Request("GET", path, who="nobody") for path in ("/api/v1/pods", "/apis", "/metrics")),
    *(Request("GET", "/api/v1/pods", headers={"Authorization": text}, who="nobody")
      for text in ("Bearer xyz", "bearer xyz", "Basic eDp5", "Bearer ", "xyz", "Bearer a.b.c")),
    Request("GET", "/apis", headers={"Authorization": "Bearer xyz"}, who="nobody"),
    Request("GET", f"/api/v1/namespaces/{SPACE}/secrets/nope", headers={"Authorization": "Bearer xyz"}),
    *(Request("GET", path, who="plain") for path in (
        f"{NAMESPACED}/pods", f"{NAMESPACED}/pods/x/log", "/api/v1/namespaces/default/pods/x/log",
        "/.well-known/openid-configurations",
    )),
)  # fmt: skip

WHO = f"{AUTHENTICATION}/selfsubjectreviews"
IMPERSONATIONS = (
    *(Request("POST", WHO, {}, headers) for headers in (
        _as("bob"), _as("bob", "a,b", "c"), _as("bob", "system:unauthenticated"), _as("bob", "system:authenticated"),
        _as("system:serviceaccount:a:b"), _as("system:serviceaccount:a:b", "g"), _as("system:serviceaccount:a"),
        _as("system:serviceaccount:A:b"), _as("system:anonymous"), _as("system:anonymous", "system:masters"),
        {"Impersonate-User": "bob", "Impersonate-Uid": "7", "Impersonate-Extra-Foo%2fBar": "x"},
        [*_as("bob"), ("Impersonate-Extra-z", "1,2"), ("Impersonate-Extra-z", "3")],
        {"Impersonate-Group": "dev"}, {"Impersonate-Uid": "dev"}, {"Impersonate-Extra-a": "dev"},
        {"Impersonate-Group": "g", "Impersonate-Extra-a": "dev", "Impersonate-Uid": "u"}, {"Impersonate-User": ""},
        {"Impersonate-Nothing": "x"},
    )),
    *(Request("GET", "/apis", headers=headers, who="actor") for headers in (
        _as("bob"), _as("ann"), _as("bob", "g"), {"Impersonate-User": "bob", "Impersonate-Uid": "g"},
        {"Impersonate-User": "bob", "Impersonate-Extra-Foo": "g"}, _as("system:serviceaccount:a:b"),
    )),
    Request("GET", "/apis", headers=_as("bob"), who="nobody"),
    Request("GET", "/apis", headers=_as("system:serviceaccount:a:b"), who="plain"),
)  # fmt: skip

POD_LIST = {"verb": "list", "resource": "pods"}
LOCAL_LIST = {**POD_LIST, "namespace": SPACE}
SELF = f"{AUTHORIZATION}/selfsubjectaccessreviews"
SUBJECT = f"{AUTHORIZATION}/subjectaccessreviews"
LOCAL = f"{AUTHORIZATION}/namespaces/{SPACE}/localsubjectaccessreviews"
RULES = f"{AUTHORIZATION}/selfsubjectrulesreviews"
TOKENS = f"{AUTHENTICATION}/tokenreviews"
TOKEN = f"{NAMESPACED}/serviceaccounts/plain/token"


def _asks(**attributes: Any) -> dict[str, Any]:
    return {"spec": {"resourceAttributes": {**POD_LIST, **attributes}}}


REVIEWS = (
    Request("POST", WHO, {"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"}),
    Request("POST", WHO, {"metadata": {"name": "x"}, "status": {"userInfo": {"username": "z"}}}),
    Request("POST", WHO, {}, who="plain"),
    Request("POST", WHO, {}, who="nobody"),
    Request("POST", WHO, ""),
    Request("POST", f"{WHO}?dryRun=All", {}),
    Request("POST", f"{WHO}?dryRun=Some", {}),
    Request("GET", WHO),
    Request("GET", f"{WHO}/x"),
    Request("DELETE", WHO),
    Request("POST", SELF, _asks()),
    Request("POST", SELF, _asks(), _as("ann")),
    Request("POST", SELF, _asks(namespace=SPACE), _as("ben")),
    Request("POST", SELF, _asks(namespace=SPACE), _as("carl")),
    Request("POST", SELF, _asks(subresource="log", name="x", verb="get", namespace=SPACE), who="plain"),
    Request("POST", SELF, _asks(resource=""), _as("ann")),
    Request("POST", SELF, _asks(resource="*", verb="*"), _as("ann")),
    Request("POST", SELF, {"spec": {"nonResourceAttributes": {"path": "/logs/a%20b", "verb": "get"}}}, _as("ann")),
    Request("POST", SELF, {"spec": {"nonResourceAttributes": {"path": "/nope", "verb": "get"}}}, _as("ann")),
    Request("POST", SELF, {"spec": {}}),
    Request("POST", SELF, {}),
    Request("POST", SELF, {"spec": {"resourceAttributes": POD_LIST, "nonResourceAttributes": {"path": "/x"}}}),
    Request("POST", SELF, {"metadata": {"name": "foo", "labels": {"a": "b"}}, **_asks()}),
    Request("POST", f"{SELF}?fieldValidation=Strict", {"spec": {"foo": 1, "resourceAttributes": POD_LIST}}),
    Request("POST", f"{SELF}?fieldValidation=Warn", {"spec": {"foo": 1, "resourceAttributes": POD_LIST}}),
    Request("POST", SELF, _asks(labelSelector={}, fieldSelector={"rawSelector": "a=b", "requirements": [
        {"key": "x", "operator": "In", "values": ["y"]}]})),
    Request("POST", SELF, _asks(labelSelector={"rawSelector": "a in ("})),
    Request("POST", SELF, _asks(
        labelSelector={"requirements": [{"key": "a", "operator": "Nope"}, {"key": "b", "operator": "In"}]},
        fieldSelector={"requirements": [
            {"key": "a", "operator": "Exists"}, {"key": "", "operator": "In", "values": ["x"]}]},
    )),
    Request("POST", SELF, _asks(fieldSelector={"requirements": [{"key": "a", "operator": "Exists"}]},
        labelSelector={"requirements": [{"key": "a", "operator": "New"}, {"key": "b", "operator": "Exists"}]})),
    Request("POST", SELF, {"spec": {"resourceAttributes": {"verb": 5}}}),
    Request("POST", SELF, _asks(), who="nobody"),
    Request("POST", SUBJECT, {"spec": {"user": "ann", "groups": ["g"], "resourceAttributes": POD_LIST}}),
    Request("POST", SUBJECT, {"spec": {"user": "zoe", "groups": ["g"], "resourceAttributes": POD_LIST}}),
    Request("POST", SUBJECT, {"spec": {"groups": ["system:masters"], "resourceAttributes": POD_LIST}}),
    Request("POST", SUBJECT, {"spec": {"user": "x", "extra": {"a": ["b"]}, "uid": "1",
        "nonResourceAttributes": {"path": "/version", "verb": "get"}}}),
    Request("POST", SUBJECT, {"spec": {"resourceAttributes": POD_LIST}}),
    Request("POST", SUBJECT, {"spec": {"user": "ann"}}),
    Request("POST", SUBJECT, {"spec": {"user": "ann", "resourceAttributes": POD_LIST}}, who="plain"),
    Request("POST", LOCAL, {"spec": {"user": "ben", "resourceAttributes": LOCAL_LIST}}),
    Request("POST", LOCAL, {"spec": {"user": "ben", "resourceAttributes": POD_LIST}}),
    Request("POST", LOCAL, {"spec": {"user": "ben", "nonResourceAttributes": {"verb": "get", "path": "/x"}}}),
    Request("POST", LOCAL, {"metadata": {"name": "q", "namespace": SPACE},
        "spec": {"user": "b", "resourceAttributes": LOCAL_LIST}}),
    Request("POST", LOCAL, {"metadata": {"namespace": "other"},
        "spec": {"user": "b", "resourceAttributes": LOCAL_LIST}}),
    Request("POST", f"{AUTHORIZATION}/localsubjectaccessreviews",
        {"spec": {"user": "b", "resourceAttributes": LOCAL_LIST}}),
    Request("POST", f"{AUTHORIZATION}/namespaces/nope/localsubjectaccessreviews",
        {"spec": {"user": "b", "resourceAttributes": {**POD_LIST, "namespace": "nope"}}}),
    Request("POST", RULES, {"spec": {"namespace": SPACE}}, _as("ann")),
    Request("POST", RULES, {"spec": {"namespace": SPACE}}, _as("carl")),
    Request("POST", RULES, {"spec": {"namespace": SPACE}}),
    Request("POST", RULES, {"spec": {}}),
    Request("POST", TOKENS, {}),
    Request("POST", TOKENS, {"spec": {"token": "abc"}}),
    Request("POST", TOKENS, {"spec": {"token": "$plain"}}),
    Request("POST", TOKENS, {"spec": {"token": "$plain", "audiences": ["x"]}}),
    Request("POST", TOKENS, {"spec": {"token": "$plain", "audiences": ["x", "https://kubernetes.default.svc.cluster.local"]}}),
    Request("POST", TOKENS, {"spec": {"token": "$plain!"}}),
    Request("POST", TOKENS, {"spec": {"token": " x"}}),
    Request("POST", TOKENS, {"spec": {"token": "$plain"}}, who="plain"),
)  # fmt: skip


def _bound(kind: str, name: str, version: str = "v1", **more: str) -> dict[str, Any]:
    return {"spec": {"boundObjectRef": {"kind": kind, "apiVersion": version, "name": name, **more}}}


TOKEN_REQUESTS = (
    Request("POST", TOKEN, {}),
    Request("POST", TOKEN, {"spec": {"audiences": ["a", "b"], "expirationSeconds": 600}}),
    *(Request("POST", TOKEN, {"spec": {"expirationSeconds": seconds}}) for seconds in (5, 0, 599, 2**33)),
    Request("POST", TOKEN, ""),
    Request("POST", TOKEN, {"metadata": {"name": "x"}}),
    Request("POST", TOKEN, {"metadata": {"namespace": "x"}}),
    Request("POST", TOKEN, {"metadata": {"uid": "x"}}),
    Request("POST", f"{TOKEN}?dryRun=All", {}),
    Request("POST", f"{NAMESPACED}/serviceaccounts/nope/token", {}),
    Request("POST", "/api/v1/namespaces/nope/serviceaccounts/nope/token", {}),
    Request("GET", TOKEN),
    Request("PUT", TOKEN, {}),
    Request("PATCH", TOKEN, {}, content_type=MERGE),
    Request("POST", TOKEN, _bound("Pod", "nope")),
    Request("POST", TOKEN, _bound("ConfigMap", "nope")),
    Request("POST", TOKEN, _bound("Deployment", "nope", "apps/v1")),
    Request("POST", TOKEN, _bound("Secret", "anchor")),
    Request("POST", TOKEN, _bound("Secret", "anchor", uid="zz")),
    Request("POST", TOKEN, _bound("Node", "nope")),
    Request("POST", TOKEN, {}, who="plain"),
)

SECRETS = _rule("get list", "pods secrets", ",apps")
NAMED = _rule("get", "configmaps", resourceNames=["a", "b"])
URL = _rule("get", nonResourceURLs=["/x"])
MADE = f"{RBAC}/clusterroles/v-made"


def _by(name: str, request: Request) -> Request:
    return request._replace(headers=_as(name))


ESCALATIONS = (
    _by("rick", _role("v-r1", SECRETS, URL, NAMED, cluster=False)),
    _by("rick", _role("v-r1", SECRETS, URL, NAMED)),
    _by("rick", Request("POST", f"{RBAC}/clusterroles", {"metadata": {"name": "v-r2"}, "aggregationRule": {
        "clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}})),
    _by("rick", _role("v-made", _rule("get", "pods"))),
    _by("rick", Request("PATCH", MADE, {"rules": [_rule("*", "pods")]}, content_type=MERGE)),
    _by("rick", Request("PATCH", MADE, {"metadata": {"labels": {"a": "b"}}}, content_type=MERGE)),
    Request("PATCH", MADE, {"rules": [_rule("*", "secrets")]}, content_type=MERGE),
    _by("rick", Request("PATCH", MADE, {"metadata": {"labels": {"a": "c"}}}, content_type=MERGE)),
    _by("rick", Request("PATCH", MADE, {"metadata": {"finalizers": ["x.io/y"]}}, content_type=MERGE)),
    _by("rick", _bind("v-b1", "view", _user("x"))),
    _by("rick", _bind("v-b1", "v-nowhere", _user("x"))),
    _by("rick", _bind("v-b1", "v-nowhere", _user("x"), cluster=False, kind="Role")),
    _by("rick", _bind("v-b1", "cluster-admin", _user("x"), cluster=False)),
    _by("rick", _bind("v-b1", "cluster-admin", _user("x"), cluster=False, kind="Foo")),
    _by("rick", _bind("v-b1", "v-pods", _user("x"), cluster=False)),
    _by("rick", _role("v-r3", _rule("", "pods"))),
    _by("rick", _role("v-r3", {"resources": ["pods"], "verbs": ["get"]})),
    _by("rick", _role("v-r3", _rule("get", "pods/log */status"))),
    _by("carl", _role("v-r4", _rule("*", "*", "*"), cluster=False)),
    _by("carl", _role("v-r4", _rule("*", "*", "*"))),
    _by("dora", _bind("v-d1", "view", _user("x"))),
    _by("dora", _bind("v-d2", "edit", _user("x"))),
    _by("dora", _role("v-d3", _rule("list", "pods"))),
    _by("zoe", _role("v-z", _rule("list", "pods"))),
)  # fmt: skip

TABLES = {
    "requests": REQUESTS,
    "impersonations": IMPERSONATIONS,
    "reviews": REVIEWS,
    "token requests": TOKEN_REQUESTS,
    "escalations": ESCALATIONS,
}


@pytest.mark.parametrize("name", list(TABLES))
async def test_both_servers_answer_every_request_alike(planes: tuple[Plane, Plane], name: str) -> None:
    real, embedded = planes
    different = []
    for request in TABLES[name]:
        theirs, ours = [_comparable(await plane.send(request)) for plane in (real, embedded)]
        if theirs != ours:
            different.append(f"{request}\n  real     {theirs}\n  embedded {ours}")

    assert not different, "\n".join(different)


def _comparable(said: Response) -> tuple[Any, ...]:
    kept = ("Content-Type", "X-Content-Type-Options", "Warning", "Cache-Control")
    return (
        said.code,
        {name: said.headers[name] for name in kept if name in said.headers},
        _leveled(said.body, said.code),
    )


_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|X509SHA256=[0-9a-f]+")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_UNORDERED = ("resourceRules", "nonResourceRules")


def _leveled(node: Any, code: int = 0) -> Any:
    """The same without what no two servers have in common."""
    if isinstance(node, dict):
        if node.get("kind") in ("PodList", "APIVersions", "APIGroupList", "APIResourceList") or "gitVersion" in node:
            return node.get("kind", "version")
        if node.get("token", "").count(".") == 2:
            node = {**node, "token": _claims(node["token"])}
        return {name: _sorted(name, _leveled(value)) for name, value in node.items() if name != "resourceVersion"}
    if isinstance(node, list):
        return [_leveled(item) for item in node]
    if isinstance(node, str):
        return "metrics" if node.startswith("# HELP") else _TIME.sub("<time>", _UID.sub("<uid>", node))
    return node


def _sorted(name: str, value: Any) -> Any:
    return sorted(value, key=json.dumps) if name in _UNORDERED else value


def _claims(token: str) -> Any:
    payload = token.split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    issued = claims.pop("iat", 0)
    for holder, name in ((claims, "exp"), (claims, "nbf"), (claims.get("kubernetes.io", {}), "warnafter")):
        if name in holder:
            holder[name] -= issued
    return claims


# What is written down

CONFIG = f"{NAMESPACED}/configmaps"
AUDITED = (
    Request("POST", CONFIG, {"metadata": {"generateName": "g-"}}),
    Request("POST", CONFIG, {"metadata": {"name": "a"}}),
    Request("POST", CONFIG, {"metadata": {"name": "a", "uid": "xx"}}),
    Request("POST", CONFIG, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: y}\n", content_type="application/yaml"),
    Request("POST", CONFIG, ""),
    Request("POST", CONFIG, {"metadata": {"name": "BAD"}}),
    Request("POST", CONFIG, {"metadata": {"name": "b"}}, content_type="text/plain"),
    Request("PUT", f"{CONFIG}/a", {"metadata": {"name": "a", "resourceVersion": "1"}}),
    Request("PUT", f"{CONFIG}/a", {"metadata": {"name": "a", "uid": "yy"}}),
    Request("PATCH", f"{CONFIG}/a", {"data": {"a": "c"}}, content_type=MERGE),
    Request("GET", f"{CONFIG}?fieldSelector=metadata.name%3Da"),
    Request("GET", f"{CONFIG}/a?x=%20y"),
    Request("GET", f"{CONFIG}?watch=1&timeoutSeconds=1&resourceVersion=0&labelSelector=no%3Dbody"),
    Request("GET", f"{CONFIG}?watch=1&fieldSelector=nope%3D1"),
    Request("GET", f"{NAMESPACED}/pods/p%202"),
    Request("DELETE", f"{CONFIG}/a"),
    Request("DELETE", f"{CONFIG}/a"),
    Request("DELETE", f"{CONFIG}?labelSelector=no%3Dbody"),
    Request("GET", "/nope?x=1"),
    Request("GET", "/api/v1/nope"),
    Request("POST", "/version"),
    Request("POST", TOKENS, {"spec": {"token": "x"}}),
    Request("POST", TOKEN, {}),
    Request("POST", SELF, _asks(), _as("ann")),
    Request("GET", "/version", headers={"X-Forwarded-For": "1.2.3.4, x, 5.6.7.8", "X-Real-Ip": "9.9.9.9"}),
    Request("GET", "/version", headers={"Audit-Id": "mine"}),
    Request("GET", "/apis", headers={"Impersonate-User": "bob", "Impersonate-Uid": "7", "Impersonate-Extra-A": "b"}),
    Request("GET", "/apis", headers={"Impersonate-Group": "x"}),
    Request("GET", "/apis", headers=_as("zoe"), who="plain"),
    Request("GET", f"{NAMESPACED}/pods", headers=_as("ben")),
    Request("POST", CONFIG, {"metadata": {"name": "c"}}, _as("ben")),
    Request("GET", f"{NAMESPACED}/pods", headers=_as("carl")),
    Request("GET", f"{NAMESPACED}/pods", who="nobody"),
    Request("GET", f"{NAMESPACED}/pods", headers={"Authorization": "Bearer xyz"}, who="nobody"),
    Request("GET", "/apis", who="plain"),
    Request("GET", "/last"),
)


async def test_both_audit_logs_tell_the_same_of_the_same_requests(planes: tuple[Plane, Plane]) -> None:
    theirs, ours = [await _audited(plane) for plane in planes]

    different = [f"real     {one}\nembedded {other}" for one, other in zip(theirs, ours, strict=False) if one != other]
    assert not different, "\n".join(different)
    assert len(theirs) == len(ours)


async def _audited(plane: Plane) -> list[Any]:
    said = [await plane.send(request) for request in AUDITED]
    known = {answer.headers["Audit-Id"]: index for index, answer in enumerate(said)}
    # A line is written after the answer, and not always before that of the next request.
    while known.keys() - _complete(plane):  # noqa: ASYNC110 - a file tells nobody
        await asyncio.sleep(0.02)
    ours = [event for event in _events(plane) if event["auditID"] in known]
    for event in ours:
        assert event["requestReceivedTimestamp"] <= event["stageTimestamp"]
    ours.sort(key=lambda event: known[event["auditID"]])
    return [_told(event) for event in ours]


def _events(plane: Plane) -> list[dict[str, Any]]:
    """What an audit log says so far, in whole lines."""
    return [json.loads(line) for line in plane.audit.read_text().rpartition("\n")[0].splitlines()]


def _complete(plane: Plane) -> set[str]:
    """The requests of which all is told; of those without a user only the beginning of the answer is."""
    return {
        event["auditID"]
        for event in _events(plane)
        if event["stage"] == "ResponseComplete" or event.get("responseStatus", {}).get("code") == 401
    }


def _told(event: dict[str, Any]) -> Any:
    different = ("auditID", "requestReceivedTimestamp", "stageTimestamp")
    told = {name: value for name, value in event.items() if name not in different}
    return _leveled(told)


# What is there from the start

FOUND = ("namespaces", "services", "configmaps")
FOUND_IN_GROUPS = (
    *(f"{RBAC}/{plural}" for plural in ("clusterroles", "clusterrolebindings", "roles", "rolebindings")),
    "/apis/scheduling.k8s.io/v1/priorityclasses",
    "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
    "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations",
    "/apis/networking.k8s.io/v1/servicecidrs",
    "/apis/networking.k8s.io/v1/ipaddresses",
    "/apis/apiregistration.k8s.io/v1/apiservices",
)


@pytest.mark.parametrize("path", [*(f"/api/v1/{plural}" for plural in FOUND), *FOUND_IN_GROUPS])
async def test_a_fresh_server_holds_what_a_real_one_holds(planes: tuple[Plane, Plane], path: str) -> None:
    deadline = asyncio.get_running_loop().time() + 30
    while True:  # controllers, of the server itself too, see to some of it a moment after the start
        theirs, ours = [_kept((await plane.send(Request("GET", path))).body["items"]) for plane in planes]
        if theirs == ours or asyncio.get_running_loop().time() > deadline:
            break
        await asyncio.sleep(0.05)

    assert theirs == ours


def _kept(items: list[dict[str, Any]]) -> dict[str, Any]:
    """Objects by name, without those of these tests, of the planes and of the controllers of the real cluster."""
    kept = {}
    for item in items:
        meta = item["metadata"]
        if meta["name"].startswith(("v-", "kubewright:")) or SPACE in (meta["name"], meta.get("namespace")):
            continue
        if meta["name"] != "kube-root-ca.crt":
            kept[f"{meta.get('namespace', '')}/{meta['name']}"] = _alike(_leveled(item))
    return kept


def _alike(tree: dict[str, Any]) -> dict[str, Any]:
    tree["metadata"].get("managedFields", []).sort(key=json.dumps)
    if "ports" in tree.get("spec", {}):
        tree["spec"]["ports"][0]["targetPort"] = "port"
    for name, value in tree.get("data", {}).items():
        tree["data"][name] = "certificate" if value.startswith("-----BEGIN") else value
    return tree


# What comes about by itself


async def _until(plane: Plane, path: str, happened: Callable[[Response], bool]) -> Any:
    """The object at a path, once something has happened to it."""
    while not happened(said := await plane.send(Request("GET", path))):  # noqa: ASYNC110 - a server is asked, not told
        await asyncio.sleep(0.01)
    return said.body


async def test_a_secret_made_for_an_account_is_filled_in_and_its_use_noted_alike(planes: tuple[Plane, Plane]) -> None:
    theirs, ours = [await _secret_states(plane) for plane in planes]

    assert theirs == ours


async def _secret_states(plane: Plane) -> list[Any]:
    path = f"{NAMESPACED}/secrets/kept"
    notes = {"kubernetes.io/service-account.name": "plain"}
    tree = {"metadata": {"name": "kept", "annotations": notes}, "type": "kubernetes.io/service-account-token"}
    await plane.send(Request("POST", f"{NAMESPACED}/secrets", tree))
    filled = await _until(plane, path, lambda said: "token" in said.body.get("data", {}))
    plane.tokens["kept"] = base64.b64decode(filled["data"]["token"]).decode()
    review = await plane.send(Request("POST", TOKENS, {"spec": {"token": "$kept"}}))
    while not review.body["status"].get("authenticated"):  # a server may know the Secret from before it was filled in
        review = await plane.send(Request("POST", TOKENS, {"spec": {"token": "$kept"}}))
    used = await _until(plane, path, lambda said: bool(said.body["metadata"].get("labels")))
    states = []
    for state in (filled, used):
        data = {name: base64.b64decode(value).decode() for name, value in state["data"].items()}
        data["token"] = _claims(data["token"])
        states.append(_alike(_leveled({**state, "data": {**data, "token": json.dumps(data["token"])}})))
    return [states, _leveled(review.body)]


async def test_a_secret_made_for_no_account_is_deleted_alike(planes: tuple[Plane, Plane]) -> None:
    notes = {"kubernetes.io/service-account.name": "nobody"}
    tree = {"metadata": {"name": "lost", "annotations": notes}, "type": "kubernetes.io/service-account-token"}

    for plane in planes:
        made = await plane.send(Request("POST", f"{NAMESPACED}/secrets", tree))
        assert made.code == 201
        gone = await _until(plane, f"{NAMESPACED}/secrets/lost", lambda said: said.code == 404)
        assert gone["message"] == 'secrets "lost" not found'


async def test_aggregated_roles_gather_the_same_rules(planes: tuple[Plane, Plane]) -> None:
    theirs, ours = [await _aggregated_states(plane) for plane in planes]

    assert theirs == ours


async def _aggregated_states(plane: Plane) -> list[Any]:
    path = f"{RBAC}/clusterroles/v-whole"
    chosen = {"clusterRoleSelectors": [{"matchLabels": {"part": "yes"}}]}
    whole = {"metadata": {"name": "v-whole"}, "aggregationRule": chosen, "rules": [_rule("get", "nodes")]}
    await plane.send(Request("POST", f"{RBAC}/clusterroles", whole))
    await plane.send(_role("v-part-2", _rule("get", "pods"), _rule("list", "pods"), labels={"part": "yes"}))
    await plane.send(_role("v-part-1", _rule("list", "pods"), _rule("watch", "nodes"), labels={"part": "yes"}))
    full = await _until(plane, path, lambda said: len(said.body.get("rules") or ()) == 3)
    await plane.send(
        Request("PATCH", f"{RBAC}/clusterroles/v-part-1", {"metadata": {"labels": None}}, content_type=MERGE)
    )
    less = await _until(plane, path, lambda said: len(said.body.get("rules") or ()) == 2)
    await plane.send(Request("DELETE", f"{RBAC}/clusterroles/v-part-2"))
    bare = await _until(plane, path, lambda said: not said.body.get("rules"))
    return [_alike(_leveled(state)) for state in (full, less, bare)]


async def test_a_token_bound_to_a_pod_says_the_same_of_it(planes: tuple[Plane, Plane]) -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"nodeName": "ghost", "serviceAccountName": "plain"}}
    pod["spec"]["containers"] = [{"name": "c", "image": "i"}]  # type: ignore[assignment] # a tree
    requests = (
        Request("POST", TOKEN, {"spec": {"expirationSeconds": 3607, **_bound("Pod", "p")["spec"]}}),
        Request("POST", f"{NAMESPACED}/serviceaccounts/actor/token", _bound("Pod", "p")),
        Request("POST", TOKENS, {"spec": {"token": "$bound"}}),
    )
    seen = []
    for plane in planes:
        assert (await plane.send(Request("POST", f"{NAMESPACED}/pods", pod))).code == 201
        first = await plane.send(requests[0])
        plane.tokens["bound"] = first.body["status"]["token"]
        seen.append([_comparable(first), *[_comparable(await plane.send(request)) for request in requests[1:]]])

    assert seen[0] == seen[1]
