"""An update or an apply that changes nothing writes nothing, and which ones change something: alike on both servers.

An operator that writes its objects in every reconcile rests only if the server keeps the version of what is as it was.
What changes nothing is not obvious: defaults, Go's types and allocated values make an object of a manifest.

Covers: kubewright.apiserver.verbs, kubewright.apiserver.builtin
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.builders.services import service_tree
from tests.differential.servers.rewrites import PairOfObjects, field_paths, samples, with_value
from tests.differential.servers.server_pair import ServerPair

pytestmark = [pytest.mark.real, pytest.mark.slow]

Tree = dict[str, Any]

# Nothing counts for a quota on the real servers of these tests, which have no controllers.
SAMPLES = samples(
    service_tree("service-least"),
    service_tree(
        "service-most",
        type="LoadBalancer",
        selector={"app": "web"},
        ports=[{"name": "a", "port": 80, "targetPort": "http", "protocol": "TCP", "appProtocol": "http"}],
        externalTrafficPolicy="Local",
        loadBalancerSourceRanges=["10.0.0.0/8"],
        externalIPs=["1.2.3.4"],
        sessionAffinity="ClientIP",
        publishNotReadyAddresses=True,
        trafficDistribution="PreferClose",
        allocateLoadBalancerNodePorts=True,
        loadBalancerClass="example.com/c",
    ),
    service_tree("service-headless", clusterIP="None"),
    service_tree("service-external", type="ExternalName", externalName="a.b"),
)


KNOWN = {
    "v1 Secret secret-most": ("data.c null",),  # an empty value is not null in Go, though both are stored alike
}


@pytest.mark.parametrize("name", [name for name in SAMPLES if "ResourceQuota" not in name])
async def test_an_update_without_a_field_ends_alike(quiet_pair: ServerPair, name: str) -> None:
    one = PairOfObjects(quiet_pair, SAMPLES[name])
    found = await one.create(SAMPLES[name])
    if SAMPLES[name]["kind"] == "Job":
        await one.replace(one.live, "")  # kube-apiserver writes the first update of a Job whatever it is
    for path in field_paths(one.live[0], set()):
        for word in ("left out", "null", "empty"):
            what = f"{'.'.join(map(str, path))} {word}"
            if what in KNOWN.get(name, ()):
                continue
            try:
                trees = [with_value(tree, path, word) for tree in one.live]
            except (KeyError, TypeError, IndexError):
                found.append(f"{what}: not there")
                continue
            lines, wrote = await one.replace(trees, what)
            found += lines
            if wrote:
                found += (await one.replace(one.live, f"{what}, and back"))[0]

    assert not found, f"{len(found)} differences\n" + "\n".join(found)
