"""Warnings: one header for each, in an answer that a client reads as a whole."""

from __future__ import annotations

from tests.security.harness.attack import CONFIG_MAPS, Target, attack, many
from tests.security.harness.exchange import Answer

_PODS = "/api/v1/namespaces/edited/pods"


@attack(by="editor")
async def of_a_pod(on: Target) -> Answer:
    """A pod each of whose twenty thousand variables gives a warning."""
    env = [{"name": "V", "value": "x"}] * many(26, values=3)
    return await on.post(
        _PODS, {"metadata": {"name": "w"}, "spec": {"containers": [{"name": "c", "image": "i", "env": env}]}}
    )


@attack(by="editor")
async def of_unknown_fields(on: Target) -> Answer:
    """A field that is not known, two hundred thousand times."""
    return await on.post(
        f"{CONFIG_MAPS}?fieldValidation=Warn", {"metadata": {"name": "w"}, **{f"x{n}": 0 for n in range(many(12))}}
    )


@attack(by="editor")
async def of_long_names(on: Target) -> Answer:
    """Ten fields that are not known, with names of a quarter of a megabyte and line ends in them."""
    return await on.post(
        f"{CONFIG_MAPS}?fieldValidation=Warn",
        {"metadata": {"name": "w"}, **{"x\r\nX-Y: z" * 20_000 + str(n): 0 for n in range(10)}},
    )


@attack(by="editor")
async def of_addresses(on: Target) -> Answer:
    """A NetworkPolicy with a hundred thousand networks of an odd form."""
    peers = [{"ipBlock": {"cidr": "010.0.0.1/8"}}] * many(36, values=3)
    spec = {"podSelector": {}, "ingress": [{"from": peers}]}
    return await on.post(
        "/apis/networking.k8s.io/v1/namespaces/edited/networkpolicies", {"metadata": {"name": "w"}, "spec": spec}
    )
