"""Refuses new custom resources while their CustomResourceDefinition is being deleted.

kube-apiserver: `forbidCreateAdmission` in staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/
customresource_handler.go, which wraps the whole chain, so it comes first. The CRD controller adds a definition to
`TerminatingCrds` when it begins to delete its objects.
"""

from __future__ import annotations

from typing import Final, final

from kubewright.apiserver.kinds.admission import Attributes, admission_forbidden

__all__ = ("ForbidCreateInTerminatingCrd", "TerminatingCrds")

_WHY: Final = "create not allowed while custom resource definition is terminating"


@final
class TerminatingCrds:
    """The names of the definitions whose objects are being deleted; the CRD controller writes, admission reads."""

    def __init__(self) -> None:
        self._names: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._names)

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def add(self, name: str) -> None:
        """A definition is being deleted."""
        self._names.add(name)

    def discard(self, name: str) -> None:
        """A definition is gone."""
        self._names.discard(name)


@final
class ForbidCreateInTerminatingCrd:
    """Refuses while others mutate, before any of them."""

    def __init__(self, crds: TerminatingCrds) -> None:
        self._crds = crds

    def handles(self, attributes: Attributes) -> bool:
        if not self._crds or attributes.operation != "CREATE" or not attributes.resource.custom:
            return False
        return f"{attributes.resource.plural}.{attributes.resource.kind.group}" in self._crds

    async def mutate(self, attributes: Attributes) -> None:
        raise admission_forbidden(attributes, _WHY)
