"""What `python -m` of an operator does with its command line."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kubewright.manager import entry_point
from kubewright.manager.entry_point import run_operator

OPERATORS = sorted(Path(__file__).parents[3].glob("operators/*/*/__main__.py"))
KUBECONFIG = """
clusters: [{name: c, cluster: {server: "https://%s.example.io"}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: c, context: {cluster: c, user: u, namespace: mine}}]
current-context: c
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An operator in this folder."""
    (tmp_path / "flagged_shop.py").write_text(
        "from kubewright import Context, controller\n"
        "from kubewright.k8s.core.v1 import ConfigMap\n"
        "@controller(ConfigMap)\n"
        "async def reconcile(config: ConfigMap, ctx: Context) -> None: ...\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "flagged_shop", raising=False)
    for name in ("flag", "environment"):
        (tmp_path / name).write_text(KUBECONFIG % name)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "environment"))
    return "flagged_shop"


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the manager would be made of, in place of a run."""
    calls: list[dict[str, Any]] = []
    monkeypatch.setattr(entry_point, "run", lambda *runnables, **given: calls.append({"runnables": runnables, **given}))
    return calls


def test_the_named_kubeconfig_is_used_and_not_that_of_the_environment(
    package: str, started: list[dict[str, Any]]
) -> None:
    run_operator(package, arguments=["--kubeconfig=flag"])
    run_operator(package, arguments=[])

    assert [call["config"].server for call in started] == ["https://flag.example.io", "https://environment.example.io"]
    assert [controller.name for controller in started[0]["runnables"]] == ["configmap"]


def test_the_name_in_the_program_is_only_a_default(
    package: str, started: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    run_operator(package, arguments=[])
    run_operator(package, name="shop", arguments=[])
    monkeypatch.setenv("KUBEWRIGHT_NAME", "other")
    run_operator(package, name="shop", arguments=[])
    run_operator(package, name="shop", arguments=["--name=third"])

    assert [call["options"].name for call in started] == ["flagged-shop", "shop", "other", "third"]


def test_a_namespaced_operator_works_where_it_is_told_to_be(
    package: str, started: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    run_operator(package, arguments=["--namespace=shop"])
    run_operator(package, namespaced=True, arguments=["--namespace=shop"])
    run_operator(package, namespaced=True, arguments=[])
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    run_operator(package, namespaced=True, arguments=[])

    assert [call["namespaces"] for call in started] == [(), ("shop",), ("flagged-shop-system",), ("mine",)]


def test_what_the_package_says_about_its_manager_is_weaker_than_the_environment(
    package: str, started: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with (tmp_path / f"{package}.py").open("a") as file:
        file.write(
            "from kubewright.manager import ManagerOptions, setup_with_manager\n"
            "@setup_with_manager(defaults=ManagerOptions(metrics_address=':9090', grace_period=5))\n"
            "def setup(manager): ...\n"
        )
    monkeypatch.setenv("KUBEWRIGHT_GRACE_PERIOD", "7")
    run_operator(package, arguments=["--kubeconfig=flag"])

    (call,) = started
    assert [getattr(runnable, "__name__", "") for runnable in call["runnables"]] == ["reconcile", "setup"]
    assert (call["options"].metrics_address, call["options"].grace_period) == (":9090", 7.0)
    assert call["options"].name == "flagged-shop"


def test_help_starts_nothing(package: str, started: list[dict[str, Any]]) -> None:
    with pytest.raises(SystemExit) as caught:
        run_operator(package, arguments=["--help"])

    assert caught.value.code == 0
    assert started == []
    assert package not in sys.modules


@pytest.mark.parametrize("arguments", [["--kubeconfig=/nowhere"], ["--config=/nowhere"]], ids=" ".join)
def test_what_is_not_there_is_a_sentence(package: str, started: list[dict[str, Any]], arguments: list[str]) -> None:
    with pytest.raises(SystemExit, match="/nowhere"):
        run_operator(package, arguments=arguments)

    assert started == []


def test_an_image_needs_no_library_for_the_command_line(package: str) -> None:
    code = (
        "import sys; sys.modules['click'] = sys.modules['rich'] = None; from kubewright.manager import run_operator; "
        f"run_operator({package!r})"
    )
    done = subprocess.run([sys.executable, "-c", code, "--help"], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"usage: python -m {package} [flags]")


@pytest.mark.parametrize("main", OPERATORS, ids=lambda main: main.parent.name)
def test_the_reference_operators_heed_their_arguments(main: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [str(main), "--kubeconfig=/nowhere"])

    with pytest.raises(SystemExit, match="/nowhere"):
        runpy.run_path(str(main), run_name="__main__")


def test_there_are_five_reference_operators() -> None:
    assert len(OPERATORS) == 5
