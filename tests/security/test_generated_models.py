"""A hostile OpenAPI document, CRD or cluster must not get code into the classes that are generated from it.

Covers: kubewright.generate.models
"""

from __future__ import annotations

import builtins
import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.builders.definitions import definition_tree

from kubewright.errors import ConfigError, KubewrightError
from kubewright.generate.models.crd_documents import crd_documents
from kubewright.generate.models.modules import BUILTIN_PACKAGE, generate_models
from kubewright.generate.models.openapi import Documents
from kubewright.generate.models.python_source import quoted
from kubewright.generate.models.python_tree import check_module
from kubewright.generate.models.sources import read_openapi
from kubewright.generate.output import differences, write_files

PLANTED = "__import__('builtins').planted.append(1)"
PROLOGUE = "io.example.shop.v1."
REFERENCE = "#/components/schemas/"
GVK = "x-kubernetes-group-version-kind"


@pytest.fixture(autouse=True)
def planted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What planted code adds to when it runs."""
    ran: list[int] = []
    monkeypatch.setattr(builtins, "planted", ran, raising=False)
    return ran


@pytest.fixture(autouse=True)
def _no_imported_package() -> Iterator[None]:
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "hostile_models"]:
        del sys.modules[name]


def _documents(schemas: dict[str, Any], **more: Any) -> Documents:
    document = {"openapi": "3.0.0", "paths": {}, "components": {"schemas": schemas}}
    return Documents(documents={"shop.example.io/v1": document}, **more)


def _import(files: dict[str, bytes], folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, ModuleType]:
    """Every generated module, imported."""
    write_files(folder / "hostile_models", files)
    monkeypatch.syspath_prepend(str(folder))
    names = [path.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for path in files]
    return {name: importlib.import_module(f"hostile_models.{name}".removesuffix(".__init__")) for name in names}


OBJECT = {"type": "object", "properties": {"size": {"type": "integer"}}}
BOX = {
    "type": "object",
    "properties": {"metadata": {"type": "object"}},
    GVK: [{"group": "shop.example.io", "version": "v1", "kind": "Box"}],
}
DISCOVERY = [
    {
        "metadata": {"name": "shop.example.io"},
        "versions": [{"version": "v1", "resources": [{"resource": "boxes", "responseKind": {"kind": "Box"}}]}],
    }
]

COMPONENT_NAMES = (
    f"Box({PLANTED}): pass\nclass Other",
    f"Box(object): {PLANTED}\nclass X",
    f"Box(metaclass=lambda *a, **k: {PLANTED})",
    "class",
    "None",
    "__all__",
    "__init_subclass__",
    "str",
    "list",
    "annotations",
    "Model",
    "field",
    "Any",
    "\U0001d40codel",
    "\ufb01eld",
    "Box\x00",
    "Box\u202e",
    "Box\udc80",
    "1",
    "",
    " ",
)


@pytest.mark.parametrize("last", COMPONENT_NAMES, ids=ascii)
@pytest.mark.parametrize("prefix", [PROLOGUE, "", "io.example.x;import os.v1.", "io...", "io.example.class.import."])
def test_a_components_name_is_no_code(
    prefix: str, last: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planted: list[int]
) -> None:
    name = prefix + last
    user = {"type": "object", "properties": {"box": {"$ref": REFERENCE + name}, "note": {"type": "string"}}}

    files = generate_models(
        _documents({name: OBJECT, f"{PROLOGUE}User": user, "io.example.other.v1.User": user}), package="hostile_models"
    )
    _import(files, tmp_path, monkeypatch)

    assert planted == []
    assert all(part.isidentifier() and part.isascii() for path in files for part in path[:-3].split("/"))


@pytest.mark.parametrize("version", ['v1"; ' + PLANTED + '; x = "', 'v1""" + ' + PLANTED + ' + """', "v1\\", "v1\nx"])
def test_a_servers_version_is_no_code(version: str, planted: list[int]) -> None:
    documents = _documents({f"{PROLOGUE}Box": BOX}, version=version, discovery=DISCOVERY)

    files = generate_models(documents, package=BUILTIN_PACKAGE)

    namespace: dict[str, Any] = {}
    exec(compile(files["index.py"], "index.py", "exec", dont_inherit=True), namespace)
    assert planted == []
    assert namespace["SERVER_VERSION"] == version


def test_a_list_kind_that_a_field_refers_to_is_refused_and_not_imported(planted: list[int]) -> None:
    name = f"io.v1 import Pod\n{PLANTED}\nfrom x.v1.List"
    listed = {
        "type": "object",
        "properties": {
            "items": {"type": "array", "items": {"type": "string"}},
            "metadata": {"$ref": f"{REFERENCE}io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta"},
        },
    }
    user = {"type": "object", "properties": {"boxes": {"$ref": REFERENCE + name}}}

    with pytest.raises(KubewrightError, match="is a list of a kind and has no class of its own"):
        generate_models(_documents({name: listed, f"{PROLOGUE}User": user}), package="hostile_models")


DESCRIPTIONS = (
    'ends in three quotes"""',
    'ends in four quotes""""',
    'a backslash before them\\"""',
    'two backslashes and one quote\\\\"',
    "ends in a backslash\\",
    '"""',
    '"',
    "\\",
    '\\"\\"\\"\n' + PLANTED + '\n"""',
    'a quote and a character that nobody sees"\u200b',
    '"""\x0c' + PLANTED,
    "half a character \udc80",
    '""" \\N{DIGIT ONE} \\x',
)


