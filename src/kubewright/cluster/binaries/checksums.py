"""The checksums that Kubewright knows itself, of what it downloads to make a real control plane.

A server that delivers an altered file can deliver an altered checksum beside it; these came with Kubewright. Data for
`releases` and `gobuild`, which refuse what differs. What is not listed is compared with what its release publishes, or
with Go's checksum database.

To add those of another version: "go mod download -json k8s.io/kubernetes@v1.35.4" prints the Sum of a module, which
Go has compared with its checksum database; the checksum of a file of a release stands beside it on the server, and is
compared with a second source before it is written here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ("GO_MODULES", "RELEASE_FILES")

RELEASE_FILES: Final[Mapping[str, str]] = {}
"""File below the release's address to its SHA-512, for etcd's archives SHA-256."""

GO_MODULES: Final[Mapping[str, str]] = {
    "go.etcd.io/etcd/server/v3@v3.5.35": "h1:FbHzp+5uIf1hu9KDmM4G/i/SjzDpxAABlWF8v8ZMn88=",
    "go.etcd.io/etcd/server/v3@v3.6.16": "h1:sLkpvz3RFtiNd/yPrZBKz5kT+XO1ZJkhmuUJeqc7OmA=",
    "k8s.io/kubernetes@v1.33.13": "h1:bmH31xUdSzeA5vk0wZAK9MZp11mdLuzUSeKk0qN3hPQ=",
    "k8s.io/kubernetes@v1.34.4": "h1:Yy6R4QB8C9kJPp25GFqEvX5XQwY5qzKeqD0Xx6oAcmk=",
    "k8s.io/kubernetes@v1.35.4": "h1:o/8dBC/pHVpYoGV4OAIytAlNPZbdYVTXJHoYvXC4qzM=",
    "k8s.io/kubernetes@v1.36.3": "h1:qDQdoMiluAE2Eab6Fa52YV+WjiGz9mZFFoagEA6cI+o=",
}
"""Module and version to the hash of its content, as in a go.sum. Its own go.sum then has those of what it requires."""
