"""The declaration rbac(...)."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from kubewright import rbac
from kubewright.controllers.permissions import Permission, permissions_in
from kubewright.errors import ConfigError
from kubewright.k8s.apps.v1 import Deployment
from kubewright.k8s.core.v1 import Node, Pod, Secret


def module_with(text: str) -> ModuleType:
    module = ModuleType("written")
    exec("from kubewright import rbac\nfrom kubewright.k8s.core.v1 import Secret\n" + text, vars(module))
    return module


def test_a_statement_counts_for_its_module_and_each_is_counted_once() -> None:
    module = module_with("rbac(Secret, verbs='get')\nfor _ in range(2): rbac('pods/log', verbs=['get'])")

    assert [found.resources for found in permissions_in(module)] == [("secrets",), ("pods/log",)]
    assert permissions_in(ModuleType("empty")) == ()


def test_above_a_function_it_leaves_the_function_alone() -> None:
    module = module_with("@rbac(Secret, verbs='get')\ndef work(): return 7")

    assert module.work() == 7
    assert len(permissions_in(module)) == 1


def test_kinds_resources_and_addresses_are_all_understood() -> None:
    assert rbac(Pod, subresources="log", verbs="get") == Permission(
        verbs=("get",), groups=("",), resources=("pods/log",), namespaced=True
    )
    assert rbac(Node, verbs=("get", "list")).namespaced is False
    assert rbac("deployments/scale", group="apps", verbs="update", namespace="shop", names="web") == Permission(
        verbs=("update",), groups=("apps",), resources=("deployments/scale",), names=("web",), namespace="shop"
    )
    assert rbac(urls=("/metrics", "/debug/*"), verbs="get").urls == ("/metrics", "/debug/*")


@pytest.mark.parametrize(
    ("what", "options", "sentence"),
    [
        ((), {"verbs": "get"}, "either what resources or what urls"),
        (("pods",), {"verbs": "get", "urls": "/x"}, "either what resources or what urls"),
        (("pods",), {"verbs": ()}, "there is no verb"),
        (("pods",), {"verbs": "read"}, "'read' is no verb"),
        (("Pod",), {"verbs": "get"}, "'Pod' is no resource"),
        (("deployments.apps",), {"verbs": "get"}, "its group with group="),
        ((Secret, Deployment), {"verbs": "get"}, "different groups"),
        ((), {"verbs": "get", "urls": "/x", "namespace": "shop"}, "neither a name nor a namespace"),
    ],
)
def test_what_makes_no_sense_is_refused(what: tuple[Any, ...], options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        rbac(*what, **options)
