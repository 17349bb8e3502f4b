"""CustomResourceDefinitions that are malformed are refused, and large ones take no more than time in proportion.

Covers: kubewright.apiserver.apiextensions.definitions
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.builders.definitions import definition_tree, version_tree
from tests.planes import Plane
from tests.security.callers import caller
from tests.security.spending import spending

from kubewright.apiserver.apiextensions.definitions.conditions import accept_names
from kubewright.apiserver.apiextensions.definitions.defaults import default_crd
from kubewright.apiserver.apiextensions.definitions.validation import validate_crd

PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.mark.parametrize(
    "spec",
    [
        {"names": None},
        {"versions": None},
        {"conversion": None},
        {"scope": None},
        {"conversion": {"strategy": "Webhook", "webhook": None}},
        {"conversion": {"strategy": "Webhook", "webhook": {"clientConfig": None, "conversionReviewVersions": None}}},
    ],
    ids=str,
)
async def test_nulls_are_no_internal_error(plane: Plane, spec: dict[str, Any]) -> None:
    tree = definition_tree("malformed", "nulls.example.io")
    tree["spec"].update(spec)
    sender = await caller(plane, "malformer", "system:masters")

    answer = await sender.send("POST", f"{PATH}?dryRun=All", tree)

    assert answer.code == (201 if spec == {"conversion": None} else 422), answer.message


def test_many_versions_take_time_in_proportion() -> None:
    def calls(count: int) -> int:
        versions = [{**version_tree(f"v{number}"), "storage": number == 1} for number in range(1, count + 1)]
        tree = definition_tree("versions", versions=versions)
        default_crd(tree)
        with spending() as spent:
            errors = validate_crd(tree)
        assert not errors
        return spent.calls

    assert calls(400) < 5 * calls(100)


def test_a_definition_has_a_thousand_versions_at_the_most() -> None:
    versions = [{**version_tree(f"v{number}"), "storage": number == 1} for number in range(1, 1002)]

    errors = validate_crd(definition_tree("versions", versions=versions))

    assert [error.message for error in errors] == ["spec.versions: Too many: 1001: must have at most 1000 items"]
    allowed = definition_tree("versions", versions=versions[:-1])
    default_crd(allowed)
    assert validate_crd(allowed) == []


def test_names_that_were_accepted_before_are_looked_up_at_once() -> None:
    """Half a million comparisons of lists would not end within the test's time."""
    tree = definition_tree(
        "names", names={"plural": "names", "kind": "Name", "shortNames": [f"s{n}" for n in range(200_000)]}
    )
    tree["status"] = {"acceptedNames": tree["spec"]["names"]}

    accepted, condition = accept_names(tree, [])

    assert accepted["shortNames"] == tree["spec"]["names"]["shortNames"]
    assert condition["status"] == "True"
