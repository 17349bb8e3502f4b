"""The OpenAPI documents of a running cluster.

By default only group-versions without a class in Kubewright are fetched: a cluster with a hundred CRDs has some twenty
documents besides its own sixty.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from kubewright.api.codec import decode_tree
from kubewright.client.client import Client
from kubewright.errors import ConfigError, NotFound
from kubewright.generate.models.openapi import Documents
from kubewright.generate.models.sources import from_responses
from kubewright.k8s import documents as packaged

__all__ = ("cluster_documents",)

_AGGREGATED: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"


async def cluster_documents(client: Client, *, builtin: bool = False) -> Documents:
    """The documents of the cluster's kinds; with `builtin=True` those of Kubernetes' own too."""
    try:
        index = await _get(client, "/openapi/v3")
    except NotFound as exc:
        raise ConfigError("the server has no /openapi/v3; it needs to be Kubernetes 1.24 or newer") from exc
    answers = [(path, await _get(client, path)) for path in ("/version", "/api", "/apis")]
    for name, entry in sorted(_paths(index).items()):
        group_version = name.removeprefix("apis/").removeprefix("api/")
        # `apis` and `apis/apps` describe no kinds.
        if name.count("/") < (2 if name.startswith("apis") else 1):
            continue
        if builtin or group_version not in packaged.group_versions():
            with suppress(NotFound):  # its last CRD was deleted since the index was read
                answers.append((name, await _get(client, entry)))
    found = from_responses(iter(answers))
    if not found.documents:
        raise ConfigError("the cluster serves only kinds Kubewright has classes for; install the CRDs first")
    return found


def _paths(index: Mapping[str, Any]) -> dict[str, str]:
    """Each document's name and address."""
    paths = index.get("paths")
    addresses = {
        name: entry.get("serverRelativeURL") if isinstance(entry, Mapping) else None
        for name, entry in (paths.items() if isinstance(paths, Mapping) else ())
    }
    if not all(isinstance(address, str) for address in addresses.values()):
        raise ConfigError("the server's /openapi/v3 has a path without a serverRelativeURL; ask who runs the server")
    return {name: str(address) for name, address in addresses.items()}


async def _get(client: Client, address: str) -> Mapping[str, Any]:
    parts = urlsplit(address)
    # The index of documents is JSON, and servers call it text/plain.
    accept = _AGGREGATED if parts.path in ("/api", "/apis") else "application/json, */*"
    response = await client.request("GET", parts.path, query=tuple(parse_qsl(parts.query)), accept=accept)
    if not response.body:  # a server whose CRDs are being deleted may answer so
        raise NotFound(f"the server no longer has {parts.path}", code=404, reason="NotFound")
    tree = decode_tree(response.body)
    if not isinstance(tree, dict):
        raise ConfigError(f"the server's response to {parts.path} is no object; check the address in the kubeconfig")
    return tree
