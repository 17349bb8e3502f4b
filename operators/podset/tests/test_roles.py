"""The rights that follow from the code: these and no others."""

from pathlib import Path

import yaml

ROLE = Path(__file__).parent.parent / "config" / "rbac" / "role.yaml"


def test_the_operator_may_do_what_it_needs_and_nothing_else() -> None:
    rules = yaml.safe_load(ROLE.read_text())["rules"]

    granted = {
        (group, resource): set(rule["verbs"])
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert granted == {
        ("", "pods"): {"get", "list", "watch", "create", "delete", "patch"},
        ("apps.jicki.cn", "podsets"): {"get", "list", "watch"},
        ("apps.jicki.cn", "podsets/status"): {"patch"},
        ("apps.jicki.cn", "podsets/finalizers"): {"update"},
        ("events.k8s.io", "events"): {"create", "patch"},
    }
