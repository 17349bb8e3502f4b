"""What a folder with a kustomization builds, for `install`, `deploy` and `undeploy`.

`kubectl kustomize` builds it. One that only lists files needs no kubectl: they are read as they are.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

from kubewright._base import yaml
from kubewright.errors import ClusterError, ConfigError

__all__ = ("LIST", "Tree", "build_overlay", "object_of")

Tree = dict[str, Any]
LIST: Final = "kustomization.yaml"
_PLAIN: Final = frozenset(("apiVersion", "kind", "resources"))
"""The keys of a kustomization that only lists files."""


def build_overlay(folder: Path) -> list[Tree]:
    """The objects in the order in which kustomize, or the list of files, has them."""
    files = _plain_files(folder)
    if files is None:
        return _run_kustomize(folder)
    trees: list[Tree] = []
    for file in files:
        try:
            trees += [tree for tree in yaml.load_all(file.read_text(encoding="utf-8")) if tree]
        except (OSError, ValueError) as error:
            raise ConfigError(f"{file} cannot be read: {error}") from None
    return trees


def object_of(tree: Tree) -> Any:
    """An object of a manifest, of whatever kind."""
    from kubewright.api.codec import from_tree
    from kubewright.api.dynamic import Dynamic

    return from_tree(Dynamic(tree["apiVersion"], tree["kind"]), tree)


def _plain_files(folder: Path) -> list[Path] | None:
    """The files that a kustomization lists, if it does nothing else."""
    file = folder / LIST
    try:
        tree = yaml.load(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{file} cannot be read: {error}") from None
    if not isinstance(tree, dict) or not tree.keys() <= _PLAIN or tree.get("kind", "Kustomization") != "Kustomization":
        return None
    files = [folder / str(name) for name in tree.get("resources") or ()]
    return files if all(found.is_file() for found in files) else None


def _run_kustomize(folder: Path) -> list[Tree]:
    command = [_kubectl(), "kustomize", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - kubectl, on our own folder
    if done.returncode:
        raise ConfigError(f"{folder} cannot be built: {done.stderr.strip()}")
    return [tree for tree in yaml.load_all(done.stdout) if tree]


def _kubectl() -> str:
    from kubewright.cluster.binaries.finder import find_installed

    if found := shutil.which("kubectl"):
        return found
    try:
        return str(find_installed().kubectl)
    except ClusterError:
        raise ConfigError("kubectl is needed to build the overlay and is not on the PATH; install it") from None
