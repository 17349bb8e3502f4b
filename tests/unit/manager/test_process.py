"""run(): declarations, a manager or a coroutine as the whole of a process."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kubewright import run
from kubewright.errors import ConfigError

HEAD = """
import asyncio, os, signal
from kubewright import Config, Manager, ManagerOptions, run

async def end() -> None:
    print(type(asyncio.get_running_loop()).__module__.partition(".")[0])
    os.kill(os.getpid(), signal.SIGTERM)

config = Config(server="https://127.0.0.1:9")
options = ManagerOptions(health_address="0", metrics_address="0", block_limit=0.0)
"""


def output_of(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", HEAD + code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    "code",
    [
        "run(end, options=options, config=config)",
        "run(Manager(end, options=options, config=config))",
        "async def main():\n    await Manager(end, options=options, config=config).run()\nrun(main())",
    ],
    ids=["runnables", "manager", "coroutine"],
)
def test_a_process_runs_on_the_fastest_loop_until_a_signal(code: str) -> None:
    assert output_of(code) == "uvloop"


def test_the_result_of_a_coroutine_is_returned() -> None:
    async def answer() -> int:
        return 42

    assert run(answer()) == 42


def test_options_for_a_manager_that_is_not_made_here_are_refused() -> None:
    async def answer() -> int:
        return 42

    with pytest.raises(ConfigError, match="leave them out"):
        run(answer(), namespaces=["shop"])  # type: ignore[call-overload]
