"""Checks names of a new project and of its kinds, before Kubernetes or Python would reject them.

Every check raises a `ConfigError` of one sentence and changes nothing. The classes in `kubewright.k8s` tell whether a
kind is built in.
"""

from __future__ import annotations

import importlib
import keyword
import re
import sys
from importlib.util import find_spec
from typing import Final

from kubewright.api.names import dns1035_label_errors, dns1123_label_errors, dns1123_subdomain_errors
from kubewright.api.resource import Definition, KubeObject
from kubewright.errors import ConfigError

__all__ = (
    "builtin_definition",
    "check_domain",
    "check_group",
    "check_kind",
    "check_package",
    "check_plural",
    "check_project_name",
    "check_version",
    "is_builtin_group",
    "module_name",
    "package_name",
)

_VERSION: Final = re.compile(r"v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?")
_KIND: Final = re.compile(r"[A-Z][A-Za-z0-9]{0,62}")
_OUR_MODULES: Final = frozenset(("kubewright", "api", "controllers", "webhooks", "tests", "test", "src", "config"))
_SKIPPED_MODULES: Final = frozenset(("conftest", "tests"))
"""Modules in which nothing is looked for when an operator is loaded."""
_MAX_NAME_LENGTH: Final = 40
"""Leaves room for the suffixes of kustomize, such as `-controller-manager-metrics-service`."""


def check_domain(domain: str) -> None:
    """A domain with at least two labels."""
    if problems := dns1123_subdomain_errors(domain):
        raise ConfigError(f"the domain {domain!r} cannot be used: {problems[0]}")
    if "." not in domain:
        raise ConfigError(f"the domain {domain!r} has no dot; use one of your own, such as example.io")
    if domain.endswith((".k8s.io", ".kubernetes.io")) or domain in ("k8s.io", "kubernetes.io"):
        raise ConfigError(f"the domain {domain} is reserved for the Kubernetes project; use one of your own")


def check_project_name(name: str) -> None:
    """It is the prefix of the names of all objects of the operator, and of its namespace."""
    if problems := dns1035_label_errors(name):
        raise ConfigError(
            f"the project name {name!r} cannot be used: {problems[0]}; give another one with --project-name"
        )
    if len(name) > _MAX_NAME_LENGTH:
        raise ConfigError(
            f"the project name {name!r} is longer than {_MAX_NAME_LENGTH} characters; "
            "give another one with --project-name"
        )


def package_name(name: str) -> str:
    """The Python package of a project."""
    package = re.sub(r"[-.]+", "_", name).lower()
    if not package.isidentifier() or keyword.iskeyword(package):
        raise ConfigError(f"the project name {name!r} makes no Python package; give another one with --project-name")
    if package in _OUR_MODULES or package in sys.stdlib_module_names:
        raise ConfigError(
            f"the project name {name!r} would hide the Python package {package}; give another one with --project-name"
        )
    return package


def check_package(package: str) -> None:
    """A package that `package_name` makes."""
    try:
        usable = package.isascii() and package_name(package) == package
    except ConfigError:
        usable = False
    if not usable:
        raise ConfigError(f"{package!r} is no Python package for an operator; write one word, as shop_operator")


def check_group(group: str, domain: str) -> None:
    """The first part of an API group; the domain follows it."""
    if problems := dns1123_subdomain_errors(group):
        raise ConfigError(f"the group {group!r} cannot be used: {problems[0]}")
    if group.endswith(f".{domain}"):
        raise ConfigError(f"the group {group} has the domain already; write --group {group[: -len(domain) - 1]}")


def check_version(version: str) -> None:
    """As Kubernetes writes them: v1alpha1, v1beta2, v1."""
    if _VERSION.fullmatch(version) is None:
        raise ConfigError(
            f"the version {version!r} is no Kubernetes version; write one such as v1alpha1, v1beta1 or v1"
        )


def check_kind(kind: str) -> None:
    """A Python class name and a Kubernetes kind."""
    if _KIND.fullmatch(kind) is None or keyword.iskeyword(kind):
        raise ConfigError(f"the kind {kind!r} cannot be used; write it with capitals and in the singular, as PodSet")
    if kind.endswith("List"):
        raise ConfigError(f"the kind {kind!r} is the name of a list; leave the List out")


def check_plural(plural: str) -> None:
    """The name of a resource in URLs."""
    if problems := dns1035_label_errors(plural) or dns1123_label_errors(plural):
        raise ConfigError(f"the plural {plural!r} cannot be used: {problems[0]}")


def module_name(kind: str) -> str:
    """The module of a kind: `podset` for PodSet."""
    name = kind.lower()
    return f"{name}_" if keyword.iskeyword(name) or name in _SKIPPED_MODULES else name


def is_builtin_group(group: str) -> bool:
    """Whether Kubernetes itself has the group."""
    word = group.partition(".")[0]
    return word.isidentifier() and find_spec(f"kubewright.k8s.{word}") is not None


def builtin_definition(group: str, version: str, kind: str) -> Definition | None:
    """The definition of a built-in kind, or None if there is none of that name."""
    word = group.partition(".")[0]
    if not is_builtin_group(group) or find_spec(f"kubewright.k8s.{word}.{version}") is None:
        return None
    found = getattr(importlib.import_module(f"kubewright.k8s.{word}.{version}"), kind, None)
    if not isinstance(found, type) or not issubclass(found, KubeObject):
        return None
    definition = found.__definition__
    assert isinstance(definition, Definition)
    wanted = definition.gvk.group or "core"
    return definition if group in (wanted, wanted.partition(".")[0]) else None
