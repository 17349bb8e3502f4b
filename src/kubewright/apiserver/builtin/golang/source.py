"""Reads the Go type declarations of Kubernetes into the table of `types`; run by hand for a new version.

The Go types say which fields are pointers, which have omitempty, and what a type is called in an error; OpenAPI does
not. This reads declarations only (`type X struct { ... }`); it is no Go parser. Nothing imports it:

    python -m kubewright.apiserver.builtin.golang.source <module cache>/k8s.io 0.35.4 1.35.4
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from pathlib import Path
from typing import Final, TypeAlias

__all__ = ("main", "read_package")

Package: TypeAlias = dict[str, dict[str, object]]

_IMPORT: Final = re.compile(r'^\s*(?:import\s+)?(?:(\w+)\s+)?"([^"]+)"', re.MULTILINE)
_STRUCT: Final = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_NAMED: Final = re.compile(r"^type (\w+) (?!struct|interface|func)(\S+)", re.MULTILINE)
_FIELD: Final = re.compile(r"^\s*(?:(\w+)\s+)?([\w.*\[\]]+(?:\[[\w.]+\][\w.*\[\]]+)?)\s*(?:`([^`]*)`)?\s*$")
_TAG: Final = re.compile(r'json:"([^"]*)"')
_BASIC: Final = {
    "string",
    "bool",
    "int",
    "int32",
    "int64",
    "uint8",
    "uint32",
    "uint64",
    "float32",
    "float64",
    "byte",
    "any",
}
_GROUPS: Final = [
    "admissionregistration",
    "apiserverinternal",
    "apps",
    "authentication",
    "authorization",
    "autoscaling",
    "batch",
    "certificates",
    "coordination",
    "core",
    "discovery",
    "events",
    "flowcontrol",
    "networking",
    "node",
    "policy",
    "rbac",
    "resource",
    "scheduling",
    "storage",
    "storagemigration",
]
_INTERNAL: Final = (
    "core",
    "apps",
    "batch",
    "policy",
    "rbac",
    "networking",
    "resource",
    "scheduling",
    "storage",
    "autoscaling",
    "flowcontrol",
)


def read_package(folder: Path, name: str) -> Package:
    """The structs of a package as `[json name, Go name, type, options]`, and its other named types."""
    structs: dict[str, object] = {}
    named: dict[str, object] = {}
    for file in sorted(folder.glob("*.go")):
        if file.name.startswith(("zz_", "generated")) or file.name.endswith("_test.go"):
            continue
        text = re.sub(r"//[^\n]*|/\*.*?\*/", "", file.read_text(), flags=re.DOTALL)
        aliases = {alias or path.rpartition("/")[2]: _short(path) for alias, path in _IMPORT.findall(text)}
        for struct, body in _STRUCT.findall(text):
            structs[struct] = [row for line in body.splitlines() if (row := _field(line, aliases, name))]
        for word, target in _NAMED.findall(text):
            named[word] = _typed(target, aliases, name)
    return {"structs": structs, "named": named}


def _field(line: str, aliases: dict[str, str], package: str) -> list[str] | None:
    match = _FIELD.match(line)
    if match is None or not line.strip():
        return None
    word, kind, tag = match.groups()
    found = _TAG.search(tag or "")
    label, _, options = (found[1] if found else "").partition(",")
    if label == "-":
        return None
    embedded = word is None
    word = word or kind.rpartition(".")[2].lstrip("*")
    if embedded and not label:
        options = "inline"
    return [label, word, _typed(kind, aliases, package), options]


def _typed(kind: str, aliases: dict[str, str], package: str) -> str:
    def whole(match: re.Match[str]) -> str:
        alias, dot, word = match[0].rpartition(".")
        if dot:
            return f"{aliases.get(alias, alias)}.{word}"
        return word if word in _BASIC or word == "map" else f"{package}.{word}"

    return re.sub(r"[\w.]+", whole, kind)


def _short(path: str) -> str:
    """The short name of a package: core/v1 for k8s.io/api/core/v1; of apimachinery, the name of the package."""
    for prefix in ("k8s.io/api/", "k8s.io/apimachinery/pkg/apis/", "k8s.io/kubernetes/pkg/apis/"):
        if path.startswith(prefix):
            return path.removeprefix(prefix)
    return path.rpartition("/")[2]


def main(arguments: list[str]) -> None:
    """Write the table next to this module."""
    root, libraries, release = Path(arguments[0]), arguments[1], arguments[2]
    packages: dict[str, Package] = {}
    for group in _GROUPS:
        for folder in sorted((root / f"api@v{libraries}" / group).glob("v*")):
            packages[f"{group}/{folder.name}"] = read_package(folder, f"{group}/{folder.name}")
    packages["meta/v1"] = read_package(root / f"apimachinery@v{libraries}/pkg/apis/meta/v1", "meta/v1")
    registration = "kube-aggregator@v{}/pkg/apis/apiregistration/v1"
    packages["apiregistration/v1"] = read_package(root / registration.format(libraries), "apiregistration/v1")
    definitions = "apiextensions-apiserver@v{}/pkg/apis/apiextensions/v1"
    packages["apiextensions/v1"] = read_package(root / definitions.format(libraries), "apiextensions/v1")
    for group in _INTERNAL:
        packages[group] = read_package(root / f"kubernetes@v{release}/pkg/apis" / group, group)
    text = json.dumps(packages, separators=(",", ":"), sort_keys=True).encode()
    (Path(__file__).parent / "go_types.json.gz").write_bytes(gzip.compress(text, 9, mtime=0))


if __name__ == "__main__":
    main(sys.argv[1:])
