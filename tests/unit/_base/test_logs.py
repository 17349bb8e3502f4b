"""Log records: constant message, pairs, formats, and what must never be shown."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from kubewright._base.clock import SystemClock
from kubewright._base.log_formats import JsonLines, ReadableText, plain
from kubewright._base.logs import Logger, configure, get_logger
from kubewright._base.tasks import within
from kubewright.api.names import ObjectKey
from kubewright.errors import ConfigError, NotFound
from kubewright.k8s.core.v1 import Secret


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """The root logger, put back as it was."""
    logger = logging.getLogger()
    handlers, level = list(logger.handlers), logger.level
    yield logger
    logger.handlers[:] = handlers
    logger.setLevel(level)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def json_logs(level: Any = "info") -> io.StringIO:
    stream = io.StringIO()
    configure(format="json", level=level, stream=stream)
    return stream


def test_handlers_of_others_are_told_the_pairs_in_the_message(caplog: pytest.LogCaptureFixture) -> None:
    Logger("shop", key="shop/web").warning("reconcile failed", error="there is no index", token="secret")

    (record,) = caplog.records
    assert record.getMessage() == 'reconcile failed key=shop/web error="there is no index" token=***'
    assert record.msg == "reconcile failed"  # what they are grouped by


def test_a_record_has_a_constant_message_and_pairs(root: logging.Logger) -> None:
    stream = json_logs()

    Logger("shop").info("reconciled", key=ObjectKey("shop", "web"), took=0.1, causes=["a", "b"])

    (line,) = lines(stream)
    assert line["ts"].endswith("Z")
    assert {name: line[name] for name in ("level", "logger", "msg", "key", "took", "causes")} == {
        "level": "info",
        "logger": "shop",
        "msg": "reconciled",
        "key": "shop/web",
        "took": 0.1,
        "causes": ["a", "b"],
    }


def test_a_child_says_what_its_parent_says_and_more(root: logging.Logger) -> None:
    stream = json_logs()
    parent = get_logger("shop", controller="web")

    parent.bind(key="a").warning("odd")
    parent.info("even")

    assert [(line.get("controller"), line.get("key")) for line in lines(stream)] == [("web", "a"), ("web", None)]


def test_records_of_other_libraries_look_the_same(root: logging.Logger) -> None:
    stream = json_logs()

    logging.getLogger("aiohttp").warning("slow %s", "answer")

    (line,) = lines(stream)
    assert (line["logger"], line["msg"], line["level"]) == ("aiohttp", "slow answer", "warning")


def test_disabled_levels_ask_nothing_of_their_values(root: logging.Logger) -> None:
    class Costly:
        def __str__(self) -> str:
            raise AssertionError("nobody wanted to know")

    stream = json_logs("warning")
    log = Logger("shop")

    log.info("quiet", value=Costly())
    log.debug("quieter", value=Costly())

    assert stream.getvalue() == ""
    assert not log.enabled("info")
    assert log.enabled("error")


def test_an_error_of_our_own_is_one_sentence_and_an_unexpected_one_has_its_stack(root: logging.Logger) -> None:
    stream = json_logs()
    log = Logger("shop")
    try:
        raise NotFound("no such\nthing", code=404)
    except NotFound as error:
        log.error("failed", error=error)
    try:
        _ = 1 // 0
    except ZeroDivisionError:
        log.exception("crashed")
    log.error("told", error="in words")

    ours, unexpected, told = lines(stream)
    assert ours["error"] == "NotFound: no such thing"
    assert "stacktrace" not in ours
    assert unexpected["error"].startswith("ZeroDivisionError")
    assert "test_logs.py" in unexpected["stacktrace"]
    assert told["error"] == "in words"


async def test_a_stack_begins_where_the_users_code_was_called(root: logging.Logger) -> None:
    def mistaken() -> None:
        raise KeyError("size")

    stream = json_logs()
    try:
        # By way of our own code and the standard library's, as a reconciler is called that is no coroutine.
        await within(asyncio.to_thread(mistaken), 60, clock=SystemClock())
    except KeyError as error:
        shown = error.with_traceback(error.__traceback__.tb_next if error.__traceback__ else None)
        Logger("shop").error("crashed", error=shown)

    (told,) = lines(stream)
    frames = [line for line in told["stacktrace"].splitlines() if line.startswith("  File ")]
    assert len(frames) == 1
    assert "in mistaken" in frames[0]


def test_debug_adds_the_stack_to_our_own_errors(root: logging.Logger) -> None:
    stream = json_logs("debug")
    try:
        raise NotFound("gone", code=404)
    except NotFound as error:
        Logger("shop").error("failed", error=error)

    assert "Traceback" in lines(stream)[0]["stacktrace"]


def test_no_content_of_an_object_and_no_secret_is_shown() -> None:
    secret = Secret.named("db", "shop", data={"password": b"hunter2"})

    assert plain(secret) == "Secret shop/db"
    assert plain(b"hunter2") == "<7 bytes>"
    assert plain(secret.metadata) == "<ObjectMeta>"
    assert plain({"token": "hunter2", "user": "me"}) == {"token": "***", "user": "me"}
    record = logging.makeLogRecord(
        {"msg": "x", "pairs": {"Authorization": "Bearer hunter2", "obj": secret}, "name": "shop"}
    )
    for formatter in (JsonLines(verbose=True), ReadableText(verbose=True, colour=True)):
        assert "hunter2" not in formatter.format(record)


def test_text_for_people_is_one_line_that_values_cannot_break() -> None:
    record = logging.makeLogRecord(
        {
            "msg": "reconciled",
            "levelno": logging.INFO,
            "levelname": "INFO",
            "name": "kubewright.x",
            "pairs": {"key": "a/b", "note": "two words", "evil": "x\n12:00 error forged\x1b[31m", "took": 0.12345678},
        }
    )

    text = ReadableText().format(record)

    assert text.endswith(
        'info    reconciled key=a/b note="two words" evil="x\\n12:00 error forged\\u001b[31m" took=0.123457'
    )
    assert "\n" not in text
    assert "\x1b" not in text


def test_auto_is_text_in_colour_on_a_terminal_and_json_elsewhere(
    root: logging.Logger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    terminal, pipe = Terminal(), io.StringIO()

    configure(stream=terminal)
    Logger("kubewright").info("hello", a=1)
    configure(stream=pipe)
    Logger("kubewright").info("hello", a=1)

    assert "\x1b[32m" in terminal.getvalue()
    assert len(terminal.getvalue().splitlines()) == 1
    assert lines(pipe)[0]["a"] == 1

    monkeypatch.setenv("NO_COLOR", "1")
    plain_terminal = Terminal()
    configure(stream=plain_terminal)
    Logger("kubewright").info("hello")
    assert "\x1b" not in plain_terminal.getvalue()


def test_a_pair_cannot_hide_what_every_line_has(root: logging.Logger) -> None:
    stream = json_logs()

    Logger("shop").info("hello", level="forged", msg="forged")

    assert lines(stream)[0] | {"ts": ""} == {
        "ts": "",
        "level": "info",
        "logger": "shop",
        "msg": "hello",
        "level_": "forged",
        "msg_": "forged",
    }


def test_the_record_names_the_line_that_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        Logger("shop").info("here")

    assert caplog.records[0].funcName == "test_the_record_names_the_line_that_logged"


@pytest.mark.parametrize("options", [{"level": "loud"}, {"format": "xml"}])
def test_unknown_settings_are_refused(root: logging.Logger, options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="unknown; use"):
        configure(**options)
