"""Options: where they come from, and the table that says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from kubewright.errors import ConfigError
from kubewright.manager import options as module
from kubewright.manager.options import ManagerOptions


def test_arguments_override_the_environment_which_overrides_the_file(tmp_path: Path) -> None:
    file = tmp_path / "manager.yaml"
    file.write_text("name: from-file\nleaseName: from-file\nnamespace: from-file\nleaseDuration: 1m\n")
    environ = {"KUBEWRIGHT_CONFIG": str(file), "KUBEWRIGHT_LEASE_NAME": "from-env", "KUBEWRIGHT_NAMESPACE": "from-env"}

    loaded = ManagerOptions.load(environ=environ, namespace="from-argument")

    assert (loaded.name, loaded.lease_name, loaded.namespace) == ("from-file", "from-env", "from-argument")
    assert loaded.lease_duration == 60.0
    assert loaded.retry_period == 2.0


def test_the_table_lists_every_option_as_it_is() -> None:
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in (module.__doc__ or "").splitlines()
        if line.startswith("| ")
    ][2:]
    shown = [row[:4] for row in rows]

    def text(value: object) -> str:
        if isinstance(value, tuple):
            return ",".join(value)
        return (
            str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)
        )

    assert shown == [
        [field.name, f"KUBEWRIGHT_{field.name.upper()}", field.encode_name, text(field.default)]
        for field in msgspec.structs.fields(ManagerOptions)
    ]


@pytest.mark.parametrize(
    ("text", "value"), [("true", True), ("YES", True), ("1", True), ("off", False), ("False", False)]
)
def test_yes_and_no_in_the_environment(text: str, value: bool) -> None:
    assert ManagerOptions.load(environ={"KUBEWRIGHT_LEADER_ELECTION": text}).leader_election is value


@pytest.mark.parametrize(("text", "value"), [("45", 45.0), ("1.5", 1.5), ("1m30s", 90.0), ("500ms", 0.5)])
def test_times_in_the_environment(text: str, value: float) -> None:
    assert ManagerOptions.load(environ={"KUBEWRIGHT_GRACE_PERIOD": text}).grace_period == value


@pytest.mark.parametrize(
    ("environ", "sentence"),
    [
        ({"KUBEWRIGHT_LEADER_ELECTION": "perhaps"}, "KUBEWRIGHT_LEADER_ELECTION is 'perhaps'; it takes true or false"),
        ({"KUBEWRIGHT_GRACE_PERIOD": "soon"}, "KUBEWRIGHT_GRACE_PERIOD is 'soon'; it takes seconds"),
        ({"KUBEWRIGHT_LOG_FORMAT": "xml"}, "KUBEWRIGHT_LOG_FORMAT is 'xml'; it takes one of auto, json, text"),
        ({"KUBEWRIGHT_LEADER_ELECTON": "true"}, "did you mean KUBEWRIGHT_LEADER_ELECTION?"),
        ({"KUBEWRIGHT_CONFIG": "/nowhere/at/all"}, "/nowhere/at/all cannot be read"),
    ],
)
def test_wrong_settings_are_refused_with_the_name_of_the_variable(environ: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ManagerOptions.load(environ=environ)

    assert sentence in str(caught.value)


def test_variables_of_other_parts_are_left_alone() -> None:
    assert ManagerOptions.load(environ={"KUBEWRIGHT_REAL": "0", "KUBEWRIGHT_CACHE": "/x"}) == ManagerOptions()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("leaderElektion: true\n", "the key leaderElektion is unknown; did you mean leaderElection?"),
        ("leader_election: true\n", "did you mean leaderElection?"),
        ("- a\n", "holds no mapping"),
        ("a: [\n", "line"),
        ("name: [1]\n", "name is [1]; it takes text"),
    ],
)
def test_a_wrong_file_is_refused_by_name(tmp_path: Path, text: str, sentence: str) -> None:
    file = tmp_path / "manager.yaml"
    file.write_text(text)

    with pytest.raises(ConfigError) as caught:
        ManagerOptions.load(file=file, environ={})

    assert str(file) in str(caught.value)
    assert sentence in str(caught.value)


def test_an_empty_file_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty.yaml").write_text("")

    assert ManagerOptions.load(file=tmp_path / "empty.yaml", environ={}) == ManagerOptions()


def test_an_address_may_be_a_number_in_yaml(tmp_path: Path) -> None:
    (tmp_path / "off.yaml").write_text("healthAddress: 0\n")

    assert ManagerOptions.load(file=tmp_path / "off.yaml", environ={}).health_address == "0"


def test_an_unknown_argument_is_refused_with_a_suggestion() -> None:
    with pytest.raises(ConfigError, match=r"the argument lease_durations is unknown; did you mean lease_duration\?"):
        ManagerOptions.load(environ={}, lease_durations=3)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"debug_address": ":6060"}, "the debug address ':6060' can be reached from outside"),
        ({"debug_address": "10.0.0.1:6060"}, "the debug address '10.0.0.1:6060' can be reached from outside"),
        ({"health_address": "8081"}, "the health address '8081' is not an address"),
        ({"metrics_address": ":99999"}, "the metrics address ':99999' is not an address"),
        ({"grace_period": -1.0}, "the grace period is -1 s; it cannot be below 0"),
        ({"lease_duration": 5.0}, "lease duration 5 s, renew deadline 10 s and retry period 2 s do not fit"),
    ],
)
def test_what_cannot_work_is_refused_when_it_is_said(wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=f"^{sentence}"):
        ManagerOptions(**wrong)


def test_the_namespaces_to_watch_come_from_flag_environment_and_file(tmp_path: Path) -> None:
    file = tmp_path / "manager.yaml"
    file.write_text("watchNamespaces: [from-file, other]\n")

    def loaded(environ: dict[str, str], **arguments: Any) -> tuple[str, ...]:
        return ManagerOptions.load(file=file, environ=environ, **arguments).watch_namespaces

    both = {"WATCH_NAMESPACE": "go", "KUBEWRIGHT_WATCH_NAMESPACES": "ours, other,ours"}
    assert loaded({}) == ("from-file", "other")
    assert loaded({"WATCH_NAMESPACE": "go"}) == ("go",)
    assert loaded(both) == ("ours", "other")
    assert loaded(both, watch_namespaces="flag,b") == ("flag", "b")
    assert loaded(both, watch_namespaces=["flag"]) == ("flag",)
    assert ManagerOptions.load(environ={"WATCH_NAMESPACE": ""}).watch_namespaces == ()


@pytest.mark.parametrize("value", [7, [7], {"a": "b"}], ids=str)
def test_namespaces_to_watch_that_are_no_words_are_refused(value: object) -> None:
    with pytest.raises(ConfigError, match="it takes words with commas between them"):
        ManagerOptions.load(environ={}, watch_namespaces=value)


def test_a_namespace_to_watch_that_cannot_be_one_is_refused() -> None:
    with pytest.raises(ConfigError, match="the namespace to watch 'No' cannot be used"):
        ManagerOptions.load(environ={"WATCH_NAMESPACE": "No"})
