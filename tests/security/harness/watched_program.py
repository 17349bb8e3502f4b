"""What the programs of watched processes share: their options, their limits, and that they end with the harness."""

from __future__ import annotations

import argparse
import faulthandler
import gc
import json
import os
import resource
import signal
import sys
import threading
from pathlib import Path
from typing import Any, Final

from tests.security.harness.heartbeat import Heartbeat

__all__ = ("report_ready", "watched_options")

_CPU_SECONDS: Final = 3600


def watched_options(*flags: str) -> argparse.Namespace:
    """The options that `WatchedProcess` gives, and these flags; from here on the limits hold."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--heartbeat", type=Path, required=True)
    parser.add_argument("--memory", type=int, required=True, help="bytes of address space")
    for flag in flags:
        parser.add_argument(flag, action="store_true")
    options = parser.parse_args()
    faulthandler.register(signal.SIGUSR1)  # where it is now, to the log: the harness asks when the loop is held
    resource.setrlimit(resource.RLIMIT_AS, (options.memory, options.memory))
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_SECONDS, _CPU_SECONDS))
    threading.Thread(target=_end_with_the_harness, daemon=True).start()
    return options


def report_ready(options: argparse.Namespace, ready: dict[str, Any]) -> None:
    """Let the heart beat and tell the harness; called on the loop when everything is served."""
    gc.collect()
    Heartbeat(options.heartbeat).start()
    print(json.dumps(ready))
    sys.stdout.flush()


def _end_with_the_harness() -> None:
    sys.stdin.read()
    os._exit(1)
