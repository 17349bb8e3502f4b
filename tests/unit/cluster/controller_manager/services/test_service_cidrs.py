"""The deletion of a ServiceCIDR."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kubewright.api.codec import from_tree
from kubewright.api.times import format_time
from kubewright.cluster.controller_manager.services.service_cidrs import ServiceCIDRController
from kubewright.controllers.context import Context
from kubewright.controllers.reconcile import Result
from kubewright.k8s.core.v1 import Service
from kubewright.k8s.networking.v1 import ServiceCIDR

NOW = datetime(2030, 1, 1, tzinfo=UTC)
FINALIZER = "networking.k8s.io/service-cidr-finalizer"


def cidr(name: str, network: str, *, gone_for: float | None = None) -> ServiceCIDR:
    metadata: dict[str, Any] = {"name": name, "finalizers": [FINALIZER]}
    if gone_for is not None:
        metadata["deletionTimestamp"] = format_time(NOW - timedelta(seconds=gone_for))
    return from_tree(ServiceCIDR, {"metadata": metadata, "spec": {"cidrs": [network]}})


def service(address: str) -> Service:
    return from_tree(Service, {"metadata": {"name": "s"}, "spec": {"clusterIP": address, "clusterIPs": [address]}})


def context(*objects: Any) -> tuple[Context, list[Any]]:
    written: list[Any] = []

    async def listed(kind: type) -> list[Any]:
        return [item for item in objects if isinstance(item, kind)]

    async def patch(found: ServiceCIDR, *, optimistic_lock: bool) -> None:
        written.append(found.metadata.finalizers)

    return cast("Context", SimpleNamespace(client=SimpleNamespace(list=listed), patch=patch)), written


@pytest.mark.parametrize(
    ("gone_for", "others", "result", "writes"),
    [
        (60.0, [], None, [[]]),
        (4.0, [], Result(requeue_after=6.0), []),
        (60.0, [service("10.1.0.5")], None, []),
        (60.0, [service("10.2.0.5"), service("None")], None, [[]]),
        (60.0, [service("10.1.0.5"), cidr("wide", "10.1.0.0/16")], None, [[]]),
        (60.0, [service("10.1.0.5"), cidr("terminating", "10.1.0.0/16", gone_for=1)], None, []),
    ],
)
async def test_an_unused_range_is_released_after_its_grace_period(
    gone_for: float, others: list[Any], result: Result | None, writes: list[Any]
) -> None:
    found = cidr("mine", "10.1.0.0/24", gone_for=gone_for)
    ctx, written = context(found, *others)
    clock = cast("Any", SimpleNamespace(now=lambda: NOW))

    assert await ServiceCIDRController(clock=clock).reconcile(found, ctx) == result
    assert written == writes
