"""What a set says holds, what it says no more goes, and what others added stays."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecarset.merge import CONTAINER, Tree, fields_of, merge, shape_of_volume

LOG: Tree = {"name": "log", "image": "fluent-bit:3.1", "env": [{"name": "A", "value": "a"}]}
TOKEN = {"name": "kube-api-access", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}


def merged(present: Tree, wanted: Tree, earlier: Tree | None = None) -> Any:
    """Where nothing else is said, what is wanted now was brought before."""
    return merge(present, wanted, fields_of(wanted if earlier is None else earlier, CONTAINER), CONTAINER)


@pytest.mark.parametrize(
    "addition",
    [
        {"volumeMounts": [TOKEN]},
        {"resources": {"limits": {"cpu": "100m"}, "requests": {"cpu": "50m"}}},
        {"securityContext": {"runAsNonRoot": True}},
        {"workingDir": "/srv"},
        {"lifecycle": {"preStop": {"sleep": {"seconds": 1}}}},
    ],
)
def test_what_others_added_stays(addition: Tree) -> None:
    assert merged(LOG | addition, LOG) == LOG | addition


def test_a_variable_of_others_stays_behind_those_of_the_set() -> None:
    present = LOG | {"env": [{"name": "FIRST", "value": "1"}, *LOG["env"], {"name": "LAST", "value": "2"}]}

    assert [item["name"] for item in merged(present, LOG)["env"]] == ["A", "FIRST", "LAST"]


def test_what_the_set_says_holds() -> None:
    present = LOG | {"image": "other:1", "env": [{"name": "A", "value": "other"}], "command": ["other"]}

    assert merged(present, LOG | {"command": ["run"]}) == LOG | {"command": ["run"]}


def test_amounts_are_merged_one_by_one() -> None:
    wanted = LOG | {"resources": {"limits": {"cpu": "1"}}}
    present = LOG | {"resources": {"limits": {"cpu": "2", "memory": "64Mi"}, "claims": [{"name": "gpu"}]}}

    assert merged(present, wanted)["resources"] == {
        "limits": {"cpu": "1", "memory": "64Mi"},
        "claims": [{"name": "gpu"}],
    }


def test_what_the_set_says_no_more_goes_and_nothing_else() -> None:
    earlier = LOG | {
        "command": ["run"],
        "env": [{"name": "A", "value": "a"}, {"name": "B", "value": "b"}],
        "resources": {"limits": {"cpu": "1"}},
        "securityContext": {"privileged": True},
    }
    present = earlier | {
        "env": [*earlier["env"], {"name": "THEIRS", "value": "x"}],
        "resources": {"limits": {"cpu": "1", "memory": "64Mi"}},
    }

    assert merged(present, LOG, earlier) == LOG | {
        "env": [{"name": "A", "value": "a"}, {"name": "THEIRS", "value": "x"}],
        "resources": {"limits": {"memory": "64Mi"}},
    }


def test_the_same_port_with_another_protocol_is_another_port() -> None:
    wanted = LOG | {"ports": [{"containerPort": 53, "protocol": "UDP"}]}
    theirs = {"containerPort": 53, "protocol": "TCP"}

    assert merged(wanted | {"ports": [theirs]}, wanted)["ports"] == [*wanted["ports"], theirs]


def test_variables_may_be_called_like_fields() -> None:
    wanted = LOG | {"env": [{"name": name, "value": "1"} for name in ("env", "resources", "limits", "name")]}

    assert merged(wanted, wanted) == wanted


def test_a_volume_keeps_what_the_server_filled_in() -> None:
    wanted = {"name": "data", "configMap": {"name": "data"}}
    shape = shape_of_volume(wanted)
    present = {"name": "data", "configMap": {"name": "data", "defaultMode": 420}}

    assert merge(present, wanted, fields_of(wanted, shape), shape) == present


_VALUES = st.sampled_from(["1", "2"])
_NAMED = st.dictionaries(st.sampled_from("abc"), _VALUES).map(
    lambda found: [{"name": name, "value": value} for name, value in found.items()]
)
_TREES = st.fixed_dictionaries(
    {},
    optional={
        "image": _VALUES,
        "workingDir": _VALUES,
        "env": _NAMED,
        "resources": st.fixed_dictionaries(
            {}, optional={"limits": st.dictionaries(st.sampled_from(["cpu", "memory"]), _VALUES)}
        ),
        "securityContext": st.dictionaries(st.sampled_from(["runAsUser", "privileged"]), _VALUES),
    },
)


@given(_TREES, _TREES, _TREES)
def test_merging_again_changes_nothing(present: Tree, wanted: Tree, earlier: Tree) -> None:
    once = merged(present, wanted, earlier)

    assert merged(once, wanted) == once


@given(_TREES, _TREES, _TREES)
def test_everything_that_is_wanted_is_there_and_nothing_of_before(present: Tree, wanted: Tree, earlier: Tree) -> None:
    found, asked, before = (set(_leaves(tree)) for tree in (merged(present, wanted, earlier), wanted, earlier))
    names = {path[:-1] for path in asked}

    assert asked <= found
    assert not {path for path in found - asked if path[:-1] in {path[:-1] for path in before} - names}


def _leaves(tree: Any, *path: str) -> list[tuple[str, ...]]:
    """Every value, with the way to it."""
    if isinstance(tree, list):
        tree = {item["name"]: item["value"] for item in tree}
    if not isinstance(tree, dict):
        return [(*path, tree)]
    return [leaf for name, value in tree.items() for leaf in _leaves(value, *path, name)]
