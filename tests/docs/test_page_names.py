"""Pages name only what is there: a module, class, function or keyword in backticks exists.

Covers: kubewright
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.docs.docstring_names import SOURCE, names_under
from tests.docs.page_names import EXAMPLES, unknown_names_on

ROOT = SOURCE.parent
ABOUT_TESTS = (ROOT / "CONTRIBUTING.md", ROOT / "tests" / "README.md")
PAGES = (*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "README.zh.md", *ABOUT_TESTS)
TRANSLATIONS = ("glossary.md", "from-kopf.md", "from-kubebuilder.md", "from-operator-sdk.md")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_name_on_a_page_leads_somewhere(page: Path) -> None:
    known = names_under(ROOT / "tests") if page in ABOUT_TESTS else frozenset[str]()
    unknown = unknown_names_on(page.read_text(encoding="utf-8"), translates=page.name in TRANSLATIONS, known=known)

    assert list(unknown) == [], "rename them, or add what is somebody else's to page_examples.txt"


@pytest.mark.parametrize(
    "name",
    [
        "kubewright.nothing",
        "kubewright.Nothing",
        "cache.reflectors",
        "client.httptools_transport",
        "cluster.direct",
        "planes.nothing",
        "Reconciliator",
        "Context.nothing",
        "ctx.nothing",
        "ctx.client.nothing()",
        "@reconciles",
        "spec_changed_or_so",
        "KUBEWRIGHT_NOTHING",
        "kubewright_nothing_total",
        "nothing.py",
        "finalizing=",
        "@controller(..., finalize=...)",
        "@controller(Pod, owning=[ConfigMap])",
        "Field(ge=, greater=)",
        "ctx.apply(child, forced=True)",
        "ctx.client.list(Pod, indexes=())",
        "Result(requeue=1)",
        "copy_of(obj, deeply=True)",
        "Reconciliator(obj)",
    ],
)
def test_a_name_that_leads_nowhere_is_found(name: str) -> None:
    assert list(unknown_names_on(f"See `{name}`.")) == [name]


@pytest.mark.parametrize(
    "name",
    [
        "kubewright.cache",
        "cache.reflector",
        "client.transport",
        "planes.embedded",
        "client.get",
        "Context.apply",
        "ctx.client.list(Pod, index=())",
        "@controller(..., finalizer=...)",
        "generation_changed",
        "errors.py",
        "kubewright_cache_bytes",
        "KUBEWRIGHT_LOG_LEVEL",
        "spec.replicas",
        "Deployment",
        "kubectl get pods",
    ],
)
def test_a_name_that_exists_is_not_found(name: str) -> None:
    assert list(unknown_names_on(f"See `{name}`.")) == []


def test_a_page_may_name_what_its_blocks_define() -> None:
    assert list(unknown_names_on("`Shop` and `Store2`\n\n```python\nclass Shop: ...\n```\n")) == ["Store2"]


def test_only_the_last_column_of_a_translation_is_ours() -> None:
    row = "| `predicate.Or`, `WatchesMetadata` | `Reconciliator` |\n"

    assert list(unknown_names_on(row)) == ["WatchesMetadata", "Reconciliator"]
    assert list(unknown_names_on(row, translates=True)) == ["Reconciliator"]


def test_every_example_is_used() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)

    assert [name for name in sorted(EXAMPLES) if f"`{name}" not in text] == []
