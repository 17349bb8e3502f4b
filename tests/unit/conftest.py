"""The operator that the tests of loading and of the generators look at."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubewright.manager.operator import Operator, load_operator

OPERATORS = Path(__file__).parent / "generate" / "operators"


@pytest.fixture(scope="session")
def operator() -> Operator:
    """The operator of the folder `generate/operators/cache_operator`."""
    return load_operator(str(OPERATORS / "cache_operator"))
