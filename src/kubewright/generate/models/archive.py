"""The archive: OpenAPI documents and discovery, compressed as the package data of `kubewright.k8s`.

`kubewright.k8s.documents` reads the files. The documents of a server repeat each other: a Pod is in six of them. So
each component schema is stored once, in the file of its own group-version, and the others refer to it. The same
documents give the same bytes.
"""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from kubewright.errors import ConfigError
from kubewright.generate.models.openapi import Documents
from kubewright.k8s.documents import module_of

__all__ = ("archive_files",)


def archive_files(documents: Documents, *, modules: Mapping[str, str]) -> dict[str, bytes]:
    """File names below `openapi/` and their bytes; `modules` is the module of each group-version."""
    schemas: dict[str, dict[str, Any]] = defaultdict(dict)
    for document in documents.documents.values():
        for name, schema in document["components"]["schemas"].items():
            schemas[module_of(name)][name] = schema
    files: dict[str, Any] = {"discovery": {"items": list(documents.discovery)}}
    for group_version, document in documents.documents.items():
        module = modules.get(group_version)
        if module is None:
            raise ConfigError(f"{group_version} has no kind of its own; leave its document out")
        files[module] = _document_file(document, module, schemas.pop(module, {}))
    # The rest belongs to no served group-version: apimachinery types that every kind uses.
    for module, rest in schemas.items():
        files[module] = {"schemas": dict(sorted(rest.items()))}
    return {f"{name}.json.gz": _compress(tree) for name, tree in files.items()}


def _document_file(document: Mapping[str, Any], module: str, own: Mapping[str, Any]) -> dict[str, Any]:
    borrowed: dict[str, list[str]] = defaultdict(list)
    for name in sorted(document["components"]["schemas"]):
        if name not in own:
            borrowed[module_of(name)].append(name)
    components = {name: value for name, value in document["components"].items() if name != "schemas"}
    return {
        "document": {**document, "components": components},
        "schemas": dict(sorted(own.items())),
        "borrowed": dict(sorted(borrowed.items())),
        # Kept here for others: TokenRequest is of authentication/v1, and only the core document uses it.
        "lent": sorted(own.keys() - document["components"]["schemas"].keys()),
    }


def _compress(tree: Any) -> bytes:
    text = json.dumps(tree, separators=(",", ":"), ensure_ascii=False)
    return gzip.compress(text.encode(), compresslevel=9, mtime=0)
