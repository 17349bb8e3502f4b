"""Each reconcile is a line, printed when it has ended, and an error has its stack once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import watchfiles

from kubewright import Context, controller
from kubewright._base.logs import Logger
from kubewright.cli.reconcile_log import ReconcileLog
from kubewright.controllers import reconcile_handler
from kubewright.controllers.controller import ReconcileRecord
from kubewright.controllers.declaration import Declaration
from kubewright.errors import Invalid, Terminal
from kubewright.k8s.core.v1 import ConfigMap

PAINT = ConfigMap.named("paint", "default")
ID = "5eed"
CTX: Any = SimpleNamespace(causes=("ConfigMap default/paint added",), reconcile_id=ID)
OURS = reconcile_handler.__file__
FAILED = "reconcile failed; retrying with back-off"


class Following:
    """A log, and the controller that it follows."""

    def __init__(self) -> None:
        self.log = ReconcileLog(Path(__file__).parent)
        self._ended: list[Callable[[ReconcileRecord], None]] = []

    def follow(self, declared: Declaration[ConfigMap]) -> None:
        one: Any = SimpleNamespace(name="paint", subscribe=self._ended.append)
        self._ended.clear()
        self.log.follow([declared])
        self.log.attend([one])

    def ended(self, *, error: BaseException | None = None) -> None:
        """The reconcile has ended, and its status is written, if it could be."""
        record = ReconcileRecord(
            key=PAINT.key, causes=(), result="error" if error else "success", seconds=0.0031, reconcile_id=ID,
            error=None if error is None else str(error),
        )  # fmt: skip
        for each in self._ended:
            each(record)


@pytest.fixture
def following() -> Following:
    return Following()


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


async def lines(
    capsys: pytest.CaptureFixture[str], following: Following, declared: Declaration[ConfigMap]
) -> list[str]:
    """What one reconcile prints."""
    called: Any = declared.reconcile(PAINT, CTX)
    answers = await asyncio.gather(called, return_exceptions=True)
    following.ended(error=answers[0])
    return capsys.readouterr().err.splitlines()


async def test_a_reconcile_is_one_line(following: Following, capsys: pytest.CaptureFixture[str]) -> None:
    declared = failing(None)
    following.follow(declared)

    (line,) = await lines(capsys, following, declared)

    assert line[9:].startswith("paint default/paint  3.1 ms")
    assert line.endswith("ms  ok  because: ConfigMap default/paint added")


async def test_nothing_is_said_before_the_status_is_written(
    following: Following, capsys: pytest.CaptureFixture[str]
) -> None:
    declared = failing(None)
    following.follow(declared)

    called: Any = declared.reconcile(PAINT, CTX)
    await called

    assert capsys.readouterr().err == ""
    refused = Invalid("status.size: Invalid value: -1", code=422)
    assert not following.log.filter(record(logging.ERROR, FAILED, path=OURS, error=str(refused)))
    following.ended(error=refused)
    (line,) = capsys.readouterr().err.splitlines()
    assert "status.size: Invalid value: -1  because: " in line


async def test_a_reconcile_of_an_object_that_is_gone_is_no_line(
    following: Following, capsys: pytest.CaptureFixture[str]
) -> None:
    following.follow(failing(None))

    following.ended()

    assert capsys.readouterr().err == ""


async def test_a_clean_up_is_told_as_one(following: Following, capsys: pytest.CaptureFixture[str]) -> None:
    declared = failing(None)
    following.follow(declared)
    assert declared.finalize is not None

    declared.finalize(PAINT, CTX)
    following.ended()

    assert "paint default/paint  finalize  " in capsys.readouterr().err


async def test_the_stack_of_a_mistake_is_shown_once_and_begins_in_the_operator(
    following: Following, capsys: pytest.CaptureFixture[str]
) -> None:
    declared = failing(lambda: KeyError("size"))
    following.follow(declared)

    first, second = await lines(capsys, following, declared), await lines(capsys, following, declared)

    assert "KeyError: 'size'  because: " in first[0]
    assert __file__ in first[2]
    assert first[-1] == "KeyError: 'size'"
    assert len(second) == 1

    following.follow(declared := failing(lambda: KeyError("size")))
    assert len(await lines(capsys, following, declared)) > 1  # the code was changed, and is wrong still


async def test_an_error_that_was_expected_needs_no_stack(
    following: Following, capsys: pytest.CaptureFixture[str]
) -> None:
    declared = failing(lambda: Terminal("spec.title is empty"))
    following.follow(declared)

    assert len(await lines(capsys, following, declared)) == 1


def record(
    level: int, message: str, *, path: str, error: BaseException | str | None = None, name: str = "kubewright"
) -> logging.LogRecord:
    info = (type(error), error, None) if isinstance(error, BaseException) else None
    made = logging.LogRecord(name, level, path, 1, message, None, info)
    made.pairs = {"reconcileID": ID, **({"error": error} if isinstance(error, str) else {})}
    return made


async def test_the_log_shows_what_the_operator_says_and_what_is_not_a_line_of_its_own(following: Following) -> None:
    log = following.log
    following.follow(failing(None))

    assert log.filter(record(logging.INFO, "painted", path=__file__))
    assert log.filter(record(logging.WARNING, "going on without some kinds", path=OURS))
    assert log.filter(record(logging.ERROR, FAILED, path=OURS, error=KeyError("before the call")))
    assert not log.filter(record(logging.INFO, "controller started", path=OURS))


async def test_libraries_are_heard_when_they_warn(following: Following) -> None:
    log, library = following.log, watchfiles.__file__
    venv = str(Path(__file__).parent / ".venv/lib/python3.13/site-packages/one.py")

    assert not log.filter(record(logging.INFO, "1 change detected", path=library, name="watchfiles.main"))
    assert not log.filter(record(logging.INFO, "using it", path=asyncio.__file__, name="asyncio"))
    assert not log.filter(record(logging.INFO, "hello", path=venv, name="one"))
    assert log.filter(record(logging.WARNING, "the disk is full", path=library, name="watchfiles.main"))
    assert ReconcileLog(Path(library).parent).filter(record(logging.INFO, "painted", path=library))


def test_what_a_reconciler_logs_is_the_operators(following: Following, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        Logger("kubewright.controllers", controller="paint").info("painted")

    assert following.log.filter(caplog.records[0])
