"""What the front pages show is true; `tests/docs/test_translations.py` shows that both say the same.

Covers: kubewright
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from bench.front import PAGES, front_table

from kubewright.controllers.declaration import Declaration
from kubewright.generate.crds.manifests import crd_for

ROOT = Path(__file__).parents[2]
FRONTS = [pytest.param(page, id=page.name) for page in PAGES]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)


@pytest.mark.parametrize("page", FRONTS)
def test_the_operator_of_the_front_page_declares_a_controller_and_a_crd(page: Path) -> None:
    (source,) = blocks(page, "python")
    names: dict[str, Any] = {"__name__": "readme"}

    exec(compile(source, page.name, "exec", dont_inherit=True), names)

    assert isinstance(names["reconcile"], Declaration)
    assert crd_for(names["Cache"])["metadata"]["name"] == "caches.cache.example.io"


@pytest.mark.parametrize("page", FRONTS)
def test_the_figures_are_those_of_the_last_run(page: Path) -> None:
    figures = json.loads((ROOT / "bench" / "results.json").read_text())["operators"]

    assert front_table(figures, PAGES[page]) in page.read_text()


@pytest.mark.parametrize("page", FRONTS)
def test_what_a_front_page_links_to_is_there(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)\)", page.read_text())

    assert len(links) > 10
    assert [link for link in links if "://" not in link and not (ROOT / link).exists()] == []
