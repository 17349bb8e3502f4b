"""Whether a new CRD can replace an old one: every change that would break stored objects or clients.

The old CRD is a manifest or the one installed in a cluster; its status, if it has one, says in which versions objects
are still stored. `crds.schema_changes` compares the schemas of each version. No cluster is asked here:
`crds.stored_objects` checks the objects that exist in one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from kubewright._base import yaml
from kubewright.errors import ConfigError
from kubewright.generate.crds.schema_changes import Affects, BreakingChange, breaking_schema_changes

__all__ = ("breaking_changes", "crds_in")

Tree = Mapping[str, Any]
_NAMES: Final[tuple[tuple[str, Affects], ...]] = (
    ("kind", "stored objects"),
    ("plural", "stored objects"),
    ("listKind", "clients"),
    ("singular", "clients"),
)


def crds_in(path: Path) -> dict[str, Tree]:
    """The CRDs in a file or folder, by name; other manifests are skipped."""
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.suffix in (".yaml", ".yml"))
    found: dict[str, Tree] = {}
    for file in files:
        try:
            documents = yaml.load_all(file.read_text())
        except (OSError, ValueError) as exc:
            raise ConfigError(f"{file} cannot be read: {exc}") from exc
        for tree in documents:
            if isinstance(tree, dict) and tree.get("kind") == "CustomResourceDefinition":
                found[str((tree.get("metadata") or {}).get("name"))] = tree
    if not found:
        raise ConfigError(f"{path}: there is no CustomResourceDefinition; pass the file or folder with the old ones")
    return found


def breaking_changes(old: Tree, new: Tree) -> list[BreakingChange]:
    """Every breaking change from the old CRD to the new one, in the order of their paths."""
    before, after = old["spec"], new["spec"]
    found = [
        *_identity(before, after),
        *_versions(old, before, after),
        *(finding for pair in _shared(before, after) for finding in _version(*pair)),
        *_storage(before, after),
    ]
    return sorted(found, key=lambda finding: (finding.path, finding.change))


def _identity(old: Tree, new: Tree) -> Iterator[BreakingChange]:
    for name in ("group", "scope"):
        if old.get(name) != new.get(name):
            yield BreakingChange(f"spec.{name}", f"{name} changed", f"{old.get(name)} became {new.get(name)}")
    for name, affects in _NAMES:
        before, after = old["names"].get(name), new["names"].get(name)
        if before and before != after:
            yield BreakingChange(f"spec.names.{name}", f"{name} changed", f"{before} became {after}", affects)
    for name in ("shortNames", "categories"):
        gone = set(old["names"].get(name) or ()) - set(new["names"].get(name) or ())
        for word in sorted(gone):
            yield BreakingChange(f"spec.names.{name}", f"{name} entry removed", f"{word} is no longer known", "clients")
    if _strategy(old) == "Webhook" and _strategy(new) == "None" and len(new["versions"]) > 1:
        yield BreakingChange(
            "spec.conversion", "conversion removed", "objects of other versions are no longer converted"
        )


def _strategy(spec: Tree) -> str:
    return str((spec.get("conversion") or {}).get("strategy") or "None")


def _versions(crd: Tree, old: Tree, new: Tree) -> Iterator[BreakingChange]:
    stored = (crd.get("status") or {}).get("storedVersions") or [
        version["name"] for version in old["versions"] if version.get("storage")
    ]
    left = {version["name"]: version for version in new["versions"]}
    for version in old["versions"]:
        name = version["name"]
        path = f"spec.versions[{name}]"
        if name not in left:
            if name in stored:
                yield BreakingChange(
                    path, "stored version removed", "objects are still stored in it; migrate them and storedVersions"
                )
            if version.get("served"):
                yield BreakingChange(
                    path, "version removed", "clients still ask for it; serve it a while longer", "clients"
                )
        elif version.get("served") and not left[name].get("served"):
            yield BreakingChange(path, "version no longer served", "clients still ask for it", "clients")


def _shared(old: Tree, new: Tree) -> Iterator[tuple[Tree, Tree]]:
    left = {version["name"]: version for version in new["versions"]}
    for version in old["versions"]:
        if version["name"] in left:
            yield version, left[version["name"]]


def _version(old: Tree, new: Tree) -> Iterator[BreakingChange]:
    path = f"spec.versions[{old['name']}]"
    for finding in breaking_schema_changes(_schema(old), _schema(new)):
        yield BreakingChange(f"{old['name']} {finding.path}", finding.change, finding.detail, finding.affects)
    yield from _subresources(old.get("subresources") or {}, new.get("subresources") or {}, path)
    gone = _paths(old.get("selectableFields")) - _paths(new.get("selectableFields"))
    for field in sorted(gone):
        yield BreakingChange(f"{path}.selectableFields", "selectable field removed", field, "clients")
    columns = {column["name"] for column in old.get("additionalPrinterColumns") or ()}
    columns -= {column["name"] for column in new.get("additionalPrinterColumns") or ()}
    for name in sorted(columns):
        yield BreakingChange(f"{path}.additionalPrinterColumns", "column removed", name, "clients")


def _schema(version: Tree) -> Tree:
    schema: Tree = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    return schema


def _paths(fields: Sequence[Tree] | None) -> set[str]:
    return {field["jsonPath"] for field in fields or ()}


def _subresources(old: Tree, new: Tree, path: str) -> Iterator[BreakingChange]:
    base = f"{path}.subresources"
    if "status" in old and "status" not in new:
        yield BreakingChange(f"{base}.status", "status subresource removed", "writes to /status fail", "clients")
    if "status" in new and "status" not in old:
        yield BreakingChange(
            f"{base}.status", "status subresource added", "writes to the object leave its status alone", "clients"
        )
    if "scale" in old and "scale" not in new:
        yield BreakingChange(f"{base}.scale", "scale subresource removed", "autoscalers fail", "clients")
    elif "scale" in old:
        for name, before in old["scale"].items():
            if new["scale"].get(name) != before:
                detail = f"{before} became {new['scale'].get(name)}"
                yield BreakingChange(f"{base}.scale.{name}", "scale path changed", detail, "clients")


def _storage(old: Tree, new: Tree) -> Iterator[BreakingChange]:
    """Another storage version without a conversion webhook: every value of the old schema must be valid for the new
    one.
    """
    before = next((version for version in old["versions"] if version.get("storage")), None)
    after = next((version for version in new["versions"] if version.get("storage")), None)
    if before is None or after is None or before["name"] == after["name"] or _strategy(new) != "None":
        return
    for finding in breaking_schema_changes(_schema(before), _schema(after)):
        if finding.affects == "stored objects":
            yield BreakingChange(
                f"{before['name']} to {after['name']} {finding.path}",
                finding.change,
                f"{finding.detail}; declare a converter with @convert",
            )
