"""Write the kubeconfig of one user of a local control plane.

Everything is inside the file, so it works from any folder. Readable by its owner only: it holds a private
key. `client.config` reads kubeconfigs; this only writes.
"""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path

from kubewright.cluster.certificates import KeyPair

__all__ = ("write_kubeconfig", "write_private")


def write_kubeconfig(path: Path, *, url: str, ca: bytes, user: str, pair: KeyPair, cluster: str = "kubewright") -> None:
    """A kubeconfig with one cluster, one user (client certificate) and one context, which is current."""

    def text(value: str) -> str:
        return json.dumps(value)  # a JSON string is a YAML string, whatever is in it

    def data(value: bytes) -> str:
        return base64.b64encode(value).decode()

    context = cluster if user == "admin" else f"{user}@{cluster}"
    lines = (
        "apiVersion: v1",
        "kind: Config",
        "clusters:",
        f"- name: {text(cluster)}",
        "  cluster:",
        f"    server: {text(url)}",
        f"    certificate-authority-data: {data(ca)}",
        "users:",
        f"- name: {text(user)}",
        "  user:",
        f"    client-certificate-data: {data(pair.certificate)}",
        f"    client-key-data: {data(pair.key)}",
        "contexts:",
        f"- name: {text(context)}",
        "  context:",
        f"    cluster: {text(cluster)}",
        f"    user: {text(user)}",
        f"current-context: {text(context)}",
        "",
    )
    write_private(path, "\n".join(lines).encode())


def write_private(path: Path, content: bytes) -> None:
    """Write a file only its owner can read, whole or not at all; it never exists with wider permissions."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    temporary.replace(path)
