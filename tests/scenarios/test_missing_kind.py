"""A kind that is not installed yet: it is named, the others work, and it is watched as soon as it is there.

Covers: kubewright.cache, kubewright.manager
"""

from __future__ import annotations

import pytest
from tests.planes import faulty
from tests.scenarios.conftest import Journal, asked, child_per_widget, converged, managed, widget

from kubewright import Client, Context, Manager, Resource, Spec, Status, controller
from kubewright.client.transport.transport import HttpRequest
from kubewright.cluster.install import install_crds
from kubewright.cluster.planes.real import RealCluster
from kubewright.testing import time_limit

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(180)]


class LateSpec(Spec):
    text: str = ""


class Late(Resource[LateSpec, Status], group="late.example.io", version="v1"):
    """Installed while the operator runs."""


async def test_a_kind_installed_after_the_start_is_named_meanwhile_and_then_reconciled(
    client: Client, real_cluster: RealCluster, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    widgets, lates = Journal(), Journal()

    @controller(Late)
    async def reconcile(obj: Late, ctx: Context) -> None:
        lates.note(obj.metadata.name)

    named_before: list[bool] = []

    def note(request: HttpRequest) -> None:
        """Of each request for the kind, whether it was known by then that there is none."""
        if request.path.endswith("/lates"):
            named_before.append(any(manager.cache.problems()))

    async with faulty(real_cluster.kubeconfig) as (operators, faults):
        faults.answer = note
        manager = managed(operators, namespace, child_per_widget(widgets), reconcile)
        await check(manager, client, namespace, lates, caplog)

    assert named_before[:2] == [False, True], "at once, before anything is tried again"


async def check(
    manager: Manager, client: Client, namespace: str, lates: Journal, caplog: pytest.LogCaptureFixture
) -> None:
    async with manager:
        async with time_limit(60):
            ready = await asked(manager, "/readyz")
            while "no such kind" not in ready:
                ready = await asked(manager, "/readyz")
        assert "Late (late.example.io/v1) cannot be watched" in ready
        assert "install the CRD lates.late.example.io with version v1" in ready
        assert "install the CRD lates.late.example.io" in caplog.text
        assert await asked(manager, "/healthz") == "ok"
        await client.create(widget("w", namespace))
        await converged(client, namespace, {"w": 1})

        await install_crds(client, Late)
        await client.create(Late.named("l", namespace))
        await lates.reach(lambda entries: "l" in entries)

        assert not list(manager.cache.problems())
        assert await asked(manager, "/readyz") == "ok"
