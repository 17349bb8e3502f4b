"""Flags of an operator's process: controller-runtime's names, and one order with the environment and the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from kubewright.manager.flags import FLAGS, Flags, parse_flags
from kubewright.manager.options import ManagerOptions


def parsed(*arguments: str) -> Flags:
    return parse_flags(arguments, program="python -m shop")


@pytest.mark.parametrize(
    ("argument", "option", "value"),
    [
        ("--leader-elect", "leader_election", True),
        ("--leader-elect=false", "leader_election", False),
        ("--metrics-bind-address=:8443", "metrics_address", ":8443"),
        ("--metrics-bind-address=0", "metrics_address", "0"),
        ("--health-probe-bind-address=127.0.0.1:1", "health_address", "127.0.0.1:1"),
        ("--namespace=shop", "namespace", "shop"),
        ("--log-level=debug", "log_level", "debug"),
        ("--log-format=json", "log_format", "json"),
        ("--grace-period=1m30s", "grace_period", 90.0),
        ("--webhook-port=0", "webhook_port", 0),
    ],
)
def test_a_flag_sets_its_option(argument: str, option: str, value: object) -> None:
    assert parsed(argument).options == {option: value}
    assert getattr(parsed(argument).load_options(), option) == value


def test_there_is_a_flag_with_help_for_every_option() -> None:
    assert [flag.name for flag in FLAGS] == [field.name for field in msgspec.structs.fields(ManagerOptions)]
    assert [flag.spelling for flag in FLAGS if flag.help({}).startswith(" ")] == []


def test_the_cluster_and_the_file_have_flags_of_their_own() -> None:
    flags = parsed("--kubeconfig=/k", "--context", "c", "--config=/f")

    assert (flags.kubeconfig, flags.context, flags.config, flags.options) == ("/k", "c", "/f", {})


def test_flags_override_the_environment_the_file_and_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "manager.yaml"
    file.write_text("name: file\nleaseName: file\nnamespace: file\nwebhookHost: file\n")
    monkeypatch.setenv("KUBEWRIGHT_LEASE_NAME", "environment")
    monkeypatch.setenv("KUBEWRIGHT_NAMESPACE", "environment")

    defaults = dict.fromkeys(("name", "lease_name", "namespace", "webhook_service"), "program")
    options = parsed(f"--config={file}", "--namespace=flag").load_options(**defaults)

    assert options.namespace == "flag"
    assert options.lease_name == "environment"
    assert (options.name, options.webhook_host) == ("file", "file")
    assert options.webhook_service == "program"
    assert options.webhook_port == 9443


def test_the_flag_names_the_file_before_the_environment_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text(f"name: {name}\n")
    monkeypatch.setenv("KUBEWRIGHT_CONFIG", str(tmp_path / "one"))

    assert parsed().load_options().name == "one"
    assert parsed("--config", str(tmp_path / "two")).load_options().name == "two"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--leader-elected"], "unrecognized arguments: --leader-elected"),
        (["--leader"], "unrecognized arguments: --leader"),
        (["now"], "unrecognized arguments: now"),
        (["--leader-elect=maybe"], "--leader-elect is 'maybe'; it takes true or false"),
        (["--log-level=loud"], "--log-level is 'loud'; it takes one of debug, info, warning, error"),
        (["--metrics-bind-address"], "expected one argument"),
    ],
)
def test_a_wrong_command_line_is_exit_code_2_with_the_usage(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        parsed(*arguments)

    said = capsys.readouterr().err
    assert caught.value.code == 2
    assert said.startswith("usage: python -m shop [flags]")
    assert sentence in said


def test_help_lists_the_flags_and_says_what_overrides_what(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parse_flags(["--help"], program="python -m shop", name="shop")

    text = " ".join(capsys.readouterr().out.split())
    assert caught.value.code == 0
    assert "--leader-elect [BOOL] of several replicas only the leader works [KUBEWRIGHT_LEADER_ELECTION" in text
    assert "default shop]" in text
    assert "from its flag, else from its environment variable, else from the file that --config" in text


def test_a_default_of_the_program_that_does_not_exist_is_refused() -> None:
    defaults: dict[str, Any] = {"leader_elect": True}

    with pytest.raises(Exception, match="the default leader_elect is unknown; did you mean leader_election"):
        parsed().load_options(**defaults)
