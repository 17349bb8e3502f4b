"""Who a request is from, and whom it may speak for."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from kubewright.apiserver.wire.requests import Peer, Request

WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
PODS = "/api/v1/namespaces/default/pods"


async def _who(desk: Any, **how: Any) -> dict[str, Any]:
    code, tree = await desk.ask("POST", WHO, {}, **how)
    assert code == 201, tree
    found: dict[str, Any] = tree["status"]["userInfo"]
    return found


async def test_a_certificate_names_the_user_and_the_groups(desk: Any) -> None:
    assert await _who(desk) == {
        "username": "admin",
        "groups": ["system:masters", "system:authenticated"],
        "extra": {"authentication.kubernetes.io/credential-id": ["X509SHA256=ab"]},
    }


async def test_a_static_token_is_its_user(desk: Any) -> None:
    assert await _who(desk, token="sesame") == {
        "username": "stan",
        "uid": "s-1",
        "groups": ["static", "system:authenticated"],
    }


async def test_an_unknown_token_is_401_and_none_is_nobody(desk: Any) -> None:
    code, refused = await desk.ask("GET", "/version", token="wrong")
    assert (code, refused["message"]) == (401, "Unauthorized")

    code, refused = await desk.ask("GET", "/api/v1/pods", authorization="Basic eDp5", user="")
    assert code == 403
    assert refused["message"].startswith('pods is forbidden: User "system:anonymous" cannot list')


async def test_without_anonymous_users_nothing_is_401(make_desk: Callable[..., Any]) -> None:
    desk = make_desk(anonymous=False)

    code, _ = await desk.ask("GET", "/version", user="")

    assert code == 401


@pytest.fixture
async def account(desk: Any) -> dict[str, Any]:
    made: dict[str, Any] = await desk.make(ACCOUNTS, {"metadata": {"name": "robot"}})
    return made


async def test_a_token_on_request_is_its_account(desk: Any, account: dict[str, Any]) -> None:
    found = await _who(desk, token=await desk.token_of("robot"))

    assert found["username"] == "system:serviceaccount:default:robot"
    assert found["uid"] == account["metadata"]["uid"]
    assert found["groups"] == ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"]


async def test_a_token_ends_a_minute_after_its_time(desk: Any, account: dict[str, Any]) -> None:
    token = await desk.token_of("robot", expirationSeconds=600)
    desk.clock.present += timedelta(seconds=659)
    assert (await desk.ask("GET", "/version", token=token))[0] == 200

    desk.clock.present += timedelta(seconds=2)

    assert (await desk.ask("GET", "/version", token=token))[0] == 401


async def test_a_token_of_another_time_is_not_valid_yet(desk: Any, account: dict[str, Any]) -> None:
    token = await desk.token_of("robot")

    desk.clock.present -= timedelta(seconds=61)

    assert (await desk.ask("GET", "/version", token=token))[0] == 401


async def test_a_token_for_others_does_not_open_this_server(desk: Any, account: dict[str, Any]) -> None:
    token = await desk.token_of("robot", audiences=["vault"])

    assert (await desk.ask("GET", "/version", token=token))[0] == 401


async def test_a_token_ends_with_its_account_even_if_a_namesake_comes(desk: Any, account: dict[str, Any]) -> None:
    token = await desk.token_of("robot")

    await desk.ask("DELETE", f"{ACCOUNTS}/robot")
    assert (await desk.ask("GET", "/version", token=token))[0] == 401

    await desk.make(ACCOUNTS, {"metadata": {"name": "robot"}})
    assert (await desk.ask("GET", "/version", token=token))[0] == 401


async def test_a_token_bound_to_a_pod_ends_with_the_pod(desk: Any, account: dict[str, Any]) -> None:
    spec = {"serviceAccountName": "robot", "containers": [{"name": "c", "image": "i"}]}
    pod = await desk.make(PODS, {"metadata": {"name": "p"}, "spec": spec})
    token = await desk.token_of("robot", boundObjectRef={"kind": "Pod", "apiVersion": "v1", "name": "p"})
    found = await _who(desk, token=token)
    assert found["extra"]["authentication.kubernetes.io/pod-uid"] == [pod["metadata"]["uid"]]

    await desk.ask("DELETE", f"{PODS}/p?gracePeriodSeconds=0")

    assert (await desk.ask("GET", "/version", token=token))[0] == 401


async def test_impersonation_takes_the_permission_for_each_thing(desk: Any) -> None:
    code, refused = await desk.ask("GET", "/version", user="ann", impersonate_user="bob")

    assert code == 403
    assert refused["message"] == (
        'users "bob" is forbidden: User "ann" cannot impersonate resource "users" in API group "" at the cluster scope'
    )


async def test_an_administrator_may_be_anybody(desk: Any) -> None:
    headers = {"impersonate_user": "bob", "impersonate_group": "a,b\nc", "impersonate_uid": "7"}

    found = await _who(desk, **headers, **{"impersonate-extra-x%2fy": "1\n2"})

    assert found == {
        "username": "bob",
        "uid": "7",
        "groups": ["a,b", "c", "system:authenticated"],
        "extra": {"x/y": ["1", "2"]},
    }


async def test_who_is_impersonated_is_bound_by_his_own_permissions(desk: Any) -> None:
    assert (await desk.ask("GET", "/api/v1/pods", impersonate_user="bob"))[0] == 403
    assert (await desk.ask("GET", "/api/v1/pods", impersonate_user="bob", impersonate_group="system:masters"))[0] == 200


async def test_the_keys_of_tokens_are_published_before_the_server_starts(make_desk: Callable[..., Any]) -> None:
    desk = make_desk()

    code, keys = await desk.ask("GET", "/openid/v1/jwks")

    assert (code, keys) == (200, desk.access.signer.key_set())


async def _who_by_proxy(desk: Any, peer: Peer, **headers: str) -> tuple[int, Any]:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    reply = await desk.server.router.handle(Request("POST", WHO, {}, sent, b"{}", peer, uri=WHO))
    tree = json.loads(reply.body)
    return reply.code, tree["status"]["userInfo"] if reply.code == 201 else tree["reason"]


async def test_a_front_proxy_names_the_user(desk: Any) -> None:
    proxy = Peer(common_name="front-proxy-client", issuer="proxies", fingerprint="ab")

    code, who = await _who_by_proxy(
        desk, proxy, x_remote_user="ann", x_remote_group="a,b\nc", **{"x-remote-extra-acme%2fteam": "x\ny"}
    )

    assert code == 201
    assert who == {
        "username": "ann",
        "groups": ["a,b", "c", "system:authenticated"],
        "extra": {"acme/team": ["x", "y"]},
    }


@pytest.mark.parametrize(
    "peer",
    [
        Peer(common_name="somebody-else", issuer="proxies"),
        Peer(common_name="front-proxy-client", issuer="clients"),
        Peer(common_name=""),
    ],
    ids=["another name", "another CA", "no certificate"],
)
async def test_nobody_but_a_front_proxy_names_users(desk: Any, peer: Peer) -> None:
    _, who = await _who_by_proxy(desk, peer, x_remote_user="ann", x_remote_group="system:masters")

    assert "ann" not in str(who)
    assert "system:masters" not in str(who)


async def test_a_proxys_own_certificate_makes_it_no_user(desk: Any) -> None:
    assert await _who_by_proxy(desk, Peer(common_name="front-proxy-client", issuer="proxies")) == (401, "Unauthorized")


@pytest.mark.parametrize("way", ["exec?command=true&stdout=1", "attach?stdout=1", "portforward"])
async def test_whoever_enters_a_pod_with_get_must_be_allowed_to_create(desk: Any, way: str) -> None:
    rules = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
    resources = ["pods/exec", "pods/attach", "pods/portforward"]
    role = {"metadata": {"name": "look"}, "rules": [{"apiGroups": [""], "resources": resources, "verbs": ["get"]}]}
    await desk.make(f"{rules}/roles", role)
    binding = {
        "metadata": {"name": "look"},
        "subjects": [{"kind": "User", "name": "ann", "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"kind": "Role", "name": "look", "apiGroup": "rbac.authorization.k8s.io"},
    }
    await desk.make(f"{rules}/rolebindings", binding)

    code, refused = await desk.ask("GET", f"{PODS}/x/{way}", user="ann")

    assert (code, refused["message"]) == (403, 'pods "x" is forbidden: ')
