"""Field tables for protobuf bodies, from the sources of Kubernetes' Go modules.

    files = protobuf_files([Path("k8s.io/api@v0.35.4"), ...])

returns names below `k8s/protobuf/` and their bytes, one file per group-version. A `generated.proto` has the protobuf
encoding; the Go structs next to it have the JSON encoding: the name, whether a zero is omitted, whether a struct is
inlined. Neither has both, so the two are joined by message and field number. This parses only the small part of the two
languages that those files use. `kubewright.apiserver.wire.protobuf` reads the tables.

To move to another Kubernetes version, with the modules k8s.io/api, apimachinery, apiextensions-apiserver and
kube-aggregator of that version downloaded:

    python -m kubewright.generate.models.protobuf src/kubewright/k8s FOLDER...
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from kubewright.errors import ConfigError, KubewrightError
from kubewright.generate.output import write_files
from kubewright.k8s.index import MODULES

__all__ = ("protobuf_files",)

_COMMENT: Final = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_PACKAGE: Final = re.compile(r"^package\s+([\w.]+);", re.MULTILINE)
_MESSAGE: Final = re.compile(r"^message\s+(\w+)\s*\{(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD: Final = re.compile(
    r"(?:(?P<label>optional|repeated|required)\s+(?P<type>[\w.]+)|map<\s*string\s*,\s*(?P<value>[\w.]+)\s*>)"
    r"\s+(?P<name>\w+)\s*=\s*(?P<number>[0-9]+)\s*;"
)
_STRUCT: Final = re.compile(r"^type\s+(\w+)\s+struct\s*\{(?:\}|(.*?)^\})", re.MULTILINE | re.DOTALL)
_LIST_TYPE: Final = re.compile(r"^type\s+(\w+)\s+\[\]", re.MULTILINE)
_ALIAS: Final = re.compile(r"^type\s+(\w+)\s+(?:=\s+)?(\w+)\.(\w+)$", re.MULTILINE)
_IMPORT: Final = re.compile(r'^\s+(\w+)\s+"([\w./-]+)"$', re.MULTILINE)
_GO_FIELD: Final = re.compile(r"^\s+(?P<words>[^`/\n]+?)\s*`(?P<tags>[^`\n]*)`", re.MULTILINE)
_TAG: Final = re.compile(r'(\w+):"([^"]*)"')

_META: Final = "k8s.io.apimachinery.pkg.apis.meta.v1."
_SCHEMAS: Final = "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1."
_SPECIAL: Final = {
    "k8s.io.apimachinery.pkg.api.resource.Quantity": "quantity",
    "k8s.io.apimachinery.pkg.util.intstr.IntOrString": "int_or_string",
    "k8s.io.apimachinery.pkg.runtime.RawExtension": "raw",
    f"{_META}Duration": "duration",
    f"{_META}FieldsV1": "raw",
    f"{_META}MicroTime": "micro_time",
    f"{_META}Time": "time",
    f"{_SCHEMAS}JSON": "raw",
    f"{_SCHEMAS}JSONSchemaPropsOrArray": "schema_or_array",
    f"{_SCHEMAS}JSONSchemaPropsOrBool": "schema_or_bool",
    f"{_SCHEMAS}JSONSchemaPropsOrStringArray": "schema_or_strings",
}
"""Messages whose JSON is not that of their fields; `kubewright.apiserver.wire.protobuf` knows them by these names."""

_MACHINERY: Final = ("meta.v1", "apidiscovery.v2", "apidiscovery.v2beta1")
"""Needed besides the group-versions with kinds."""


class _Field(NamedTuple):
    number: int
    name: str
    type: str
    cardinality: str


class _GoField(NamedTuple):
    go_name: str
    json_name: str
    pointer: bool
    options: frozenset[str]


class _Package(NamedTuple):
    name: str
    messages: Mapping[str, tuple[_Field, ...]]
    structs: Mapping[str, Mapping[int, _GoField]]
    list_types: frozenset[str]
    borrowed: Mapping[str, tuple[str, str]]
    """Types that are another package's struct by another name: that package and its name there."""


def protobuf_files(folders: Iterable[Path]) -> dict[str, bytes]:
    """File names below `protobuf/` and their bytes; the same sources give the same bytes."""
    wanted = {module for module, _ in MODULES.values()} | set(_MACHINERY)
    packages = {package.name: package for folder in folders for package in _packages(folder)}
    files = {}
    for name, package in sorted(packages.items()):
        module = _module(name)
        if module in wanted:
            tree = _file(package, packages)
            text = json.dumps(tree, separators=(",", ":"), ensure_ascii=False)
            files[f"{module}.json.gz"] = gzip.compress(text.encode(), compresslevel=9, mtime=0)
    missing = sorted(module for module in wanted if f"{module}.json.gz" not in files)
    if missing:
        raise ConfigError(f"the folders have no generated.proto for {', '.join(missing)}; name all four Go modules")
    return files


