"""Kustomizations: only completed, never rewritten."""

from __future__ import annotations

import pytest

from kubewright._base import yaml
from kubewright.errors import ConfigError
from kubewright.generate.kustomize import kustomization, with_resources


def test_a_new_one_lists_its_resources_in_order() -> None:
    assert yaml.load(kustomization(["b.yaml", "a.yaml"], namePrefix="x-")) == {
        "resources": ["a.yaml", "b.yaml"],
        "namePrefix": "x-",
    }


def test_one_that_lists_everything_stays_as_it_is() -> None:
    text = "# mine\nresources: [a.yaml,   b.yaml]\n"

    assert with_resources(text, ["a.yaml"], where="k") == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("resources:\n- z.yaml\n\npatches: []\n", "resources:\n- z.yaml\n- a.yaml\n- b.yaml\n\npatches: []\n"),
        (
            "# mine\nresources:\n  - z.yaml # kept\n  # - off.yaml\npatches: []\n",
            "# mine\nresources:\n  - z.yaml # kept\n  - a.yaml\n  - b.yaml\n  # - off.yaml\npatches: []\n",
        ),
        ("namePrefix: x-\n", "namePrefix: x-\nresources:\n- a.yaml\n- b.yaml\n"),
        ("resources: []\nnamePrefix: x-\n", "resources:\n- a.yaml\n- b.yaml\nnamePrefix: x-\n"),
        ("resources:\n- a.yaml\n", "resources:\n- a.yaml\n- b.yaml\n"),
        ("", "\nresources:\n- a.yaml\n- b.yaml\n"),
    ],
)
def test_what_is_missing_is_added_and_every_other_line_kept(text: str, expected: str) -> None:
    assert with_resources(text, ["b.yaml", "a.yaml"], where="k") == expected
    assert with_resources(expected, ["b.yaml", "a.yaml"], where="k") == expected


@pytest.mark.parametrize("text", ["resources: [z.yaml]\n", "a: ["])
def test_one_that_cannot_be_completed_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"config/kustomization.yaml: "):
        with_resources(text, ["a.yaml"], where="config/kustomization.yaml")
