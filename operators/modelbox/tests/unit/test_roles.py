"""The rights of the operator: what it needs, and nothing else."""

from pathlib import Path

import yaml

ROLE = Path(__file__).parent.parent.parent / "config" / "rbac" / "role.yaml"
READ_AND_APPLY = {"get", "list", "watch", "create", "patch"}


def test_the_operator_may_do_what_it_does_and_nothing_else() -> None:
    """1.7, W16."""
    rules = yaml.safe_load(ROLE.read_text())["rules"]

    granted = {
        f"{resource}.{group}": set(rule["verbs"])
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }

    assert granted == {
        "deployments.apps": READ_AND_APPLY,
        "services.": READ_AND_APPLY,
        "events.events.k8s.io": {"create", "patch"},
        "modelboxes.model.github.com": {"get", "list", "watch"},
        "modelboxes/status.model.github.com": {"patch"},
        "modelboxes/finalizers.model.github.com": {"update"},
    }
