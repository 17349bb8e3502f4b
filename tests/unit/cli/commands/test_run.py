"""`kubewright run`: the flags of the packaged operator, and where its options come from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kubewright.cli.commands import run as module
from kubewright.manager.flags import FLAGS

PROJECT = """
[tool.kubewright]
operator = "run_shop"
scope = "namespace"
"""


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The managers that would run, of an operator that works in its own namespace."""
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    (tmp_path / "run_shop.py").write_text(
        "from kubewright import Context, controller\n"
        "from kubewright.k8s.core.v1 import ConfigMap\n"
        "@controller(ConfigMap)\n"
        "async def reconcile(config: ConfigMap, ctx: Context) -> None: ...\n"
    )
    (tmp_path / "kubeconfig").write_text(
        "clusters: [{name: c, cluster: {server: 'https://c.example.io'}}]\n"
        "users: [{name: u, user: {token: t}}]\n"
        "contexts: [{name: c, context: {cluster: c, user: u}}]\ncurrent-context: c\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", "kubeconfig")
    found: list[Any] = []

    async def instead(operator: Any, options: Any, config: Any) -> None:
        found.append((options, operator.watched_namespaces(options.namespace), config.server))

    monkeypatch.setattr(module, "_run", instead)
    return found


def run(*arguments: str) -> Any:
    return CliRunner().invoke(module.run, arguments, catch_exceptions=False)


def test_it_has_the_flags_of_the_packaged_operator() -> None:
    names = {name for parameter in module.run.params for name in parameter.opts}

    assert {flag.spelling for flag in FLAGS} <= names
    assert {"--kubeconfig", "--context", "--config"} <= names
    assert "else from the file that --config" in " ".join(run("--help").output.split())


def test_what_the_operator_says_about_its_manager_counts_but_for_ports(started: list[Any], tmp_path: Path) -> None:
    with (tmp_path / "run_shop.py").open("a") as file:
        file.write(
            "from kubewright.manager import ManagerOptions, setup_with_manager\n"
            "@setup_with_manager(defaults=ManagerOptions(\n"
            "    metrics_address=':9090', debug_address='127.0.0.1:6060', grace_period=5, sync_timeout=60))\n"
            "def setup(manager): ...\n"
        )
    run("--sync-timeout=7")

    (options, *_) = started[0]
    assert (options.grace_period, options.sync_timeout) == (5.0, 7.0)
    assert (options.metrics_address, options.debug_address) == ("0", "0")


def test_the_file_is_not_overridden(started: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "manager.yaml").write_text("metricsAddress: 127.0.0.1:9999\nname: mine\n")
    monkeypatch.setenv("KUBEWRIGHT_CONFIG", "manager.yaml")

    run()
    run("--metrics-bind-address=0", "--leader-elect")

    options = [call[0] for call in started]
    assert [(each.metrics_address, each.leader_election) for each in options] == [
        ("127.0.0.1:9999", False),
        ("0", True),
    ]
    assert options[0].name == "mine"


def test_no_port_is_opened_unless_named(started: list[Any]) -> None:
    run()

    options = started[0][0]
    assert (options.health_address, options.metrics_address, options.webhook_certificates) == ("0", "0", "local")
    assert options.name == "run-shop"


def test_the_namespace_of_the_environment_and_of_the_flag_count(
    started: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    run()
    monkeypatch.setenv("KUBEWRIGHT_NAMESPACE", "environment")
    run()
    run("--namespace=flag")

    assert [call[1] for call in started] == [("run-shop-system",), ("environment",), ("flag",)]


@pytest.mark.parametrize("arguments", [["--no-webhooks"], ["--webhooks=false"]], ids=" ".join)
def test_webhooks_are_switched_off(started: list[Any], arguments: list[str]) -> None:
    run(*arguments)

    assert not started[0][0].webhooks


@pytest.mark.parametrize(
    ("argument", "sentence"),
    [("--leader", "No such option"), ("--log-level=loud", "it takes one of debug, info, warning, error")],
)
def test_a_wrong_flag_is_exit_code_2(argument: str, sentence: str) -> None:
    done = run(argument)

    assert done.exit_code == 2
    assert sentence in done.output
    assert "Usage:" in done.output
