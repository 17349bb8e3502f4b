"""Names from the wire, as Python wants them."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.generate.models.names import attribute_name, camel_case, class_name, module_name, singular, snake_case


@pytest.mark.parametrize(
    ("wire", "attribute"),
    [
        ("replicas", "replicas"),
        ("podIPs", "pod_ips"),
        ("clusterIP", "cluster_ip"),
        ("externalIPs", "external_ips"),
        ("hostIPC", "host_ipc"),
        ("nonResourceURLs", "non_resource_urls"),
        ("openAPIV3Schema", "open_api_v3_schema"),
        ("HTTPGet", "http_get"),
        ("fieldsV1", "fields_v1"),
        ("enableHTTP2", "enable_http2"),
        ("podIPv4Address", "pod_ipv4_address"),
        ("x-kubernetes-list-type", "x_kubernetes_list_type"),
        ("$ref", "ref"),
        ("snake_already", "snake_already"),
        ("from", "from_"),
        ("bool", "bool_"),
        ("3scale", "field_3scale"),
        ("-", "value"),
    ],
)
def test_a_field_gets_the_attribute_a_python_reader_expects(wire: str, attribute: str) -> None:
    assert attribute_name(wire) == attribute


def test_two_fields_that_would_share_an_attribute_get_different_ones() -> None:
    assert attribute_name("fooBar", taken={"foo_bar"}) == "foo_bar_2"
    assert attribute_name("fooBar", taken={"foo_bar", "foo_bar_2"}) == "foo_bar_3"


@given(st.from_regex(r"_?[a-zA-Z][a-zA-Z0-9é]{0,4}(_{1,2}[a-zA-Z0-9ß]{0,4}){0,4}", fullmatch=True))
def test_the_camel_case_of_an_attribute_is_msgspecs(name: str) -> None:
    renamed = msgspec.defstruct("Renamed", [(name, int)], rename="camel")

    assert camel_case(renamed.__struct_fields__[0]) == renamed.__struct_encode_fields__[0]


@given(st.text(alphabet=st.characters(codec="ascii"), min_size=1))
def test_any_wire_name_gives_a_usable_attribute(wire: str) -> None:
    name = attribute_name(wire)

    assert name.isidentifier()
    msgspec.defstruct("Usable", [(name, int)])


def test_class_names_keep_the_capitals_they_have() -> None:
    assert class_name("CertificateSpec", "jksKeystore") == "CertificateSpecJksKeystore"
    assert class_name("PodSpec", "dns-policy") == "PodSpecDnsPolicy"
    assert class_name("3d") == "V3d"


@pytest.mark.parametrize(
    ("group", "module"),
    [
        ("cert-manager.io", "cert_manager_io"),
        ("apps", "apps"),
        ("", "core"),
        ("class", "_class"),
        ("3scale", "_3scale"),
    ],
)
def test_a_group_gives_a_module_that_can_be_imported(group: str, module: str) -> None:
    assert module_name(group) == module


@pytest.mark.parametrize(
    ("many", "one"),
    [
        ("addresses", "address"),
        ("policies", "policy"),
        ("matchExpressions", "matchExpression"),
        ("status", "status"),
        ("dns", "dns"),
        ("boxes", "box"),
        ("volume", "volume"),
    ],
)
def test_items_are_named_in_the_singular(many: str, one: str) -> None:
    assert singular(many) == one


def test_snake_case_parts_words_at_anything_that_is_no_letter_or_digit() -> None:
    assert snake_case("a.b/c d") == "a_b_c_d"
