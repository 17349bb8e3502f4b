"""Adds a local cluster to the kubeconfig that kubectl uses, as a context of its own.

`kubewright cluster kubeconfig --merge` and `kubewright dev --merge` call it.
"""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ("merge_context",)


def merge_context(kubeconfig: Path, *, cluster: str) -> tuple[Path, str]:
    """Add the cluster of a kubeconfig as the context `kubewright-<cluster>` and make it the current one.

    Returns the file that was changed, the first that `KUBECONFIG` names or else the user's own, and the context.
    """
    from kubewright._base.yaml import load
    from kubewright.client.config.kubeconfig import merge_into

    listed = [part for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    target = Path(listed[0] if listed else "~/.kube/config").expanduser()
    context = f"kubewright-{cluster}"
    tree = load(kubeconfig.read_text(encoding="utf-8"))
    for entry in (*tree["clusters"], *tree["users"], *tree["contexts"]):
        entry["name"] = context
    tree["contexts"][0]["context"].update(cluster=context, user=context)
    merge_into(target, {**tree, "current-context": context})
    return target, context
