"""Classes from documents: Kubewright's own kinds, and anybody's custom resources."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.builders.definitions import definition_tree

import kubewright.k8s
from kubewright.api.codec import decode, decode_tree, encode, encode_tree
from kubewright.api.conditions import Condition
from kubewright.api.quantity import Quantity
from kubewright.api.resource import Resource, Scale, definition_of
from kubewright.errors import DecodeError
from kubewright.generate.models.crd_documents import crd_documents
from kubewright.generate.models.modules import BUILTIN_PACKAGE, generate_models
from kubewright.generate.models.openapi import Documents
from kubewright.generate.models.sources import builtin_documents, read_crds
from kubewright.generate.output import differences, write_files
from kubewright.k8s.core.v1 import Container, PodSpec
from kubewright.k8s.meta.v1 import LabelSelector

MANIFESTS = Path(__file__).parent / "manifests"
OBJECT_META = {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The package generated from the manifests of this folder, imported."""
    folder = tmp_path_factory.mktemp("generated")
    write_files(folder / "shop_models", generate_models(read_crds([MANIFESTS]), package="shop_models"))
    sys.path.insert(0, str(folder))
    yield importlib.import_module("shop_models")
    sys.path.remove(str(folder))
    for name in [name for name in sys.modules if name.partition(".")[0] == "shop_models"]:
        del sys.modules[name]


@pytest.fixture
def trust(models: ModuleType) -> ModuleType:
    return importlib.import_module("shop_models.trust.v1")


@pytest.fixture
def monitoring(models: ModuleType) -> ModuleType:
    return importlib.import_module("shop_models.monitoring.v1")


def test_the_built_in_kinds_are_what_the_generator_makes_of_the_packaged_documents() -> None:
    files = generate_models(builtin_documents(), package=BUILTIN_PACKAGE)

    assert differences(Path(kubewright.k8s.__file__).parent, files) == []


def test_the_package_holds_no_generated_module_the_generator_would_not_make() -> None:
    folder = Path(kubewright.k8s.__file__).parent
    files = generate_models(builtin_documents(), package=BUILTIN_PACKAGE)

    present = {path.relative_to(folder).as_posix() for path in folder.rglob("*/*") if path.suffix in (".py", ".gz")}
    # The tables of protobuf messages have a generator of their own.
    assert {name for name in present if not name.startswith("protobuf/")} - files.keys() == set()


def test_the_same_documents_give_the_same_bytes() -> None:
    first = generate_models(read_crds([MANIFESTS]), package="shop")
    second = generate_models(read_crds([MANIFESTS]), package="shop")

    assert first == second
    assert sorted(first) == [
        "__init__.py",
        "monitoring/__init__.py",
        "monitoring/v1.py",
        "trust/__init__.py",
        "trust/v1.py",
        "trust/v1beta1.py",
    ]


def test_a_kind_with_spec_and_status_is_a_resource_that_knows_its_names(trust: ModuleType) -> None:
    definition = definition_of(trust.Certificate)

    assert issubclass(trust.Certificate, Resource)
    assert definition.api_version == "trust.example.io/v1"
    assert definition.plural == "certificates"
    assert definition.short_names == ("cert", "certs")
    assert definition.categories == ("trust",)
    assert definition.status is True
    assert 'It says "please" and knows C:\\paths.' in (trust.Certificate.__doc__ or "")


