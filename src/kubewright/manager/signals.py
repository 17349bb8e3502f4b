"""SIGINT and SIGTERM: the first asks every manager of the process to stop, the second ends it.

Signals belong to the process, so all managers of one process share the handlers. `Manager.run` calls this; in a thread
other than the main one, where signals do not arrive, it does nothing.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, final

from kubewright._base.logs import Logger

__all__ = ("stop_on_signal",)

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)

_log = Logger("kubewright.manager")


@final
class _SignalHandlers:
    """The managers to stop, and whether a signal has arrived."""

    def __init__(self) -> None:
        self._stops: list[Callable[[], None]] = []
        self._received = False

    def add(self, loop: asyncio.AbstractEventLoop, stop: Callable[[], None]) -> None:
        if not self._stops:
            self._received = False
            for number in _SIGNALS:
                loop.add_signal_handler(number, self._on_signal, number)
        self._stops.append(stop)

    def remove(self, loop: asyncio.AbstractEventLoop, stop: Callable[[], None]) -> None:
        self._stops.remove(stop)
        if not self._stops:
            for number in _SIGNALS:
                loop.remove_signal_handler(number)

    def _on_signal(self, number: signal.Signals) -> None:
        if self._received:
            _log.error("a second signal; ending at once", signal=number.name)
            logging.shutdown()
            os._exit(1)
        self._received = True
        _log.info("stopping; a second signal ends the process at once", signal=number.name)
        for stop in list(self._stops):
            stop()


_HANDLERS = _SignalHandlers()


@contextmanager
def stop_on_signal(stop: Callable[[], None]) -> Iterator[None]:
    """While inside, the first SIGINT or SIGTERM calls `stop` and a second one exits with code 1."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    _HANDLERS.add(loop, stop)
    try:
        yield
    finally:
        _HANDLERS.remove(loop, stop)
