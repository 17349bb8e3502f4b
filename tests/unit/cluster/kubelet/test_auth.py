"""Who may call the kubelet, by certificate or token, and how long that is remembered."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.cluster.kubelet.review_transport import ReviewTransport

from kubewright import Client
from kubewright.cluster.kubelet.auth import ExpiringCache, KubeletAuth, Refusal, request_attributes
from kubewright.testing import VirtualClock

ADMIN = {"subject": ((("organizationName", "ops"),), (("organizationName", "devs"),), (("commonName", "ada"),))}
ATTRIBUTES = {
    "/exec/shop/web/main": ("proxy",),
    "/containerLogs/shop/web/main": ("proxy",),
    "/": ("proxy",),
    "": ("proxy",),
    "//stats": ("proxy",),
    "/statsx": ("proxy",),
    "/stats": ("stats",),
    "/stats/summary": ("stats",),
    "/metrics/cadvisor": ("metrics",),
    "/logs/": ("log",),
    "/checkpoint/shop/web/main": ("checkpoint",),
    "/statusz": ("statusz",),
    "/flagz": ("configz",),
    "/pods": ("pods", "proxy"),
    "/pods/": ("pods", "proxy"),
    "/podsx": ("proxy",),
    "/runningpods/": ("pods", "proxy"),
    "/healthz/ping": ("healthz", "proxy"),
    "/configz": ("configz", "proxy"),
}


@pytest.mark.parametrize("path", ATTRIBUTES)
def test_the_path_names_the_subresources(path: str) -> None:
    assert request_attributes("GET", path) == ("get", ATTRIBUTES[path])


def test_the_method_is_the_verb_and_an_unknown_one_none() -> None:
    methods = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "get")

    assert [request_attributes(method, "/x")[0] for method in methods] == [
        "get", "create", "update", "patch", "delete", "", "",
    ]  # fmt: skip


async def refusal(auth: KubeletAuth, path: str = "/exec/a/b/c", **options: Any) -> Refusal | None:
    return await auth.refusal("GET", path, **{"certificate": {}, "authorization": "", **options})


async def test_without_credentials_nothing_is_reviewed() -> None:
    transport = ReviewTransport()

    for header in ("", "Bearer", "Bearer ", "Basic YTpi", "token"):
        assert await refusal(KubeletAuth(Client(transport)), authorization=header) == Refusal(401, "Unauthorized")
    assert transport.reviewed == []


async def test_the_last_common_name_and_all_organizations_are_the_user() -> None:
    transport = ReviewTransport(rights={("ada", "get", "proxy")})
    several = {"subject": ((("commonName", "root"),), *ADMIN["subject"])}

    assert await refusal(KubeletAuth(Client(transport), node_name="node-1"), certificate=several) is None
    assert transport.reviewed == [
        {
            "user": "ada",
            "groups": ["ops", "devs", "system:authenticated"],
            "uid": "",
            "extra": {},
            "resourceAttributes": {
                "verb": "get", "version": "v1", "resource": "nodes", "subresource": "proxy", "name": "node-1",
            },
        }
    ]  # fmt: skip


async def test_a_subject_without_a_common_name_is_nobody() -> None:
    groups = {"subject": ((("organizationName", "system:masters"),),)}

    assert await refusal(KubeletAuth(Client(ReviewTransport())), certificate=groups) == Refusal(401, "Unauthorized")


async def test_one_of_the_subresources_is_enough() -> None:
    transport = ReviewTransport(rights={("ada", "get", "healthz")})
    auth = KubeletAuth(Client(transport))

    assert await refusal(auth, "/healthz", certificate=ADMIN) is None
    assert await refusal(auth, "/pods", certificate=ADMIN) == Refusal(
        403, "Forbidden (user=ada, verb=get, resource=nodes, subresource(s)=[pods proxy])\n"
    )


async def test_decisions_are_kept_for_a_time() -> None:
    transport = ReviewTransport(users={"t": "bob"}, rights={("bob", "get", "proxy")})
    clock = VirtualClock()
    auth = KubeletAuth(Client(transport), clock=clock)

    assert await refusal(auth, authorization="Bearer t") is None
    transport.users.clear()
    transport.rights.clear()
    assert await refusal(auth, authorization="Bearer t") is None
    await clock.advance(121)

    assert await refusal(auth, authorization="Bearer t") == Refusal(401, "Unauthorized")
    transport.users["t"] = "bob"
    assert await refusal(auth, authorization="Bearer t") is None
    await clock.advance(301)
    refused = await refusal(auth, authorization="Bearer t")
    assert refused is not None
    assert refused.code == 403
    transport.rights.add(("bob", "get", "proxy"))
    await clock.advance(31)
    assert await refusal(auth, authorization="Bearer t") is None


async def test_an_api_server_that_does_not_answer_lets_nobody_in() -> None:
    transport = ReviewTransport(users={"t": "bob"}, rights={("bob", "get", "proxy"), ("ada", "get", "proxy")})
    transport.status = 503
    auth = KubeletAuth(Client(transport))

    assert await refusal(auth, authorization="Bearer t") == Refusal(401, "Unauthorized")
    assert await refusal(auth, certificate=ADMIN) == Refusal(
        500, "Authorization error (user=ada, verb=get, resource=nodes, subresource=proxy)"
    )


def test_a_cache_is_bounded_in_count_and_time() -> None:
    clock = VirtualClock()
    cache: ExpiringCache[int] = ExpiringCache(clock, max_entries=3)

    for number in range(5):
        cache.put(number, number, seconds=10)
        cache.get(2)

    assert len(cache) == 3
    assert [cache.get(number) for number in range(5)] == [None, None, 2, 3, 4]
