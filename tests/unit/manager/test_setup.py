"""What `setup_with_manager` records, and what it does to a manager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kubewright.cache.cache import Cache
from kubewright.cache.scope import Scope
from kubewright.client.config.config import Config
from kubewright.errors import ConfigError
from kubewright.k8s.core.v1 import ConfigMap, Pod, Secret
from kubewright.manager import Manager, ManagerOptions, setup_with_manager
from kubewright.manager.setup import ManagerSetup

NOWHERE = Config(server="https://127.0.0.1:9")
CLOSED = ManagerOptions(health_address="0", metrics_address="0")


@setup_with_manager
def plain(manager: Manager) -> None:
    """Adds a background task."""

    async def poll() -> None: ...

    manager.add(poll)


def scoped(**options: Any) -> ManagerSetup:
    @setup_with_manager(
        scopes={Secret: Scope(labels="app=shop"), Pod: Scope(labels="app=shop")}, defaults=ManagerOptions(**options)
    )
    def setup(manager: Manager) -> None: ...

    return setup


def scope_of(manager: Manager, kind: type[Any]) -> Scope:
    assert isinstance(manager.cache, Cache)
    return manager.cache.scope_of(kind)


def test_the_function_gets_the_manager_before_it_starts() -> None:
    told: list[Manager] = []

    @setup_with_manager
    def setup(manager: Manager) -> None:
        assert manager.state == "new"
        told.append(manager)

    assert told == []
    manager = Manager(setup, config=NOWHERE, options=CLOSED)
    assert told == [manager]
    assert plain.__doc__ == "Adds a background task."


def test_scopes_are_those_of_the_cache_and_what_is_given_wins() -> None:
    manager = Manager(scoped(), config=NOWHERE, options=CLOSED, scopes={Pod: Scope(labels="other=yes")})

    assert scope_of(manager, Secret).labels == "app=shop"
    assert scope_of(manager, Pod).labels == "other=yes"
    assert scope_of(manager, ConfigMap).labels == ""


def test_options_are_defaults_which_the_environment_overrides(monkeypatch: pytest.MonkeyPatch) -> None:
    setup = scoped(metrics_address="0", grace_period=5.0, sync_timeout=60.0)
    monkeypatch.setenv("KUBEWRIGHT_SYNC_TIMEOUT", "7")

    options = Manager(setup, config=NOWHERE).options

    assert setup.defaults == {"metrics_address": "0", "grace_period": 5.0, "sync_timeout": 60.0}
    assert (options.metrics_address, options.grace_period, options.sync_timeout) == ("0", 5.0, 7.0)
    assert Manager(setup, config=NOWHERE, options=CLOSED).options is CLOSED


def test_a_manager_is_set_up_once() -> None:
    with pytest.raises(ConfigError, match=r"set up twice, by .*\.plain and by .*\.setup; make one function"):
        Manager(plain, scoped(), config=NOWHERE, options=CLOSED)


def test_it_comes_too_late_once_there_is_a_manager() -> None:
    manager = Manager(config=NOWHERE, options=CLOSED)

    with pytest.raises(ConfigError, match=r"\.plain comes too late: .* give it to Manager or to run"):
        manager.add(plain)  # type: ignore[arg-type]  # the mistake


async def waiting(manager: Manager) -> None: ...


def lonely() -> None: ...


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (waiting, "waiting is async, .* give what waits to manager.add"),
        (lonely, r"lonely gets one argument, the manager: .* write def lonely\(manager\)"),
        (Manager, "Manager is none"),
    ],
)
def test_what_is_no_plain_function_of_a_manager_is_refused(function: Callable[..., Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        setup_with_manager(function)


@pytest.mark.parametrize("option", ["name", "namespace", "watch_namespaces"])
def test_what_the_operator_is_called_and_where_it_works_is_said_elsewhere(option: str) -> None:
    with pytest.raises(ConfigError, match=rf"{option} is said with \w+ under \[tool.kubewright\]"):
        scoped(**{option: ("shop",) if option == "watch_namespaces" else "shop"})