def test_an_object_of_a_generated_class_survives_the_way_to_the_wire_and_back(trust: ModuleType) -> None:
    tree = {
        "apiVersion": "trust.example.io/v1",
        "kind": "Certificate",
        "metadata": {"name": "web"},
        "spec": {
            "secretName": "web-tls",
            "issuerRef": {"name": "ca", "kind": "Issuer"},
            "dnsNames": ["web.example.io"],
            "isCA": False,
            "keystores": {"jks": {"create": True, "passwordSecretRef": {"name": "jks"}}},
            "otherNames": [{"oid": "1.2", "utf8Value": "x"}],
        },
        "status": {
            "revision": 0,
            "notAfter": "2024-05-01T10:00:00Z",
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }

    web = decode(trust.Certificate, encode_tree(tree))

    assert web.spec.is_ca is False
    assert web.spec.keystores.jks.password_secret_ref == trust.CertificateSpecKeystoresJksPasswordSecretRef(name="jks")
    assert web.status.not_after == datetime(2024, 5, 1, 10, tzinfo=UTC)
    assert web.status.conditions == [Condition(type="Ready", status="True")]
    assert decode_tree(encode(web)) == tree


def test_an_older_version_says_that_it_is_deprecated_and_not_stored(models: ModuleType) -> None:
    old = importlib.import_module("shop_models.trust.v1beta1")

    definition = definition_of(old.Certificate)

    assert definition.deprecated == 'trust.example.io/v1beta1 Certificate is deprecated; use "v1"'
    assert definition.storage is False


def test_unions_quantities_and_free_form_fields_have_the_types_they_need(monitoring: ModuleType) -> None:
    spec: dict[str, Any] = {
        "port": "http",
        "storage": "10Gi",
        "limits": {"cpu": 2},
        "podMonitorSelector": {"matchLabels": {"team": "a"}},
        "headers": {"x": ["a", None]},
        "routes": [{"anything": [1]}, "goes"],
        "extra": {"free": "form"},
        "template": {"apiVersion": "v1", "kind": "Pod"},
        "ratio": 0.5,
        "credentials": "aGk=",
        "level": "low",
        "source": {"git": {"url": "https://example.io"}},
        "from": "here",
        "str": "s",
        "list": ["l"],
        "dry-run": True,
    }

    read = decode(monitoring.CollectorSpec, encode_tree(spec))

    assert read.storage == Quantity("10Gi")
    assert read.limits == {"cpu": Quantity(2)}
    assert read.pod_monitor_selector == LabelSelector(match_labels={"team": "a"})
    assert read.credentials == b"hi"
    assert (read.from_, read.str_, read.list_, read.dry_run) == ("here", "s", ["l"], True)
    assert decode_tree(encode(read)) == {**spec, "limits": {"cpu": "2"}}


def test_a_status_with_required_fields_is_absent_from_a_new_object(monitoring: ModuleType) -> None:
    collector = monitoring.Collector()

    assert collector.status is None
    assert definition_of(monitoring.Collector).scale == Scale(
        spec_path="spec.replicas", status_path="status.replicas", selector_path="status.selector"
    )


def test_a_kind_named_like_a_class_of_the_library_does_not_hide_it(monitoring: ModuleType) -> None:
    model = monitoring.Model(key_="k", field_="f", value=monitoring.ModelValue(any=[1]))

    assert decode_tree(encode(model))["key"] == "k"
    assert decode_tree(encode(model))["field"] == "f"
    assert definition_of(monitoring.Model).namespaced is False


def test_values_allowed_are_named_where_the_description_does_not(models: ModuleType) -> None:
    source = generate_models(read_crds([MANIFESTS]), package="shop_models")["trust/v1.py"].decode()

    assert '"""One of: `RSA`, `ECDSA`, `Ed25519`."""' in source


def _document(**schemas: Any) -> Documents:
    names = {f"io.example.shop.v1.{name}": schema for name, schema in schemas.items()}
    return Documents(documents={"shop.example.io/v1": {"paths": {}, "components": {"schemas": names}}})


def test_built_in_classes_are_imported_and_not_repeated() -> None:
    container = {"$ref": "#/components/schemas/io.k8s.api.core.v1.Container"}
    documents = _document(Box={"type": "object", "properties": {"inner": container}})

    files = generate_models(documents, package="shop")

    assert b"from kubewright.k8s.core.v1 import Container\n" in files["shop/v1.py"]
    assert b"inner: Container | None = None" in files["shop/v1.py"]
    assert not [path for path in files if path.startswith(("core", "meta"))]
    assert Container.__module__ == PodSpec.__module__


def test_a_class_named_like_one_it_uses_takes_it_under_another_name() -> None:
    container = {"$ref": "#/components/schemas/io.k8s.api.core.v1.Container"}
    documents = _document(Container={"type": "object", "properties": {"inner": container}})

    source = generate_models(documents, package="shop")["shop/v1.py"]

    assert b"from kubewright.k8s.core.v1 import Container as CoreV1Container\n" in source
    assert b"inner: CoreV1Container | None = None" in source


def test_a_reference_that_leads_nowhere_is_refused_in_one_sentence() -> None:
    documents = _document(Box={"type": "object", "properties": {"inner": {"$ref": "#/components/schemas/io.x.v1.No"}}})

    with pytest.raises(DecodeError, match=r"io\.example\.shop\.v1\.Box refers to io\.x\.v1\.No"):
        generate_models(documents, package="shop")


def test_two_groups_that_begin_with_the_same_word_get_modules_of_their_own() -> None:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}}}
    manifests = [(group, _crd(group, "Box", schema)) for group in ("net.example.io", "net.other.io")]

    files = generate_models(crd_documents(manifests), package="shop")

    assert {"net_example_io/v1.py", "net_other_io/v1.py"} <= files.keys()


def test_a_version_of_any_name_gets_a_module() -> None:
    crd = _crd("x.io", "Box", {"type": "object"})
    crd["spec"]["versions"][0]["name"] = "2024-stable"

    files = generate_models(crd_documents([("x", crd)]), package="shop")

    assert b'version="2024-stable"' in files["x/_2024_stable.py"]


def test_inline_objects_that_would_share_a_name_get_numbers() -> None:
    part = {"type": "object", "properties": {"a": {"type": "string"}}}
    nested = {"type": "object", "properties": {"dB": part, "d-b": part}}

    source = generate_models(crd_documents([("x", _crd("x.io", "Box", nested))]), package="shop")["x/v1.py"].decode()

    assert "class BoxDB(" in source
    assert "class BoxDB2(" in source
    assert 'd_b_2: BoxDB2 | None = field(default=None, name="d-b")' in source


def test_a_description_cannot_break_out_of_its_docstring() -> None:
    nasty = 'ends with a backslash \\ and """quotes""" and \x07 and "'
    schema = {"type": "object", "description": nasty, "properties": {"a": {"type": "string", "description": nasty}}}

    source = generate_models(crd_documents([("x", _crd("x.io", "Box", schema))]), package="shop")["x/v1.py"].decode()

    namespace: dict[str, Any] = {"__name__": "kubewright_nasty"}
    exec(compile(source, "nasty", "exec", dont_inherit=True), namespace)
    assert namespace["Box"].__doc__ == nasty.replace("\x07", " ")


def _crd(group: str, kind: str, schema: dict[str, Any]) -> dict[str, Any]:
    return definition_tree(f"{kind.lower()}s", group, kind=kind, schema=schema)
