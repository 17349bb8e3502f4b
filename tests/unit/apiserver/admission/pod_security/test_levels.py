"""The Pod Security modes that the labels of a namespace set."""

from __future__ import annotations

import pytest

from kubewright.apiserver.admission.pod_security.levels import LABELS, UNLABELLED, Policy, Standard, policy_of, stricter

BASELINE, RESTRICTED = Standard("baseline"), Standard("restricted")


def asked(**labels: str) -> Policy:
    return policy_of({LABELS + name.replace("_", "-"): value for name, value in labels.items()})


def test_without_labels_nothing_is_asked_for() -> None:
    assert policy_of(None) == policy_of({"app": "web"}) == UNLABELLED
    assert UNLABELLED.is_open


@pytest.mark.parametrize(
    ("labels", "warn"),
    [
        ({"enforce": "baseline"}, "baseline:latest"),
        ({"enforce": "baseline", "enforce_version": "v1.20"}, "baseline:v1.20"),
        ({"enforce": "baseline", "warn_version": "v1.20"}, "baseline:v1.20"),
        ({"enforce": "restricted", "warn": "baseline"}, "baseline:latest"),
        ({"enforce": "restricted", "warn": "privileged"}, "privileged:latest"),
        ({"enforce": "nonsense"}, "privileged:latest"),
    ],
)
def test_who_enforces_a_level_warns_of_it_too_unless_another_is_said(labels: dict[str, str], warn: str) -> None:
    assert str(asked(**labels).warn) == warn


def test_what_makes_no_sense_is_the_strictest_to_enforce_and_nothing_to_talk_about() -> None:
    policy = asked(enforce="a", audit="b", warn="c", enforce_version="v2")

    assert (policy.enforce, policy.audit, policy.warn) == (RESTRICTED, Standard(), Standard())
    assert [error.path for error in policy.errors] == [
        f"metadata.labels[{LABELS}{name}]" for name in ("enforce", "enforce-version", "audit", "warn")
    ]
    assert not policy.is_open


def test_levels_have_an_order() -> None:
    assert stricter(RESTRICTED, BASELINE)
    assert stricter(BASELINE, Standard())
    assert not stricter(BASELINE, Standard("baseline", 20))
