"""The log of an operator under test: its own records alone, and the exceptions that its code did not catch."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest

from kubewright import ObjectKey
from kubewright._base.logs import Logger
from kubewright.controllers.controller import ReconcileRecord
from kubewright.errors import Invalid, KubewrightError
from kubewright.testing import operator_log
from kubewright.testing.operator_log import OperatorLog, shown_logs

OURS = "kubewright.controllers"


@pytest.fixture(autouse=True)
def _no_operator_of_another_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator_log, "_open", [])


def reported(error: BaseException) -> None:
    """What the framework does about an exception of the operator's code."""
    path = OperatorLog.emit.__code__.co_filename
    record = logging.LogRecord(OURS, logging.ERROR, path, 1, "reconcile failed", None, (type(error), error, None))
    logging.getLogger(OURS).handle(record)


def test_what_the_operator_started_logs_as_the_operator_and_nobody_else_does() -> None:
    log, other = OperatorLog("shop"), OperatorLog("other")

    async def work(word: str) -> None:
        await asyncio.sleep(0)
        Logger("shop").warning("working", word=word)

    async def both() -> None:
        with log.speaking():
            started = asyncio.create_task(work("of the operator"))
        with other.speaking():
            beside = asyncio.create_task(work("of another"))
        await asyncio.gather(started, beside, work("of the test"))

    with log.kept(), other.kept():
        asyncio.run(both())

    assert "of the operator" in log.text()
    assert "of another" not in log.text()
    assert "of the test" not in log.text()
    assert shown_logs() == "", "nothing is shown once the operators have stopped"


def test_an_exception_that_the_framework_reports_is_an_error_and_one_the_operator_logs_is_not() -> None:
    log, bug, caught = OperatorLog("shop"), KeyError("size"), ValueError("known")
    with log.kept(), log.speaking():
        reported(bug)
        Logger("shop").error("the shop went on", error=caught)

    assert log.errors == [bug]
    assert log.unexpected(()) == [bug]
    assert log.unexpected((LookupError,)) == []
    assert "ValueError: known" in log.text()


@pytest.mark.parametrize("error", [Invalid("no", code=422), KubewrightError("no")])
def test_an_error_that_the_framework_knows_is_no_mistake(error: KubewrightError) -> None:
    log = OperatorLog("shop")
    with log.kept(), log.speaking():
        reported(error)

    assert log.errors == []


def test_a_mistake_that_is_repeated_is_told_once() -> None:
    log, bugs = OperatorLog("shop"), [KeyError("size"), KeyError("size"), KeyError("colour")]
    with log.kept(), log.speaking():
        for bug in bugs:
            reported(bug)

    assert log.errors == bugs
    assert [str(error) for error in log.unexpected(())] == ["'size'", "'colour'"]


def test_reconciles_are_shown_with_what_they_did_and_why() -> None:
    log = OperatorLog("shop")
    record = ReconcileRecord(
        key=ObjectKey("default", "corner"),
        causes=("Shop default/corner added",),
        result="requeue_after",
        seconds=0.1,
        writes=("apply ConfigMap default/corner",),
        requeue_after=30,
    )
    controllers: Any = [SimpleNamespace(name="shop", recent=deque([record]))]
    with log.kept():
        assert "has reconciled nothing" in shown_logs()
        log.follow(controllers)
        text = shown_logs()

    wrote = "wrote: apply ConfigMap default/corner  because: Shop default/corner added"
    assert f"shop default/corner  requeue_after, again in 30 s  {wrote}" in text


def test_a_program_without_logging_of_its_own_still_sees_warnings(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    with OperatorLog("shop").kept(), OperatorLog("other").kept():
        logging.getLogger("shop").warning("low on flour")

    assert capsys.readouterr().err == "low on flour\n"
