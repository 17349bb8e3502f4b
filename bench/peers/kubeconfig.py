"""Read the address and the client certificate from a kubeconfig, for operators that have no client library.

Only what a kubeconfig of the benchmark's cluster holds: everything inside the file, one cluster, one user. Used by
the floor and by the kopf operator, whose Python has neither Kubewright nor msgspec.
"""

from __future__ import annotations

import base64
import ssl
import tempfile
from pathlib import Path

import yaml

__all__ = ("read_kubeconfig",)


def read_kubeconfig(path: Path) -> tuple[str, ssl.SSLContext]:
    """The server's URL, and a TLS context that trusts it and shows it the client certificate."""
    tree = yaml.safe_load(path.read_text(encoding="utf-8"))
    cluster, user = tree["clusters"][0]["cluster"], tree["users"][0]["user"]
    context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    # The standard library takes a client certificate from a file only.
    with tempfile.NamedTemporaryFile() as file:
        file.write(base64.b64decode(user["client-certificate-data"]) + base64.b64decode(user["client-key-data"]))
        file.flush()
        context.load_cert_chain(file.name)
    return cluster["server"], context