def _packages(folder: Path) -> Iterator[_Package]:
    for file in sorted(folder.rglob("generated.proto")):
        text = _COMMENT.sub("", file.read_text())
        name = _PACKAGE.search(text)
        if name is None:
            raise ConfigError(f"{file} names no package; is it a file of a Kubernetes module?")
        sources = [
            path.read_text()
            for path in sorted(file.parent.glob("*.go"))
            if not path.name.endswith(("_test.go", ".pb.go")) and not path.name.startswith("zz_generated")
        ]
        messages = {found[1]: tuple(_fields(found[2], name[1])) for found in _MESSAGE.finditer(text)}
        structs = {found[1]: _go_fields(found[2] or "") for source in sources for found in _STRUCT.finditer(source)}
        lists = frozenset(found[1] for source in sources for found in _LIST_TYPE.finditer(source))
        borrowed = {name: place for source in sources for name, place in _aliases(source)}
        yield _Package(name[1], messages, structs, lists, borrowed)


def _aliases(source: str) -> Iterator[tuple[str, tuple[str, str]]]:
    imports = dict(_IMPORT.findall(source))
    for name, package, original in _ALIAS.findall(source):
        path = imports.get(package, "")
        yield name, (path.replace("/", ".").replace("-", "_"), original)


def _fields(body: str, package: str) -> Iterator[_Field]:
    for found in _FIELD.finditer(body):
        kind = found["type"] or found["value"]
        if kind.startswith("."):
            kind = kind[1:]
        elif kind[0].isupper():
            kind = f"{package}.{kind}"
        cardinality = "map" if found["value"] else "list" if found["label"] == "repeated" else "one"
        yield _Field(int(found["number"]), found["name"], kind, cardinality)


def _go_fields(body: str) -> dict[int, _GoField]:
    fields = {}
    for found in _GO_FIELD.finditer(body):
        tags = dict(_TAG.findall(found["tags"]))
        wire = tags.get("protobuf", "-").split(",")
        if len(wire) < 2:
            continue
        words = found["words"].split()
        name, *options = tags.get("json", "").split(",")
        # An embedded struct has no name but that of its type.
        go_name = words[0].rpartition(".")[2].lstrip("*")
        fields[int(wire[1])] = _GoField(go_name, name, words[-1].startswith("*"), frozenset(options))
    return fields


def _module(package: str) -> str:
    return ".".join(package.split(".")[-2:])


def _file(package: _Package, packages: Mapping[str, _Package]) -> dict[str, Any]:
    messages: dict[str, list[list[Any]]] = {}
    for name, fields in package.messages.items():
        if _SPECIAL.get(f"{package.name}.{name}", "schema_").partition("_")[0] != "schema":
            continue
        if name in package.list_types:
            messages[name] = [[field.number, "", field.type, field.cardinality, ""] for field in fields]
            continue
        home, original = package.borrowed.get(name, (package.name, name))
        structs = packages[home].structs.get(original) if home in packages else None
        if structs is None:
            raise ConfigError(f"{package.name}.{name} has no Go struct next to its generated.proto")
        messages[name] = [_row(field, structs[field.number], package, packages) for field in fields]
    return {"package": package.name, "messages": dict(sorted(messages.items()))}


def _row(field: _Field, go: _GoField, package: _Package, packages: Mapping[str, _Package]) -> list[Any]:
    """Number, JSON name, type, cardinality, flags and, if it is not the JSON name capitalised, the name in Go.

    Flags: `l` a list that is a message of its own, `p` a pointer, `o` omitted if empty, `z` omitted if zero, `i`
    inlined into its parent.
    """
    kind, flags = field.type, ""
    if kind in _SPECIAL:
        kind = _SPECIAL[kind]
    elif "." in kind:
        home, _, message = kind.rpartition(".")
        if message in packages[home].list_types:
            flags += "l"
        kind = f"{'' if home == package.name else _module(home)}:{message}"
    flags += "p" if go.pointer else ""
    flags += "o" if "omitempty" in go.options else ""
    flags += "z" if "omitzero" in go.options else ""
    flags += "i" if "inline" in go.options else ""
    if not go.options and not go.json_name:  # one of the messages whose JSON is not that of their fields
        flags += "o"
    name = go.json_name or ("" if "inline" in go.options else field.name)
    row = [field.number, name, kind, field.cardinality, flags]
    capitalised = name[:1].upper() + name[1:]
    return row if capitalised == go.go_name else [*row, go.go_name]


def _main(arguments: list[str]) -> int:
    if len(arguments) < 2:
        print("give the folder to write to, and the folders of the Go modules", file=sys.stderr)
        return 2
    output, *folders = map(Path, arguments)
    try:
        files = {f"protobuf/{name}": content for name, content in protobuf_files(folders).items()}
        changed = write_files(output, files)
    except (OSError, KubewrightError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{output}: {len(files)} files, {len(changed)} of them changed.", file=sys.stderr)
    return 0


if __name__ == "__main__":
    raise SystemExit(_main(sys.argv[1:]))
