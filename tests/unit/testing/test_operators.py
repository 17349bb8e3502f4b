"""An operator under test starts when the server heeds its roles: what is denied before is no finding."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any

from kubewright import Client, Context, Resource, Spec, Status, controller
from kubewright.api.codec import decode_tree, encode_tree
from kubewright.client.transport.transport import HttpRequest, HttpResponse, HttpStream
from kubewright.k8s.core.v1 import ConfigMap
from kubewright.manager.operator import operator_of
from kubewright.testing import operators

REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


class Thing(Resource[Spec, Status], group="grants.example.io", version="v1"):
    """Something."""


@controller(Thing, owns=[ConfigMap])
async def reconcile(thing: Thing, ctx: Context) -> None:
    await ctx.apply(ConfigMap.named(thing.metadata.name))


class SlowToHear:
    """A server whose authorizer knows of a role only when it is asked the second time."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    async def send(self, request: HttpRequest) -> HttpResponse:
        if request.method == "GET":
            return _json(
                _LISTING if request.path == "/apis" else {**_LISTING, "items": [_group("", ("ServiceAccount",))]}
            )
        assert request.body is not None
        tree = decode_tree(request.body)
        if request.path == REVIEWS:
            known = tree["spec"] in self.asked
            self.asked.append(tree["spec"])
            tree["status"] = {"allowed": known}
        return _json(tree)

    def stream(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpStream]:
        raise NotImplementedError

    async def close(self) -> None: ...


def _json(tree: dict[str, Any]) -> HttpResponse:
    return HttpResponse(status=200, headers={"content-type": "application/json"}, body=encode_tree(tree))


def _group(group: str, kinds: tuple[str, ...]) -> dict[str, Any]:
    resources = [
        {
            "resource": f"{kind.lower()}s",
            "responseKind": {"group": group, "version": "v1", "kind": kind},
            "scope": "Cluster" if kind.startswith("Cluster") else "Namespaced",
            "verbs": ["get"],
        }
        for kind in kinds
    ]
    return {"metadata": {"name": group}, "versions": [{"version": "v1", "resources": resources}]}


_LISTING: dict[str, Any] = {
    "apiVersion": "apidiscovery.k8s.io/v2",
    "kind": "APIGroupDiscoveryList",
    "items": [
        _group("rbac.authorization.k8s.io", ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")),
    ],
}


async def test_every_rule_is_asked_about_until_the_server_heeds_it() -> None:
    server = SlowToHear()

    await operators._grant(Client(server, field_manager="test"), operator_of(reconcile))

    asked = [(spec["resourceAttributes"]["verb"], spec["resourceAttributes"]["resource"]) for spec in server.asked]
    assert len(asked) == 2 * len(set(asked)), "each once in vain and once with success"
    assert {("create", "configmaps"), ("get", "things"), ("create", "leases")} <= set(asked)
    assert {spec["user"].rpartition(":")[2] for spec in server.asked} == {"thing-controller-manager"}
