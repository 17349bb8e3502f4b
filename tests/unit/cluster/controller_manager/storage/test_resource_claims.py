"""Names of generated claims."""

from __future__ import annotations

import pytest

from kubewright.cluster.controller_manager.storage.resource_claims import base_name


@pytest.mark.parametrize(
    ("pod", "entry", "expected"),
    [
        ("web", "gpu", "web-gpu-"),
        ("p" * 50, "e" * 5, "p" * 50 + "-" + "e" * 5 + "-"),
        ("p" * 60, "e" * 30, "p" * 37 + "-" + "e" * 18),
        ("p" * 200, "e", "p" * 56 + "-"),
    ],
)
def test_both_parts_of_a_long_name_are_shortened(pod: str, entry: str, expected: str) -> None:
    assert base_name(pod, entry) == expected
