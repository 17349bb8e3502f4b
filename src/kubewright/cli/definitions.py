"""The CRDs of an operator as `install` applies them, and what generated files have to say about it.

Those of a project are what `config/crd` builds, with the user's patches; those of a single file or a package follow
from the classes. `install` applies them, `doctor` compares them with the cluster's, and neither `install` nor `deploy`
applies generated files that are not what the code says.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kubewright.cli.overlays import LIST, Tree, build_overlay
from kubewright.cli.reports import stale_sentence
from kubewright.errors import ConfigError

if TYPE_CHECKING:
    from kubewright.generate.project import Part
    from kubewright.manager.operator import Operator

__all__ = ("CRD", "check_generated", "definitions_of")

CRD: Final = "CustomResourceDefinition"


def definitions_of(operator: Operator, folder: Path | None) -> list[Tree]:
    """The objects that `install` applies, CRDs first; `folder` is that of the project, None if it is none."""
    from kubewright.generate.project import operator_crds

    if folder is None or not (folder / "config/crd" / LIST).is_file():
        return list(operator_crds(operator).values())
    trees = [_with_service(tree, operator) for tree in build_overlay(folder / "config/crd")]
    return sorted(trees, key=lambda tree: tree["kind"] != CRD)


def check_generated(operator: Operator, folder: Path, *parts: Part) -> None:
    """Refuse to apply generated files of a project that are stale."""
    from kubewright.generate.project import PARTS, stale_files

    if stale := stale_files(operator, folder / "config", parts=parts or PARTS):
        raise ConfigError(f"{stale_sentence(stale)}, then try again; nothing was applied")


def _with_service(tree: Tree, operator: Operator) -> Tree:
    """A CRD that names the operator's Service as config/default would: with the prefix and in the namespace."""
    from kubewright.generate.webhooks import SERVICE

    conversion: Any = tree.get("spec", {}).get("conversion") if tree["kind"] == CRD else None
    service = ((conversion or {}).get("webhook") or {}).get("clientConfig", {}).get("service")
    if not service or (service.get("name"), service.get("namespace")) != (SERVICE.name, SERVICE.namespace):
        return tree
    service |= {"name": f"{operator.name}-{SERVICE.name}", "namespace": operator.namespace}
    return tree
