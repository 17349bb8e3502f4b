"""What pages promise without a block to run: names, metrics, errors, commands, links, and the menu of the site.

Covers: kubewright
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from tests.docs.names import problem_with
from tests.public_api import PUBLIC, public_names

from kubewright import errors
from kubewright._base import yaml
from kubewright._base.clock import SystemClock
from kubewright.cli.root import root
from kubewright.manager.telemetry import MeasuredTransport, Telemetry
from kubewright.workqueue import WorkQueue

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
FENCED = re.compile(r"^( *)(```+).*?^\1\2$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`]+)`")

MARKERS = (Path(__file__).parent / "markers.txt").read_text().split()
"""All markers that controller-gen 0.21 knows."""
COMMANDS = ("init", "create api", "create webhook", "edit", "alpha generate", "alpha update", "completion", "version")
"""All commands of kubebuilder 4."""
OF_OPERATOR_SDK = (
    *("init", "create api", "create webhook", "edit", "completion", "version", "cleanup", "scorecard"),
    *("generate kustomize manifests", "generate bundle", "generate packagemanifests", "pkgman-to-bundle"),
    *("bundle validate", "olm install", "olm status", "olm uninstall"),
    *("run bundle", "run bundle-upgrade", "run packagemanifests"),
    *("new", "add api", "add controller", "generate k8s", "generate openapi", "build", "up local", "test local"),
)
"""All commands of Operator SDK 1, and those of 0.x that tutorials still have."""


def text_of(page: Path) -> str:
    """A page without its blocks."""
    return FENCED.sub("", page.read_text(encoding="utf-8"))


def rows_of(page: str) -> Iterator[tuple[str, str]]:
    """The first and the last column of every row of every table of a page."""
    for line in text_of(DOCS / page).splitlines():
        if line.startswith("| ") and not line.startswith("| ---"):
            cells = re.split(r"(?<!\\)\|", line.strip("|"))
            yield cells[0].strip(), cells[-1].strip()


def headings_of(page: Path) -> set[str]:
    """The anchors of a page, as the site makes them."""
    titles = re.findall(r"^#+ (.+)$", text_of(page), re.MULTILINE)
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower()) for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_links_lead_to_pages_and_headings_that_exist(page: Path) -> None:
    for link in LINK.findall(text_of(page)):
        if link.startswith(("https://", "http://")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.is_relative_to(DOCS), f"{link} leads out of the site"
        assert target.is_file(), f"{link} leads nowhere"
        assert not anchor or anchor in headings_of(target), f"{link}: there is no such heading"


def test_every_page_is_in_the_menu() -> None:
    site = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))

    def files(entries: object) -> Iterator[str]:
        match entries:
            case str():
                yield entries
            case dict():
                for inner in entries.values():
                    yield from files(inner)
            case list():
                for inner in entries:
                    yield from files(inner)

    assert sorted(files(site["nav"])) == [page.relative_to(DOCS).as_posix() for page in PAGES]


def test_nothing_is_loaded_from_elsewhere() -> None:
    site = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    styles = (DOCS / "assets/site.css").read_text(encoding="utf-8")
    theme = [template.read_text(encoding="utf-8") for template in (DOCS / "theme").rglob("*.html")]
    pictures = [picture.read_text(encoding="utf-8") for picture in DOCS.rglob("*.svg")]

    assert "font: false" in site
    assert re.findall(r"(\w+): \S*://", site) == ["repo_url"], "a link, and the only one"
    assert "://" not in styles
    assert "@import" not in styles
    for template in theme:
        assert not re.search(r"<(script|link|img|iframe)|://", template)
    # With this attribute the theme's script asks GitHub for the numbers of the repository.
    assert "data-md-component" not in (DOCS / "theme/partials/source.html").read_text(encoding="utf-8")
    for picture in pictures:
        assert "href" not in picture
        assert "url(" not in picture.replace("url(#", "")
    for page in PAGES:
        assert not re.search(r"<(script|img|iframe)[^>]*http|!\[[^\]]*\]\(http", text_of(page)), page


@pytest.mark.parametrize(
    ("page", "at_least"),
    [("howto/from-kubebuilder.md", 200), ("howto/from-kopf.md", 30), ("howto/from-operator-sdk.md", 25)],
)
def test_names_in_the_tables_for_those_who_come_from_elsewhere_exist(page: str, at_least: int) -> None:
    checked = 0
    for left, right in rows_of(page):
        for name in CODE.findall(right):
            assert (problem := problem_with(name)) is None, f"{left}: {problem}"
            checked += 1
    assert checked > at_least


def test_every_marker_and_command_of_kubebuilder_is_in_the_tables() -> None:
    named = {name for left, _ in rows_of("howto/from-kubebuilder.md") for name in CODE.findall(left)}

    assert [marker for marker in MARKERS if not any(re.match(rf"\+{marker}(?![\w-])", name) for name in named)] == []
    assert [word for word in COMMANDS if not any(name.startswith(f"kubebuilder {word}") for name in named)] == []


def test_every_command_of_operator_sdk_is_in_the_tables() -> None:
    named = {name for left, _ in rows_of("howto/from-operator-sdk.md") for name in CODE.findall(left)}

    assert [
        word for word in OF_OPERATOR_SDK if not any(name.startswith(f"operator-sdk {word}") for name in named)
    ] == []


def test_names_that_do_not_exist_are_noticed() -> None:
    for name in ("Nobody", "Context.nothing", "Field(nothing=)", "kubewright nothing", "kubewright init --nothing"):
        assert problem_with(name) is not None
    for name in ("make nothing", "nothing=", "kubewright.nothing", "kubewright.testing.nothing", "@nothing"):
        assert problem_with(name) is not None


def test_names_on_the_page_about_architecture_exist() -> None:
    names = [name for name in CODE.findall(text_of(DOCS / "architecture.md")) if name.startswith("kubewright.")]

    assert len(names) > 30
    for name in names:
        assert (problem := problem_with(name, inside=True)) is None, problem


def test_every_error_has_its_place() -> None:
    page = text_of(DOCS / "errors.md")
    titles = re.findall(r"^#+ (\w+)$", page, re.MULTILINE)
    classes = {name for name, value in vars(errors).items() if name in errors.__all__ and inspect.isclass(value)}

    assert classes - set(titles) == set()
    for name in classes - {"Cause"}:
        _, _, rest = page.partition(f"# {name}\n")
        section = rest.partition("\n#")[0]
        assert "**When.**" in section, name
        assert "**What to do.**" in section, name


def exported() -> dict[str, set[str]]:
    """Every metric of a manager with its labels."""
    telemetry = Telemetry()
    telemetry.controller("web")
    telemetry.queue("web").follow(WorkQueue[str]())
    telemetry.cache()
    telemetry.webhooks()
    telemetry.on_leading("web")

    class Empty:
        def informers(self) -> tuple[()]:
            return ()

    telemetry.watch_cache(Empty())  # type: ignore[arg-type]  # what is asked of it here
    MeasuredTransport(None, telemetry.metrics, host="", clock=SystemClock())  # type: ignore[arg-type]  # nothing is sent
    return {name: set(family._labels) for name, family in telemetry.metrics._families.items()}


def test_the_table_of_metrics_is_complete() -> None:
    listed = {
        cells[0].strip(" `"): {label.strip() for label in cells[1].split(",") if label.strip()}
        for line in text_of(DOCS / "howto/metrics.md").splitlines()
        if line.startswith("| `") and (cells := line.strip("|").split("|"))
    }

    assert listed == exported()


def test_every_metric_of_the_dashboard_is_exported() -> None:
    known = exported()
    process = {"process_resident_memory_bytes", "process_cpu_seconds_total"}
    from_prometheus = {"namespace", "pod", "le"}
    dashboard = json.loads((DOCS / "dashboards/operator.json").read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    used: set[str] = set()

    assert len(expressions) > 30
    for expression in expressions:
        for name, selector in re.findall(r"([a-z_]+)\{([^}]*)\}", expression):
            family = re.sub(r"_(bucket|sum|count)$", "", name)
            labels = set(re.findall(r"(\w+)=", selector))
            for group in re.findall(r"by \(([^)]*)\)", expression):
                labels |= {label.strip() for label in group.split(",")}
            assert family in known or family in process, expression
            assert labels <= known.get(family, set()) | from_prometheus, expression
            used.add(family)
    assert known.keys() - used <= {"workqueue_work_duration_seconds"}, "what is measured and not shown"


def test_metrics_in_alerts_exist() -> None:
    known = exported()
    named = re.findall(
        r"(?:kubewright|controller_runtime|workqueue|leader_election|rest_client)_\w+",
        (DOCS / "howto/metrics.md").read_text(),
    )

    assert len(named) > 5
    assert [name for name in named if name not in known] == []


def commands(group: click.Group, path: str = "kubewright") -> Iterator[str]:
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")
            if command.invoke_without_command:
                yield f"{path} {name}"
        else:
            yield f"{path} {name}"


def test_every_command_is_on_the_page_about_commands() -> None:
    listed = {CODE.findall(left)[0] for left, _ in rows_of("reference/commands.md") if CODE.findall(left)}

    assert listed == set(commands(root))


def test_every_public_name_is_in_the_reference() -> None:
    text = " ".join(page.read_text(encoding="utf-8") for page in (DOCS / "reference").glob("*.md"))
    shown = set(re.findall(r"^::: ([\w.]+)$", text, re.MULTILINE))
    named = set(re.findall(r"`([A-Z]+)`", text)) | set(re.findall(r"^##+ (\w+)$", text, re.MULTILINE))
    # A facade name is documented where its package is, an error on the page about errors.
    packages = [module for module in PUBLIC if module not in ("kubewright", "kubewright.errors")]
    names = {f"{module}.{name}" for module in packages for name in public_names()[module]} | {"kubewright.controller"}

    assert sorted(name for name in names - shown if name.rpartition(".")[2] not in named) == []
    # Two modules are shown for the text they begin with: what the options are, and which arguments a handler may have.
    texts = {"kubewright.manager.options", "kubewright.webhooks.admission.arguments"}
    for name in shown - texts:
        assert (problem := problem_with(name)) is None, problem
