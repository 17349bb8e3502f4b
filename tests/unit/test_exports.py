"""What is public, and what importing it costs.

Covers: kubewright
"""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys

import pytest

import kubewright

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(kubewright.__path__, "kubewright.")
    if not module.name.startswith("kubewright.k8s.") and not module.name.endswith("__main__")
)


def test_every_public_name_is_there_and_sorted() -> None:
    assert len(set(kubewright.__all__)) == len(kubewright.__all__)
    assert list(kubewright.__all__) == sorted(kubewright.__all__, key=lambda name: (not name.isupper(), name))
    for name in kubewright.__all__:
        assert getattr(kubewright, name) is not None


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        kubewright.Nonsense  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("name", MODULES)
def test_module_lists_its_public_names(name: str) -> None:
    module = importlib.import_module(name)
    if not hasattr(module, "__path__"):
        assert isinstance(module.__all__, tuple)
        assert all(hasattr(module, public) for public in module.__all__)
    assert module.__doc__


def test_import_is_light() -> None:
    """No generated kind, no HTTP library, no event loop: those come with the first use."""
    code = "import sys, kubewright; print('\\n'.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()

    heavy = {
        "aiohttp",
        "asyncio",
        "ssl",
        "yaml",
        "click",
        "rich",
        "cryptography",
        "kubewright.client",
        "kubewright.k8s",
    }
    assert heavy.isdisjoint(loaded)
