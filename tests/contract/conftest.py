"""Fixtures of the contract tests: how a Kubernetes API server behaves, said once and asked of every control plane."""

from __future__ import annotations

import pytest
from tests.builders.widgets import Widget
from tests.planes import client, kubectl, namespace, plane

from kubewright import Client
from kubewright.cluster.install import install_crds

__all__ = ("client", "kubectl", "namespace", "plane")


@pytest.fixture(scope="module")
async def widget(client: Client) -> type[Widget]:
    """A custom resource whose definition is installed."""
    await install_crds(client, Widget)
    return Widget
