"""The rights that follow from the code: these and no others."""

from pathlib import Path
from typing import Any

import yaml

ROLES = Path(__file__).parent.parent / "config" / "rbac"


def role(name: str) -> dict[str, Any]:
    tree: dict[str, Any] = yaml.safe_load((ROLES / name).read_text())
    return tree


def test_the_operator_may_do_what_it_needs_and_nothing_else() -> None:
    granted = {
        (group, resource): set(rule["verbs"])
        for rule in role("role.yaml")["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert granted == {
        ("", "pods"): {"get", "list", "watch"},
        ("", "pods/ephemeralcontainers"): {"patch"},
        ("apps.jicki.cn", "podbuggertools"): {"get", "list", "watch"},
        ("apps.jicki.cn", "podbuggertools/status"): {"patch"},
        ("events.k8s.io", "events"): {"create", "patch"},
    }


def test_who_may_edit_a_namespace_may_not_therefore_run_images_in_its_pods() -> None:
    for name in ("podbuggertool_editor_role.yaml", "podbuggertool_admin_role.yaml", "podbuggertool_viewer_role.yaml"):
        assert not any("aggregate" in label for label in role(name)["metadata"]["labels"])
