"""A pod that runs can be given more: within the limits and the quotas of its namespace.

Covers: kubewright.apiserver.verbs, kubewright.apiserver.admission
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.builders.pods import pod_tree
from tests.differential.servers.server_pair import Request, ServerPair, get, post, run_case, strategic

pytestmark = pytest.mark.real

NS = "/api/v1/namespaces/{ns}"
LIMITS = [
    {
        "type": "Container",
        "min": {"cpu": "100m", "memory": "100Mi"},
        "max": {"cpu": "500m", "memory": "500Mi"},
        "default": {"cpu": "300m", "memory": "300Mi"},
        "defaultRequest": {"cpu": "200m", "memory": "200Mi"},
    },
    {"type": "Pod", "max": {"cpu": "700m"}},
]


def amounts(cpu: str, memory: str) -> dict[str, Any]:
    """As much at most as at least."""
    both = {"cpu": cpu, "memory": memory}
    return {"requests": both, "limits": both}


def create_pod(cpu: str, memory: str) -> Request:
    """A pod with one container, which no scheduler puts on a node."""
    container = {"name": "c", "limits": {"cpu": cpu, "memory": memory}}
    return post(f"{NS}/pods", pod_tree("one", container=container, schedulerName="nobody"))


def resize(cpu: str, memory: str) -> Request:
    """Give the container another size."""
    containers = [{"name": "c", "resources": amounts(cpu, memory)}]
    return strategic(f"{NS}/pods/one/resize", {"spec": {"containers": containers}})


def uses(cpu: str, memory: str) -> Request:
    """Wait until the quota says that this much is used."""

    def says(tree: Any) -> bool:
        return bool(tree.get("status", {}).get("used") == {"cpu": cpu, "memory": memory})

    return get(f"{NS}/resourcequotas/q", until=says, ignore=("metadata",))


def too_large(words: str) -> Request:
    """Wait until a pod is refused: a server learns of limits and quotas a moment after they are stored."""
    return replace(
        create_pod("900m", "300Mi"), path=f"{NS}/pods?dryRun=All", until=lambda tree: words in tree.get("message", "")
    )


CASES: dict[str, Sequence[Request]] = {
    "the limits of its namespace": [
        post(f"{NS}/limitranges", {"metadata": {"name": "l"}, "spec": {"limits": LIMITS}}),
        too_large("maximum cpu usage per Container is 500m"),
        create_pod("200m", "200Mi"),
        resize("300m", "300Mi"),
        resize("600m", "300Mi"),
        resize("300m", "600Mi"),
        resize("50m", "300Mi"),
        resize("800m", "200Mi"),
        get(f"{NS}/pods/one"),
    ],
    "the quota of its namespace": [
        post(f"{NS}/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {"cpu": "800m", "memory": "800Mi"}}}),
        too_large("exceeded quota"),
        create_pod("300m", "300Mi"),
        uses("300m", "300Mi"),
        resize("900m", "300Mi"),
        resize("300m", "900Mi"),
        resize("900m", "900Mi"),
        resize("400m", "300Mi"),
        uses("400m", "300Mi"),
        resize("801m", "200Mi"),
        get(f"{NS}/pods/one"),
    ],
}


@pytest.mark.parametrize("case", CASES)
async def test_a_pod_grows_within(pair: ServerPair, case: str) -> None:
    await run_case(pair, CASES[case])