@pytest.mark.parametrize("description", DESCRIPTIONS, ids=ascii)
def test_a_description_stays_a_description(
    description: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planted: list[int]
) -> None:
    fields = {
        "size": {"type": "integer", "description": description},
        "mode": {"type": "string", "description": "x", "enum": [description]},
        "any": {"$ref": f"{REFERENCE}{PROLOGUE}Any"},
    }
    schemas = {
        f"{PROLOGUE}Box": {"type": "object", "properties": fields, "description": description},
        f"{PROLOGUE}Any": {"description": description},
    }

    modules = _import(generate_models(_documents(schemas), package="hostile_models"), tmp_path, monkeypatch)

    visible = "".join(c if c.isprintable() or c == "\n" else " " for c in description).strip()
    assert (modules["shop.v1"].Box.__doc__ or "").split() == visible.split()
    assert planted == []


@pytest.mark.parametrize("refused", [False, True], ids=["names that a class may have", "names that none may have"])
def test_every_name_in_a_crd_is_data(
    refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planted: list[int]
) -> None:
    nasty = f'x"); {PLANTED}; field(name="\\'
    name = nasty.replace('"', "'").rstrip("\\")
    schema = {"type": "object", "properties": {name: {"type": "object", "properties": {name: {"type": "string"}}}}}
    crd = definition_tree("boxes", "../../etc/x.io" if refused else "x.io", kind="Box", schema=schema)
    crd["spec"]["names"] |= {"singular": nasty, "shortNames": [nasty], "categories": [nasty, "\u2028"]}
    version = crd["spec"]["versions"][0]
    version |= {"deprecated": True, "deprecationWarning": nasty}
    version["subresources"] = {"scale": {"specReplicasPath": nasty, "statusReplicasPath": nasty}}
    if refused:  # by the class statement, which has read all of its arguments by then
        crd["spec"]["names"]["plural"] = nasty
        version["name"] = f"../{nasty}"

    files = generate_models(crd_documents([("x", crd)]), package="hostile_models")
    if refused:
        with pytest.raises(KubewrightError, match=r"Box: the version .* cannot be used; write it like v1"):
            _import(files, tmp_path, monkeypatch)
    else:
        modules = _import(files, tmp_path, monkeypatch)
        (box,) = [module.Box for module in modules.values() if hasattr(module, "Box")]
        assert box.__doc__

    assert planted == []
    assert all(".." not in path and not path.startswith("/") for path in files)


@pytest.mark.parametrize("name", ['"', "\\", "a\nb", "\udc80", "\x00"], ids=ascii)
def test_a_field_that_no_class_can_have_is_refused(name: str) -> None:
    schema = {"type": "object", "properties": {name: {"type": "string"}}}

    with pytest.raises(KubewrightError, match="no class can have a field"):
        generate_models(_documents({f"{PROLOGUE}Box": schema}), package="hostile_models")


@pytest.mark.parametrize("text", ['"', "\\", "\n\r\x00\x1b", "\u202e\u2028", "\udc80", "😀é", "'", '\\"'], ids=ascii)
def test_quoted_text_reads_as_the_text_and_shows_every_character(text: str) -> None:
    literal = quoted(text)

    assert eval(literal) == text
    assert literal.isprintable()


