"""Loads OpenAPI documents: from a folder, a file, CRD manifests, or Kubewright's own package data.

The only module of the generator that reads files. Files are recognised by their content, not by their names: an OpenAPI
document, discovery, or the response of `/version`, each plain or gzip. `models.cluster_documents` fetches those of a
cluster.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from kubewright._base import yaml
from kubewright.api.codec import decode_tree
from kubewright.errors import ConfigError, DecodeError
from kubewright.generate.models.crd_documents import crd_documents
from kubewright.generate.models.openapi import Documents
from kubewright.k8s import SERVER_VERSION
from kubewright.k8s import documents as packaged

__all__ = ("builtin_documents", "from_responses", "read_crds", "read_openapi")

_PATH: Final = re.compile(r"/api/(?P<core>v[^/]+)|/apis/(?P<group>[^/{]+)/(?P<version>v[^/]+)")


def read_openapi(path: Path) -> Documents:
    """The documents in a file, or in a folder and all folders below it."""
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if _is_json(file))
    found = from_responses((str(file), _tree(file)) for file in files)
    if not found.documents:
        raise ConfigError(
            f"{path}: no OpenAPI v3 document of a group-version is there; save /openapi/v3/apis/... in it"
        )
    return found


def from_responses(responses: Iterator[tuple[str, Any]]) -> Documents:
    """Sort the responses of a server: documents by group-version, discovery, its version."""
    documents: dict[str, Mapping[str, Any]] = {}
    discovery: list[Mapping[str, Any]] = []
    version = ""
    for where, tree in responses:
        if not isinstance(tree, dict):
            raise ConfigError(f"{where}: an OpenAPI document is expected and a {type(tree).__name__} was found")
        if "openapi" in tree:
            group_version = _group_version(tree)
            if group_version:
                documents[group_version] = tree
        elif tree.get("kind") == "APIGroupDiscoveryList":
            items = tree.get("items")
            if not isinstance(items, list) or not all(isinstance(group, dict) for group in items):
                raise ConfigError(f"{where}: items is no list of groups; save the response of /apis again")
            discovery += items
        elif "gitVersion" in tree:
            version = str(tree["gitVersion"])
        elif "swagger" in tree:
            raise ConfigError(f"{where}: this is OpenAPI v2; save the documents under /openapi/v3 instead")
    # The core group is a list of its own and comes first; the server's order of the others is its priority.
    discovery.sort(key=lambda group: bool(_group_name(group)))
    return Documents(documents=dict(sorted(documents.items())), discovery=tuple(discovery), version=version)


def read_crds(paths: Sequence[Path]) -> Documents:
    """CustomResourceDefinitions from YAML or JSON files, each with one or many."""
    return crd_documents(_manifests(paths))


def builtin_documents() -> Documents:
    """The documents of Kubewright's own kinds."""
    return Documents(
        documents={name: packaged.openapi_document(name) for name in sorted(packaged.group_versions())},
        discovery=packaged.discovery(),
        version=SERVER_VERSION,
    )


def _manifests(paths: Sequence[Path]) -> Iterator[tuple[str, Any]]:
    for path in paths:
        files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if _is_manifest(file))
        if not files:
            raise ConfigError(f"{path}: there is no such file and no folder with manifests; check the path")
        for file in files:
            try:
                trees = yaml.load_all(_bytes(file))
            except ValueError as exc:
                raise ConfigError(f"{file}: {exc}") from exc
            for number, tree in enumerate(trees, 1):
                yield (f"{file}, document {number}" if len(trees) > 1 else str(file)), tree


def _is_json(file: Path) -> bool:
    return file.is_file() and file.name.endswith((".json", ".json.gz"))


def _is_manifest(file: Path) -> bool:
    return file.is_file() and file.suffix in (".yaml", ".yml", ".json")


def _bytes(file: Path) -> bytes:
    try:
        content = file.read_bytes()
        return gzip.decompress(content) if file.suffix == ".gz" else content
    except (OSError, EOFError) as exc:
        raise ConfigError(f"{file} cannot be read: {exc}") from exc


def _tree(file: Path) -> Any:
    try:
        return decode_tree(_bytes(file))
    except DecodeError as exc:
        raise ConfigError(f"{file}: {exc}") from exc


def _group_name(group: Mapping[str, Any]) -> str:
    metadata = group.get("metadata")
    return str(metadata.get("name") or "") if isinstance(metadata, Mapping) else ""


def _group_version(document: Mapping[str, Any]) -> str:
    """From the first path that has one; empty for `/apis` and the like, which describe no kinds."""
    paths = document.get("paths", {})
    for path in paths if isinstance(paths, Mapping) else ():
        match = _PATH.match(path)
        if match:
            return match["core"] or f"{match['group']}/{match['version']}"
    return ""
