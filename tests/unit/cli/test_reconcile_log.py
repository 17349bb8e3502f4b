"""Each reconcile is a line, and an error has its stack once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from kubewright import Context, controller
from kubewright._base.logs import Logger
from kubewright.cli.reconcile_log import ReconcileLog
from kubewright.controllers import reconcile_handler
from kubewright.controllers.declaration import Declaration
from kubewright.errors import ConfigError, Terminal
from kubewright.k8s.core.v1 import ConfigMap

PAINT = ConfigMap.named("paint", "default")
CTX: Any = SimpleNamespace(causes=("ConfigMap default/paint added",))


@pytest.fixture
def telling() -> ReconcileLog:
    return ReconcileLog()


def failing(make: Callable[[], BaseException] | None) -> Declaration[ConfigMap]:
    @controller(ConfigMap)
    class Paints:
        async def reconcile(self, paint: ConfigMap, ctx: Context) -> None:
            if make is not None:
                raise make()

        def finalize(self, paint: ConfigMap, ctx: Context) -> None: ...

    declared: Any = Paints  # a type checker takes a class below a decorator for what it was
    assert isinstance(declared, Declaration)
    return declared


async def run(declared: Declaration[ConfigMap]) -> None:
    called: Any = declared.reconcile(PAINT, CTX)
    await asyncio.gather(called, return_exceptions=True)


async def lines(capsys: pytest.CaptureFixture[str], declared: Declaration[ConfigMap]) -> list[str]:
    """What one run says."""
    await run(declared)
    return capsys.readouterr().err.splitlines()


async def test_a_run_is_one_line(telling: ReconcileLog, capsys: pytest.CaptureFixture[str]) -> None:
    declared = failing(None)
    telling.follow([declared])

    (line,) = await lines(capsys, declared)

    assert line[9:].startswith("configmap default/paint  ")
    assert line.endswith("ms  ok  because: ConfigMap default/paint added")


async def test_a_clean_up_is_told_as_one(telling: ReconcileLog, capsys: pytest.CaptureFixture[str]) -> None:
    declared = failing(None)
    telling.follow([declared])
    assert declared.finalize is not None

    declared.finalize(PAINT, CTX)

    assert "configmap default/paint  finalize  " in capsys.readouterr().err


async def test_the_stack_of_a_mistake_is_shown_once_and_begins_in_the_operator(
    telling: ReconcileLog, capsys: pytest.CaptureFixture[str]
) -> None:
    declared = failing(lambda: KeyError("size"))
    telling.follow([declared])

    first, second = await lines(capsys, declared), await lines(capsys, declared)

    assert "KeyError: 'size'  because: " in first[0]
    assert __file__ in first[2]
    assert first[-1] == "KeyError: 'size'"
    assert len(second) == 1

    telling.follow([declared := failing(lambda: KeyError("size"))])
    assert len(await lines(capsys, declared)) > 1  # the code was changed, and is wrong still


async def test_an_error_that_was_expected_needs_no_stack(
    telling: ReconcileLog, capsys: pytest.CaptureFixture[str]
) -> None:
    declared = failing(lambda: Terminal("spec.title is empty"))
    telling.follow([declared])

    assert len(await lines(capsys, declared)) == 1


def record(level: int, message: str, *, path: str, error: BaseException | str | None = None) -> logging.LogRecord:
    info = (type(error), error, None) if isinstance(error, BaseException) else None
    made = logging.LogRecord("kubewright.controllers", level, path, 1, message, None, info)
    made.pairs = {"error": error} if isinstance(error, str) else {}
    return made


async def test_the_log_shows_what_the_operator_says_and_what_was_not_told_already(telling: ReconcileLog) -> None:
    ours, failed = reconcile_handler.__file__, "reconcile failed; trying again with back-off"
    mistake, refused = KeyError("size"), ConfigError("there is no vault")
    for make in (lambda: mistake, lambda: refused):
        declared = failing(make)
        telling.follow([declared])
        await run(declared)

    assert telling.filter(record(logging.INFO, "painted", path=__file__))
    assert telling.filter(record(logging.WARNING, "going on without some kinds", path=ours))
    assert telling.filter(record(logging.ERROR, failed, path=ours, error=KeyError("in the status, after the run")))
    assert not telling.filter(record(logging.INFO, "controller started", path=ours))
    assert not telling.filter(record(logging.ERROR, failed, path=ours, error=mistake))
    assert not telling.filter(record(logging.ERROR, failed, path=ours, error=str(refused)))


def test_what_a_reconciler_logs_is_the_operators(telling: ReconcileLog, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        Logger("kubewright.controllers", controller="paint").info("painted")

    assert telling.filter(caplog.records[0])
