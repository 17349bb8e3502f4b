"""A permission that is not granted yet: it is named with the rule that would help, and used once it is there.

Covers: kubewright.cache, kubewright.manager
"""

from __future__ import annotations

from uuid import uuid4

import pytest
from tests.planes import faulty
from tests.scenarios.conftest import Journal, asked, child_per_widget, converged, managed, widget

from kubewright import Client, Config, Context, Manager, connect, controller
from kubewright.client.transport.transport import HttpRequest
from kubewright.cluster.planes.real import RealCluster
from kubewright.errors import Forbidden
from kubewright.k8s.core.v1 import ConfigMap, Secret
from kubewright.k8s.rbac.v1 import PolicyRule, Role, RoleBinding, RoleRef, Subject
from kubewright.testing import time_limit

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(180)]

EVERYTHING = ["get", "list", "watch", "create", "update", "patch", "delete"]


def rule(group: str, *resources: str, verbs: list[str] = EVERYTHING) -> PolicyRule:
    return PolicyRule(api_groups=[group], resources=list(resources), verbs=verbs)


async def grant(client: Client, namespace: str, user: str, name: str, *rules: PolicyRule) -> None:
    await client.create(Role.named(name, namespace, rules=list(rules)))
    subject = Subject(kind="User", name=user, api_group="rbac.authorization.k8s.io")
    reference = RoleRef(kind="Role", name=name, api_group="rbac.authorization.k8s.io")
    await client.create(RoleBinding.named(name, namespace, subjects=[subject], role_ref=reference))


async def until_allowed(config: Config, namespace: str) -> None:
    """The server's authorizer learns of a binding through a watch of its own, so ask until it has."""
    async with time_limit(60), connect(config) as client:
        while True:
            try:
                await client.list(ConfigMap, namespace=namespace)
                return
            except Forbidden:
                continue


async def test_a_permission_granted_after_the_start_is_named_meanwhile_and_then_used(
    client: Client, real_cluster: RealCluster, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    user = f"operator-{uuid4().hex[:8]}"
    widgets, secrets = Journal(), Journal()
    await grant(
        client,
        namespace,
        user,
        "widgets",
        rule("scenarios.example.io", "widgets", "widgets/status"),
        rule("", "configmaps"),
        rule("events.k8s.io", "events"),
    )

    @controller(Secret)
    async def reconcile(obj: Secret, ctx: Context) -> None:
        secrets.note(obj.metadata.name)

    kubeconfig = await real_cluster.user(user)
    await until_allowed(Config.load(kubeconfig=kubeconfig), namespace)
    named_before: list[bool] = []

    def note(request: HttpRequest) -> None:
        """Of each request for secrets, whether it was known by then that they must not be read."""
        if request.path.endswith("/secrets"):
            named_before.append(any(manager.cache.problems()))

    async with faulty(kubeconfig) as (operators, faults):
        faults.answer = note
        manager = managed(operators, namespace, child_per_widget(widgets), reconcile)
        await check(manager, client, namespace, user, secrets, caplog)

    # A watch is refused, then a list, which names it at once: before anything is tried again.
    assert named_before[:3] == [False, False, True]


async def check(
    manager: Manager,
    client: Client,
    namespace: str,
    user: str,
    secrets: Journal,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with manager:
        async with time_limit(60):
            ready = await asked(manager, "/readyz")
            while "the permission to" not in ready:
                ready = await asked(manager, "/readyz")
        sentence = f"the permission to list secrets in namespace {namespace} is missing"
        assert f"Secret (v1) cannot be watched: {sentence}" in ready
        assert '"resources": ["secrets"], "verbs": ["get", "list", "watch"]' in ready
        assert f"a Role in namespace {namespace}" in ready
        assert sentence in caplog.text
        assert await asked(manager, "/healthz") == "ok"
        await client.create(widget("w", namespace))
        await converged(client, namespace, {"w": 1})

        await client.create(Secret.named("s", namespace))
        await grant(client, namespace, user, "secrets", rule("", "secrets", verbs=["get", "list", "watch"]))
        await secrets.reach(lambda entries: "s" in entries)

        assert not list(manager.cache.problems())
        assert await asked(manager, "/readyz") == "ok"