@pytest.mark.parametrize(
    "source",
    [
        "import os",
        "from os import system",
        "from kubewright.cli.root import main",
        "from . import x",
        "from typing import *",
        "print(1)",
        "x = print(1)",
        "def f(): pass",
        "class A:\n    def f(self): pass",
        "class A(metaclass=print): pass",
        "class A(print(1)): pass",
        "class A(Model, group=print(1)): pass",
        "class A(Model, **x): pass",
        "class A(Model):\n    a: int = print(1)",
        "class A(Model):\n    a: int = field(default_factory=print(1))",
        "class A(Model):\n    a: int = field(default=__import__('os'))",
        "class A(Model):\n    a: [print(1) for _ in b] = None",
        "class A(Model):\n    __slots__: int = None",
        "class A(Model):\n    print(1)",
        "class A(Model):\n    class B: pass",
        "@print\nclass A: pass",
        "class A[T: print(1)]: pass",
        "field: Any = print",
        "from typing import Any as field\nclass A(Model):\n    a: int = field()",
        "class field(Model): pass\nclass A(Model):\n    a: int = field()",
        "if x: pass",
        "lambda: 1",
        'f"{print(1)}"',
        "del x",
        "x: int = (y := 1)",
        "await x",
        "class A(",
        "x\x00",
    ],
)
def test_a_module_with_anything_but_imports_classes_and_data_is_refused(source: str) -> None:
    imports = "from kubewright.api.model import Model, field\nfrom typing import Any\n"

    with pytest.raises(KubewrightError, match="is not written"):
        check_module("shop/v1.py", imports + source, modules=frozenset())


@pytest.mark.parametrize("path", ["../x.py", "/tmp/x.py", "a/../../x.py", "a/\x00.py", ""])
def test_no_file_is_written_outside_the_folder(path: str, tmp_path: Path) -> None:
    folder = tmp_path / "inside"

    with pytest.raises(ConfigError, match="outside"):
        write_files(folder, {path: b"x"})
    with pytest.raises(ConfigError, match="outside"):
        differences(folder, {path: b"x"})
    assert not folder.exists()


def test_the_packaged_documents_of_a_hostile_group_stay_in_their_folder(tmp_path: Path) -> None:
    schemas = {f"{PROLOGUE}Box": BOX, "io.example./../../../x.v1.Box": OBJECT}

    files = generate_models(_documents(schemas, discovery=DISCOVERY), package=BUILTIN_PACKAGE)

    with pytest.raises(ConfigError, match="outside"):
        write_files(tmp_path, files)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("depth", [200, 20_000])
def test_schemas_nested_without_end_are_refused(depth: int) -> None:
    schema: dict[str, Any] = {"type": "string"}
    for number in range(depth):
        inner = {"type": "array", "items": schema} if number % 2 else {"type": "object", "properties": {"a": schema}}
        schema = inner

    with pytest.raises(KubewrightError, match="nested"):
        generate_models(
            _documents({f"{PROLOGUE}Box": {"type": "object", "properties": {"a": schema}}}), package="hostile_models"
        )


def test_a_reference_that_leads_back_to_itself_is_refused() -> None:
    schemas = {
        f"{PROLOGUE}Loop": {"type": "array", "items": {"$ref": f"{REFERENCE}{PROLOGUE}Loop"}},
        f"{PROLOGUE}Box": {"type": "object", "properties": {"a": {"$ref": f"{REFERENCE}{PROLOGUE}Loop"}}},
    }

    with pytest.raises(KubewrightError, match="refers to itself"):
        generate_models(_documents(schemas), package="hostile_models")


def test_references_that_double_at_each_step_make_each_class_once() -> None:
    schemas: dict[str, Any] = {f"{PROLOGUE}Part15": {"type": "array", "items": {"type": "string"}}}
    for number in range(15):
        inner = {"$ref": f"{REFERENCE}{PROLOGUE}Part{number + 1}"}
        item = {"type": "object", "properties": {"a": inner, "b": inner}}
        schemas[f"{PROLOGUE}Part{number}"] = {"type": "array", "items": item}
    schemas[f"{PROLOGUE}Box"] = {"type": "object", "properties": {"a": {"$ref": f"{REFERENCE}{PROLOGUE}Part0"}}}

    source = generate_models(_documents(schemas), package="hostile_models")["shop/v1.py"]

    assert source.count(b"\nclass ") == 16


def test_a_saved_document_with_paths_that_are_none_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(json.dumps({"openapi": "3.0.0", "paths": [1]}))

    with pytest.raises(KubewrightError) as refused:
        read_openapi(tmp_path)
    assert "\n" not in str(refused.value)
