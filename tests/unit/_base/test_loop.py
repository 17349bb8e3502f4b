"""`run` picks the loop; each case in a process of its own, because loops cannot be nested."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAD = "import asyncio, sys\nfrom kubewright._base.loop import run\n"
LOOP_NAME = "async def main(): return type(asyncio.get_running_loop()).__module__.partition('.')[0]\n"


def output_of(script: str) -> str:
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_uvloop_is_used_when_it_is_installed() -> None:
    pytest.importorskip("uvloop")

    assert output_of(HEAD + LOOP_NAME + "print(run(main()))") == "uvloop"


def test_asyncio_is_used_without_uvloop_and_holds_small_tls_buffers() -> None:
    script = (
        HEAD
        + LOOP_NAME
        + "sys.modules['uvloop'] = None\nprint(run(main()))\n"
        + "from asyncio.sslproto import SSLProtocol\nprint(SSLProtocol.max_size)"
    )

    assert output_of(script).split() == ["asyncio", "16384"]


def test_uvloop_leaves_asyncio_as_it_is() -> None:
    pytest.importorskip("uvloop")
    script = HEAD + LOOP_NAME + "run(main())\nfrom asyncio.sslproto import SSLProtocol\nprint(SSLProtocol.max_size)"

    assert output_of(script) == str(256 * 1024)


def test_importing_does_nothing() -> None:
    script = HEAD + "print('uvloop' in sys.modules, 'ssl' in sys.modules and 'aiohttp' in sys.modules)"

    assert output_of(script) == "False False"


def test_the_result_and_the_error_of_the_coroutine_come_out() -> None:
    script = (
        HEAD
        + "async def good(): return 42\nasync def bad(): raise ValueError('no')\n"
        + "print(run(good()))\ntry: run(bad())\nexcept ValueError as error: print(error)"
    )

    assert output_of(script).split() == ["42", "no"]
