"""Who a request is from, and whom it may speak for."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from kubewright._base.certificates import certificate_info
from kubewright.apiserver.wire.requests import Peer, Request

WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
PODS = "/api/v1/namespaces/default/pods"


async def _who(server: Any, **how: Any) -> dict[str, Any]:
    code, tree = await server.ask("POST", WHO, {}, **how)
    assert code == 201, tree
    found: dict[str, Any] = tree["status"]["userInfo"]
    return found


async def test_a_certificate_names_the_user_and_the_groups(server: Any) -> None:
    assert await _who(server) == {
        "username": "admin",
        "groups": ["system:masters", "system:authenticated"],
        "extra": {"authentication.kubernetes.io/credential-id": ["X509SHA256=ab"]},
    }


async def test_a_static_token_is_its_user(server: Any) -> None:
    assert await _who(server, token="sesame") == {
        "username": "stan",
        "uid": "s-1",
        "groups": ["static", "system:authenticated"],
    }


async def test_an_unknown_token_is_401_and_no_token_is_anonymous(server: Any) -> None:
    code, error = await server.ask("GET", "/version", token="wrong")
    assert (code, error["message"]) == (401, "Unauthorized")

    code, error = await server.ask("GET", "/api/v1/pods", authorization="Basic eDp5", user="")
    assert code == 403
    assert error["message"].startswith('pods is forbidden: User "system:anonymous" cannot list')


async def test_without_anonymous_users_no_token_is_401(make_server: Callable[..., Any]) -> None:
    server = make_server(anonymous=False)

    code, _ = await server.ask("GET", "/version", user="")

    assert code == 401


@pytest.fixture
async def account(server: Any) -> dict[str, Any]:
    made: dict[str, Any] = await server.make(ACCOUNTS, {"metadata": {"name": "robot"}})
    return made


async def test_a_requested_token_is_its_account(server: Any, account: dict[str, Any]) -> None:
    found = await _who(server, token=await server.token_of("robot"))

    assert found["username"] == "system:serviceaccount:default:robot"
    assert found["uid"] == account["metadata"]["uid"]
    assert found["groups"] == ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"]


async def test_a_token_ends_a_minute_after_its_time(server: Any, account: dict[str, Any]) -> None:
    token = await server.token_of("robot", expirationSeconds=600)
    server.clock.present += timedelta(seconds=659)
    assert (await server.ask("GET", "/version", token=token))[0] == 200

    server.clock.present += timedelta(seconds=2)

    assert (await server.ask("GET", "/version", token=token))[0] == 401


async def test_a_token_of_another_time_is_not_valid_yet(server: Any, account: dict[str, Any]) -> None:
    token = await server.token_of("robot")

    server.clock.present -= timedelta(seconds=61)

    assert (await server.ask("GET", "/version", token=token))[0] == 401


async def test_a_token_for_another_audience_is_rejected(server: Any, account: dict[str, Any]) -> None:
    token = await server.token_of("robot", audiences=["vault"])

    assert (await server.ask("GET", "/version", token=token))[0] == 401


async def test_a_token_ends_with_its_account_even_if_it_is_recreated(server: Any, account: dict[str, Any]) -> None:
    token = await server.token_of("robot")

    await server.ask("DELETE", f"{ACCOUNTS}/robot")
    assert (await server.ask("GET", "/version", token=token))[0] == 401

    await server.make(ACCOUNTS, {"metadata": {"name": "robot"}})
    assert (await server.ask("GET", "/version", token=token))[0] == 401


async def test_a_token_bound_to_a_pod_ends_with_the_pod(server: Any, account: dict[str, Any]) -> None:
    spec = {"serviceAccountName": "robot", "containers": [{"name": "c", "image": "i"}]}
    pod = await server.make(PODS, {"metadata": {"name": "p"}, "spec": spec})
    token = await server.token_of("robot", boundObjectRef={"kind": "Pod", "apiVersion": "v1", "name": "p"})
    found = await _who(server, token=token)
    assert found["extra"]["authentication.kubernetes.io/pod-uid"] == [pod["metadata"]["uid"]]

    await server.ask("DELETE", f"{PODS}/p?gracePeriodSeconds=0")

    assert (await server.ask("GET", "/version", token=token))[0] == 401


async def test_impersonation_needs_a_permission_for_each_attribute(server: Any) -> None:
    code, error = await server.ask("GET", "/version", user="ann", impersonate_user="bob")

    assert code == 403
    assert error["message"] == (
        'users "bob" is forbidden: User "ann" cannot impersonate resource "users" in API group "" at the cluster scope'
    )


async def test_an_administrator_may_impersonate_anyone(server: Any) -> None:
    headers = {"impersonate_user": "bob", "impersonate_group": "a,b\nc", "impersonate_uid": "7"}

    found = await _who(server, **headers, **{"impersonate-extra-x%2fy": "1\n2"})

    assert found == {
        "username": "bob",
        "uid": "7",
        "groups": ["a,b", "c", "system:authenticated"],
        "extra": {"x/y": ["1", "2"]},
    }


async def test_an_impersonated_user_has_its_own_permissions(server: Any) -> None:
    assert (await server.ask("GET", "/api/v1/pods", impersonate_user="bob"))[0] == 403
    assert (await server.ask("GET", "/api/v1/pods", impersonate_user="bob", impersonate_group="system:masters"))[
        0
    ] == 200


async def test_the_keys_of_tokens_are_published_before_the_server_starts(make_server: Callable[..., Any]) -> None:
    server = make_server()

    code, keys = await server.ask("GET", "/openid/v1/jwks")

    assert (code, keys) == (200, server.access.signer.key_set())


async def _who_by_proxy(server: Any, peer: Peer, **headers: str) -> tuple[int, Any]:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    reply = await server.api.router.handle(Request("POST", WHO, {}, sent, b"{}", peer, uri=WHO))
    tree = json.loads(reply.body)
    return reply.code, tree["status"]["userInfo"] if reply.code == 201 else tree["reason"]


def _peer(server: Any, name: str, *, from_proxy: bool = True) -> Peer:
    root = certificate_info(server.access.proxy_ca).fingerprint if from_proxy else "cd"
    return Peer(common_name=name, fingerprint="ab", root_fingerprint=root)


async def test_a_front_proxy_names_the_user(server: Any) -> None:
    proxy = _peer(server, "front-proxy-client")

    code, who = await _who_by_proxy(
        server, proxy, x_remote_user="ann", x_remote_group="a,b\nc", **{"x-remote-extra-acme%2fteam": "x\ny"}
    )

    assert code == 201
    assert who == {
        "username": "ann",
        "groups": ["a,b", "c", "system:authenticated"],
        "extra": {"acme/team": ["x", "y"]},
    }


@pytest.mark.parametrize(
    ("name", "from_proxy"),
    [("somebody-else", True), ("front-proxy-client", False), ("", False)],
    ids=["another name", "another CA", "no name"],
)
async def test_only_a_front_proxy_names_users(server: Any, name: str, from_proxy: bool) -> None:
    peer = _peer(server, name, from_proxy=from_proxy)

    _, who = await _who_by_proxy(server, peer, x_remote_user="ann", x_remote_group="system:masters")

    assert "ann" not in str(who)
    assert "system:masters" not in str(who)


async def test_the_certificate_of_a_front_proxy_is_no_users(server: Any) -> None:
    assert await _who_by_proxy(server, _peer(server, "front-proxy-client")) == (401, "Unauthorized")


@pytest.mark.parametrize("way", ["exec?command=true&stdout=1", "attach?stdout=1", "portforward"])
async def test_streaming_by_get_needs_the_verb_create(server: Any, way: str) -> None:
    rules = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
    resources = ["pods/exec", "pods/attach", "pods/portforward"]
    role = {"metadata": {"name": "look"}, "rules": [{"apiGroups": [""], "resources": resources, "verbs": ["get"]}]}
    await server.make(f"{rules}/roles", role)
    binding = {
        "metadata": {"name": "look"},
        "subjects": [{"kind": "User", "name": "ann", "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"kind": "Role", "name": "look", "apiGroup": "rbac.authorization.k8s.io"},
    }
    await server.make(f"{rules}/rolebindings", binding)

    code, error = await server.ask("GET", f"{PODS}/x/{way}", user="ann")

    assert (code, error["message"]) == (403, 'pods "x" is forbidden: ')
