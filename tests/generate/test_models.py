"""Classes generated from CRDs in the manner of cert-manager and the Prometheus operator, used on a server.

Covers: kubewright.generate.models
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import uuid4

import pytest

from kubewright import Client
from kubewright._base import yaml
from kubewright.api.codec import from_tree, to_tree
from kubewright.cluster.install import install_crds
from kubewright.generate.models.modules import generate_models
from kubewright.generate.models.sources import read_crds
from kubewright.generate.output import write_files

MANIFESTS = Path(__file__).parents[1] / "unit" / "generate" / "models" / "manifests"

ISSUER: dict[str, Any] = {
    "acme": {
        "server": "https://acme.example.io",
        "solvers": [
            {"http01": {"ingress": {"servicePort": 8089}}, "selector": {"matchLabels": {"a": "b"}}},
            {"http01": {"gateway": {"anything": [1, {"deep": None}]}}},
            {"dns01": {"webhook": {"solverName": "own", "config": {"zones": ["a", "b"], "ttl": 60}}}},
        ],
    }
}
COLLECTOR: dict[str, Any] = {
    "replicas": 2,
    "port": "metrics",
    "limits": {"cpu": "500m", "memory": "128Mi"},
    "podMonitorSelector": {"matchExpressions": [{"key": "tier", "operator": "In", "values": ["web"]}]},
    "routes": [{"free": True}, "text", 7],
    "extra": {"kept": {"as": "it is"}},
    "template": {"apiVersion": "v1", "kind": "Pod", "spec": {"hostNetwork": True}},
    "source": {"git": {"url": "https://git.example.io"}},
}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of the generated package."""
    folder, package = tmp_path_factory.mktemp("models"), f"models_{uuid4().hex[:6]}"
    write_files(folder / package, generate_models(read_crds([MANIFESTS]), package=package))
    sys.path.insert(0, str(folder))
    yield package
    sys.path.remove(str(folder))
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        del sys.modules[name]


@pytest.fixture(scope="module")
async def installed(client: Client) -> None:
    """The CRDs the classes were made from."""
    trees = [tree for file in sorted(MANIFESTS.iterdir()) for tree in yaml.load_all(file.read_text())]
    await install_crds(client, *trees)


def kind(models: str, module: str, name: str) -> Any:
    found: ModuleType = importlib.import_module(f"{models}.{module}")
    return getattr(found, name)


@pytest.mark.usefixtures("installed")
async def test_unions_within_unions_come_back_as_they_were_sent(client: Client, models: str) -> None:
    issuer = kind(models, "trust.v1", "Issuer")
    name = f"issuer-{uuid4().hex[:6]}"
    made = from_tree(issuer, {"metadata": {"name": name}, "spec": ISSUER})

    await client.create(made)
    found = await client.get(issuer, name)
    await client.delete(issuer, name)

    assert to_tree(found)["spec"] == ISSUER
    assert found.spec.ca is None
    assert found.spec.acme.solvers[0].http01.ingress.service_port == 8089
    assert found.spec.acme.solvers[2].dns01.webhook.config == {"zones": ["a", "b"], "ttl": 60}


@pytest.mark.usefixtures("installed")
async def test_free_forms_quantities_and_ports_come_back_as_they_were_sent(
    client: Client, models: str, namespace: str
) -> None:
    collector = kind(models, "monitoring.v1", "Collector")
    made = from_tree(collector, {"metadata": {"name": "main", "namespace": namespace}, "spec": COLLECTOR})

    await client.create(made)
    found = await client.get(collector, "main", namespace=namespace)
    found.spec.replicas = 3
    changed = await client.patch(found)

    assert to_tree(found)["spec"] == {**COLLECTOR, "replicas": 3}
    assert to_tree(changed)["spec"] == {**COLLECTOR, "replicas": 3}
    assert found.spec.port == "metrics"
