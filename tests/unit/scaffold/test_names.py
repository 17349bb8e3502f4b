"""Names a project and its kinds may have."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kubewright.errors import ConfigError
from kubewright.scaffold import names


@pytest.mark.parametrize(
    ("check", "name", "sentence"),
    [
        (names.check_domain, "Example.io", "the domain 'Example.io' cannot be used: a lowercase RFC 1123 subdomain"),
        (names.check_domain, "example", "has no dot; use one of your own, such as example.io"),
        (names.check_domain, "apps.k8s.io", "is reserved for the Kubernetes project"),
        (names.check_project_name, "My_Project", "give another one with --project-name"),
        (names.check_project_name, "9lives", "start with an alphabetic character"),
        (names.check_project_name, "a" * 41, "is longer than 40 characters"),
        (names.check_version, "1.0", "write one such as v1alpha1, v1beta1 or v1"),
        (names.check_version, "v1gamma1", "is no Kubernetes version"),
        (names.check_kind, "podSet", "write it with capitals and in the singular"),
        (names.check_kind, "Pod-Set", "cannot be used"),
        (names.check_kind, "PodSetList", "is the name of a list"),
        (names.check_plural, "PodSets", "the plural 'PodSets' cannot be used"),
        (names.package_name, "kubewright", "would hide the Python package kubewright"),
        (names.package_name, "json", "would hide the Python package json"),
        (names.package_name, "class", "makes no Python package"),
    ],
)
def test_names_that_would_be_refused_later_are_refused_at_once(
    check: Callable[[str], object], name: str, sentence: str
) -> None:
    with pytest.raises(ConfigError, match=sentence):
        check(name)


def test_a_group_that_has_the_domain_already_is_told_to_leave_it_out() -> None:
    with pytest.raises(ConfigError, match=r"write --group apps$"):
        names.check_group("apps.example.io", "example.io")


def test_good_names_pass() -> None:
    names.check_domain("example.io")
    names.check_project_name("pods-operator")
    names.check_version("v2beta3")
    names.check_kind("PodSet")
    names.check_plural("podsets")
    names.check_group("apps", "example.io")

    assert names.package_name("pods-operator") == "pods_operator"
    assert names.module_name("Class") == "class_"


@pytest.mark.parametrize(
    ("group", "version", "kind", "plural"),
    [("core", "v1", "Pod", "pods"), ("apps", "v1", "Deployment", "deployments"),
     ("networking.k8s.io", "v1", "Ingress", "ingresses"), ("networking", "v1", "Ingress", "ingresses")],
)  # fmt: skip
def test_kinds_of_kubernetes_are_known(group: str, version: str, kind: str, plural: str) -> None:
    found = names.builtin_definition(group, version, kind)

    assert found is not None
    assert found.plural == plural


@pytest.mark.parametrize(
    ("group", "version", "kind"),
    [("core", "v1alpha1", "Pod"), ("apps", "v1", "PodSet"), ("shop", "v1", "Pod"), ("apps", "v1", "DeploymentSpec")],
)
def test_other_kinds_are_not(group: str, version: str, kind: str) -> None:
    assert names.builtin_definition(group, version, kind) is None
