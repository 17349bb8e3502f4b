"""The built-in kinds of Kubernetes as classes, one module per group-version.

    from kubewright.k8s.apps.v1 import Deployment
    from kubewright.k8s.core.v1 import Pod, PodSpec

The modules are generated from the OpenAPI documents of a kube-apiserver by `kubewright generate models`.
They are imported when asked for, never by this package: `find` looks a kind up by name in a small index and
imports only the module it is in.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import cast

from kubewright.api.kinds import GroupVersion, GroupVersionKind
from kubewright.api.resource import KubeObject
from kubewright.k8s.index import MODULES, SERVER_VERSION

__all__ = ("SERVER_VERSION", "find", "kinds")


def find(gvk: GroupVersionKind) -> type[KubeObject] | None:
    """The class of a built-in kind, imported now if it was not yet; None for any other kind."""
    module, names = MODULES.get(gvk.api_version, ("", ()))
    if gvk.kind not in names:
        return None
    return cast("type[KubeObject]", getattr(import_module(f"kubewright.k8s.{module}"), gvk.kind))


def kinds() -> Iterator[GroupVersionKind]:
    """Every built-in kind, without importing any."""
    for api_version, (_, names) in MODULES.items():
        version = GroupVersion.parse(api_version)
        for name in names:
            yield version.with_kind(name)
