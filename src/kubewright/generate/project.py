"""The generated files of a project: what belongs under its `config` folder, given its operator.

| part | files |
| --- | --- |
| crds | `crd/bases/<group>_<plural>.yaml`, `crd/kustomization.yaml` |
| rbac | `rbac/*.yaml`, `rbac/other_namespaces/*.yaml` for other namespaces |
| webhooks | `webhook/*.yaml`, `certmanager/*.yaml`; nothing without webhooks |

The same operator gives the same bytes every time. An existing kustomization only gets its missing entries; everything
else is overwritten, so edits belong in overlays. `generate.output` writes and compares the files.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from kubewright._base import yaml
from kubewright.api.codec import encode_tree
from kubewright.errors import ConfigError
from kubewright.generate.crds.manifests import crd_file_name, crd_for
from kubewright.generate.kustomize import kustomization, with_resources
from kubewright.generate.rbac.roles import rbac_files
from kubewright.generate.webhooks import certificate_files, conversion_of, webhook_files
from kubewright.manager.operator import Operator

__all__ = ("PARTS", "Part", "large_crds", "operator_crds", "orphaned_crds", "project_files")

Part = Literal["crds", "rbac", "webhooks"]
PARTS: Final[tuple[Part, ...]] = ("crds", "rbac", "webhooks")
_LIST: Final = "kustomization.yaml"
_ANNOTATIONS_LIMIT: Final = 262_144
"""The server's limit for all annotations of an object; `kubectl apply` stores a copy of the object in one."""


def operator_crds(operator: Operator, *, webhooks: bool = True) -> dict[str, dict[str, Any]]:
    """The CRDs of an operator's kinds, by name.

    With `webhooks=False` nobody converts: so a kind with a conversion is served in its stored version alone, which
    needs none. The others would be refused, or, without the conversion, stored without what they name otherwise.
    """
    conversions = conversion_of(operator) if operator.webhooks else {}
    crds = {}
    for name, classes in operator.by_crd.items():
        conversion = conversions.get(name) if len(classes) > 1 else None
        crd = crd_for(*classes, conversion=conversion, max_description=operator.max_description)
        if conversion is not None and not webhooks:
            for version in crd["spec"]["versions"]:
                version["served"] = version["storage"]
        crds[name] = crd
    return crds


def project_files(operator: Operator, folder: Path, *, parts: Sequence[Part] = PARTS) -> dict[str, bytes]:
    """The content of every generated file, by its path below the `config` folder."""
    found: dict[str, str] = {}
    if "crds" in parts:
        found |= _crds(operator, folder)
    if "rbac" in parts:
        files = rbac_files(operator)
        other_namespaces = [name for name in files if name.startswith("other_namespaces/")]
        found |= _below("rbac", files) | _kustomization_file(folder, "rbac", files.keys() - set(other_namespaces))
        if other_namespaces:
            found |= _kustomization_file(
                folder, "rbac/other_namespaces", [name.removeprefix("other_namespaces/") for name in other_namespaces]
            )
    if "webhooks" in parts and (files := webhook_files(operator)):
        resources = [name for name in files if name != "kustomizeconfig.yaml"]
        found |= _below("webhook", files)
        found |= _kustomization_file(folder, "webhook", resources, configurations=["kustomizeconfig.yaml"])
        found |= _below("certmanager", certificate_files(operator))
    return {path: text.encode() for path, text in sorted(found.items())}


def orphaned_crds(operator: Operator, folder: Path) -> list[Path]:
    """Generated CRDs in the folder that no class makes any more."""
    wanted = {crd_file_name(crd) for crd in operator_crds(operator).values()}
    return sorted(file for file in (folder / "crd" / "bases").glob("*.yaml") if file.name not in wanted)


def large_crds(operator: Operator) -> list[str]:
    """Notes about CRDs that are too large for a client-side `kubectl apply`."""
    sizes = {name: len(encode_tree(crd)) for name, crd in operator_crds(operator).items()}
    return [
        f"{name} has {size // 1000} kB: kubectl apply takes it with --server-side only, as `kubewright install` "
        "and deploy do; max_description = 0 under [tool.kubewright] leaves the descriptions out"
        for name, size in sizes.items()
        if size >= _ANNOTATIONS_LIMIT
    ]


def _crds(operator: Operator, folder: Path) -> dict[str, str]:
    files = {f"bases/{crd_file_name(crd)}": yaml.dump(crd) for crd in operator_crds(operator).values()}
    return _below("crd", files) | _kustomization_file(folder, "crd", files) if files else {}


def _below(folder: str, files: dict[str, str]) -> dict[str, str]:
    return {f"{folder}/{name}": text for name, text in files.items()}


def _kustomization_file(folder: Path, part: str, resources: Iterable[str], **more: Any) -> dict[str, str]:
    file = folder / part / _LIST
    try:
        text = with_resources(file.read_text(), resources, where=str(file))
    except FileNotFoundError:
        text = kustomization(resources, **more)
    except (OSError, UnicodeDecodeError) as exc:
        raise ConfigError(f"{file} cannot be read: {exc}") from exc
    return {f"{part}/{_LIST}": text}
