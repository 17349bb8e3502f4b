"""Exec plug-ins run when needed, once for all who wait, and fail with one sentence."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kubewright.client.config import credentials
from kubewright.client.config.credentials import Credentials
from kubewright.client.config.exec_plugin import ExecPlugin, ExecSpec
from kubewright.errors import ConfigError

V1 = "client.authentication.k8s.io/v1"


class HandClock:
    """Time that moves when told."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


class Program:
    """A real plug-in: it counts its runs, keeps what it was given, and prints the answer it is told to print."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.script = folder / "plugin.py"
        self.script.write_text(
            "import os, sys, pathlib\n"
            f"here = pathlib.Path({str(folder)!r})\n"
            "with (here / 'runs').open('a') as runs: runs.write('x')\n"
            "(here / 'info').write_text(os.environ['KUBERNETES_EXEC_INFO'])\n"
            "(here / 'args').write_text(' '.join(sys.argv[1:]) + ' ' + os.environ.get('EXTRA', ''))\n"
            "exec((here / 'more').read_text())\n"
            "sys.stdout.write((here / 'answer').read_text())\n"
        )
        self.do("")

    def do(self, code: str) -> None:
        (self.folder / "more").write_text(code)

    def answer(self, text: str) -> None:
        (self.folder / "answer").write_text(text)

    def give(self, *, version: str = V1, **status: Any) -> None:
        self.answer(json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": status}))

    @property
    def runs(self) -> int:
        runs = self.folder / "runs"
        return len(runs.read_text()) if runs.exists() else 0

    @property
    def info(self) -> Any:
        return json.loads((self.folder / "info").read_text())

    def spec(self, **more: Any) -> ExecSpec:
        given = {
            "command": sys.executable,
            "args": (str(self.script),),
            "api_version": V1,
            "origin": "f: users[0].user.exec",
        }
        return ExecSpec(**(given | more))


@pytest.fixture
def program(tmp_path: Path) -> Program:
    program = Program(tmp_path)
    program.give(token="t1")
    return program


async def complaint(plugin: ExecPlugin) -> str:
    with pytest.raises(ConfigError) as caught:
        await plugin.headers()
    assert "\n" not in str(caught.value)
    return str(caught.value)


async def test_the_token_is_fetched_once_and_kept(program: Program) -> None:
    plugin: Credentials = ExecPlugin(program.spec())
    assert plugin.client_certificate() is None

    assert await plugin.headers() == {"Authorization": "Bearer t1"}
    assert await plugin.headers() == {"Authorization": "Bearer t1"}
    assert program.runs == 1
    assert plugin.certificate_version == 0


async def test_many_callers_run_the_program_once(program: Program) -> None:
    plugin = ExecPlugin(program.spec())

    answers = await asyncio.gather(*(plugin.headers() for _ in range(10)))

    assert answers == [{"Authorization": "Bearer t1"}] * 10
    assert program.runs == 1


async def test_many_callers_of_a_failing_program_run_it_once_and_all_hear_why(program: Program) -> None:
    program.do("sys.exit('no')")
    plugin = ExecPlugin(program.spec())

    answers = await asyncio.gather(*(plugin.headers() for _ in range(5)), return_exceptions=True)

    assert {type(answer) for answer in answers} == {ConfigError}
    assert program.runs == 1
    await complaint(plugin)
    assert program.runs == 2


async def test_a_cancelled_caller_leaves_the_run_to_the_next(program: Program) -> None:
    fifo = program.folder / "fifo"
    os.mkfifo(fifo)
    program.do(
        "if (here / 'runs').read_text() == 'x':\n"
        "    (here / 'fifo').open('w').close()\n"
        "    sys.stdin = os.fdopen(os.pipe()[0]); sys.stdin.read()\n"
    )
    plugin = ExecPlugin(program.spec())
    first = asyncio.create_task(plugin.headers())
    second = asyncio.create_task(plugin.headers())
    # Returns once the program has opened the other end: it runs, and goes on until it is ended.
    await asyncio.to_thread(lambda: fifo.open().close())

    first.cancel()

    assert await second == {"Authorization": "Bearer t1"}
    assert first.cancelled()
    assert program.runs == 2


async def test_the_program_is_told_its_arguments_variables_and_version(program: Program) -> None:
    spec = program.spec(args=(str(program.script), "get", "token"), env={"EXTRA": "more"})

    await ExecPlugin(spec, environ={"PATH": os.environ["PATH"], "EXTRA": "overridden"}).headers()

    assert (program.folder / "args").read_text() == "get token more"
    assert program.info == {"apiVersion": V1, "kind": "ExecCredential", "spec": {"interactive": False}}


async def test_the_program_is_told_of_the_cluster_when_it_asks(program: Program) -> None:
    cluster = {"server": "https://a", "certificate-authority-data": b"CA", "config": {"audience": "x"}}

    await ExecPlugin(program.spec(cluster=cluster)).headers()

    assert program.info["spec"]["cluster"] == {
        "server": "https://a",
        "certificate-authority-data": "Q0E=",
        "config": {"audience": "x"},
    }


async def test_v1beta1_is_spoken_when_configured(program: Program) -> None:
    version = "client.authentication.k8s.io/v1beta1"
    program.give(version=version, token="t")

    assert await ExecPlugin(program.spec(api_version=version)).headers() == {"Authorization": "Bearer t"}
    assert program.info["apiVersion"] == version


async def test_the_program_runs_again_shortly_before_its_token_expires(program: Program, clock: HandClock) -> None:
    plugin = ExecPlugin(program.spec(), clock=clock)
    program.give(token="t1", expirationTimestamp="2026-01-01T01:00:00Z")
    await plugin.headers()
    program.give(token="t2", expirationTimestamp="2026-01-01T02:00:00+00:00")

    clock.seconds = 3569
    assert await plugin.headers() == {"Authorization": "Bearer t1"}
    clock.seconds = 3570
    assert await plugin.headers() == {"Authorization": "Bearer t2"}
    assert program.runs == 2


async def test_a_short_lived_token_is_used_for_nine_tenths_of_its_life(program: Program, clock: HandClock) -> None:
    plugin = ExecPlugin(program.spec(), clock=clock)
    program.give(token="t1", expirationTimestamp="2026-01-01T00:01:40Z")
    await plugin.headers()

    clock.seconds = 89
    await plugin.headers()
    assert program.runs == 1
    clock.seconds = 90
    await plugin.headers()
    assert program.runs == 2


async def test_a_token_that_is_expired_when_it_comes_does_not_start_a_program_per_request(
    program: Program, clock: HandClock
) -> None:
    plugin = ExecPlugin(program.spec(), clock=clock)
    program.give(token="t1", expirationTimestamp="2025-01-01T00:00:00Z")

    await plugin.headers()
    await plugin.headers()

    assert program.runs == 1


async def test_a_failing_renewal_does_no_harm_while_the_old_token_is_good(program: Program, clock: HandClock) -> None:
    plugin = ExecPlugin(program.spec(), clock=clock)
    program.give(token="t1", expirationTimestamp="2026-01-01T01:00:00Z")
    await plugin.headers()
    program.do("sys.exit('no')")

    clock.seconds = 3571
    assert await plugin.headers() == {"Authorization": "Bearer t1"}
    clock.seconds = 3572
    assert await plugin.headers() == {"Authorization": "Bearer t1"}
    assert program.runs == 2
    clock.seconds = 3601
    assert "failed with exit code 1: no" in await complaint(plugin)


async def test_after_a_401_the_program_runs_again_once_for_all(program: Program, clock: HandClock) -> None:
    plugin = ExecPlugin(program.spec(), clock=clock)
    rejected = await plugin.headers()
    program.give(token="t2")

    answers = await asyncio.gather(*(plugin.refresh(rejected=rejected) for _ in range(5)))
    late = await plugin.refresh(rejected=rejected)

    assert answers == [True] * 5
    assert late
    assert program.runs == 2
    assert await plugin.headers() == {"Authorization": "Bearer t2"}


async def test_after_a_401_the_same_token_again_is_not_worth_another_attempt(
    program: Program, clock: HandClock
) -> None:
    plugin = ExecPlugin(program.spec(), clock=clock)
    rejected = await plugin.headers()

    assert not await plugin.refresh(rejected=rejected)
    assert not await plugin.refresh(rejected=rejected)
    assert program.runs == 2
    clock.seconds = 5
    assert not await plugin.refresh(rejected=rejected)
    assert program.runs == 3


async def test_a_client_certificate_is_shown_and_counted_when_it_changes(program: Program, clock: HandClock) -> None:
    plugin = ExecPlugin(program.spec(), clock=clock)
    program.give(clientCertificateData="C1", clientKeyData="K1")

    assert await plugin.headers() == {}
    shown = plugin.client_certificate()
    assert shown is not None
    assert (shown.certificate, shown.key) == (b"C1", b"K1")
    assert plugin.certificate_version == 1
    program.give(clientCertificateData="C2", clientKeyData="K2", token="t")
    assert await plugin.refresh()
    assert await plugin.refresh()
    assert plugin.certificate_version == 2
    assert await plugin.headers() == {"Authorization": "Bearer t"}
    assert program.runs == 2


async def test_a_program_that_is_not_there_is_named_with_the_hint_how_to_get_it(program: Program) -> None:
    hinted = ExecPlugin(program.spec(command="no-such-plugin", install_hint="Get it\nfrom example.org."))
    plain = ExecPlugin(program.spec(command="/no/such/plugin"))

    assert await complaint(hinted) == (
        "f: users[0].user.exec: the plug-in no-such-plugin is not installed; Get it from example.org."
    )
    assert await complaint(plain) == (
        "f: users[0].user.exec: the plug-in /no/such/plugin is not installed; install it, or put it on the PATH"
    )


async def test_a_program_that_cannot_be_started_is_named(program: Program) -> None:
    plugin = ExecPlugin(program.spec(command=str(program.script)))

    assert await complaint(plugin) == (
        f"f: users[0].user.exec: the plug-in {program.script} cannot be started: Permission denied"
    )


async def test_a_program_that_fails_is_quoted(program: Program) -> None:
    program.do("sys.stderr.write('log in\\nfirst\\n'); sys.exit(3)")

    assert (await complaint(ExecPlugin(program.spec()))).endswith("failed with exit code 3: log in first")


async def test_a_program_that_leaves_something_running_behind_is_not_waited_for_longer(program: Program) -> None:
    fifo = program.folder / "fifo"
    os.mkfifo(fifo)
    # The helper holds the program's output until the other end of the fifo is opened.
    program.do("import subprocess; subprocess.Popen(['cat', str(here / 'fifo')], start_new_session=True)")

    headers = await ExecPlugin(program.spec()).headers()

    assert headers == {"Authorization": "Bearer t1"}
    await asyncio.to_thread(lambda: fifo.open("w").close())


async def test_a_machine_without_a_folder_for_secrets_is_explained(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credentials, "_MEMORY_FOLDER", program.folder / "none")
    monkeypatch.setattr(tempfile, "tempdir", str(program.folder / "none"))

    assert (await complaint(ExecPlugin(program.spec()))).endswith("no folder for temporary files")


@pytest.mark.slow
async def test_a_program_that_hangs_is_ended_with_its_children(program: Program) -> None:
    fifo = program.folder / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    program.do("import subprocess; subprocess.run(['sleep', '600'], stdout=(here / 'fifo').open('w'))")

    found = await complaint(ExecPlugin(program.spec(timeout=3)))

    assert found.endswith("did not finish within 3 s and was killed")
    assert program.runs == 1
    # Reading ends when nobody has the other end open any more: neither the program nor its child.
    os.set_blocking(reader, True)
    assert await asyncio.to_thread(os.read, reader, 1) == b""
    os.close(reader)


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ("", "printed nothing; run it by hand to see why"),
        (
            "hunter2",
            "printed no ExecCredential (JSON is malformed: invalid character (byte 0)); run it by hand to see why",
        ),
        ('{"kind":"Pod","token":"hunter2"}', "printed no ExecCredential, but kind 'Pod'; run it by hand to see why"),
        (
            {"apiVersion": "client.authentication.k8s.io/v1alpha1", "status": {"token": "hunter2"}},
            "printed client.authentication.k8s.io/v1alpha1, but exec.apiVersion is "
            "client.authentication.k8s.io/v1; set the field to the version of the plug-in",
        ),
        ({}, "gave neither a token nor a client certificate; run it by hand to see why"),
        ({"status": {"token": ""}}, "gave neither a token nor a client certificate; run it by hand to see why"),
        ({"status": {"clientKeyData": "hunter2"}}, "gave only one of client certificate and key; both are needed"),
        (
            {"status": {"token": "hunter2", "expirationTimestamp": "soon"}},
            "printed no ExecCredential (Invalid RFC3339 encoded datetime - at `$.status.expirationTimestamp`); "
            "run it by hand to see why",
        ),
    ],
)
async def test_an_answer_of_another_form_is_explained_and_not_shown(
    program: Program, answer: str | Mapping[str, Any], sentence: str
) -> None:
    text = (
        answer if isinstance(answer, str) else json.dumps({"apiVersion": V1, "kind": "ExecCredential"} | dict(answer))
    )
    program.answer(text)

    found = await complaint(ExecPlugin(program.spec()))

    assert found == f"f: users[0].user.exec: the plug-in {sys.executable} {sentence}"
    assert "hunter2" not in found


async def test_a_token_with_a_line_break_is_refused(program: Program) -> None:
    program.give(token="a\nb")

    assert "status.token of the plug-in's output is no token" in await complaint(ExecPlugin(program.spec()))


@pytest.mark.parametrize(
    ("mode", "terminal", "told"), [("Never", True, False), ("IfAvailable", True, True), ("IfAvailable", False, False)]
)
async def test_the_program_is_told_whether_a_person_can_answer(
    program: Program, mode: str, terminal: bool, told: bool
) -> None:
    await ExecPlugin(program.spec(interactive_mode=mode), terminal=lambda: terminal).headers()

    assert program.info["spec"] == {"interactive": told}


async def test_a_program_that_needs_a_person_is_not_run_without_a_terminal(program: Program) -> None:
    plugin = ExecPlugin(program.spec(interactive_mode="Always"), terminal=lambda: False)

    assert "needs a terminal (interactiveMode is Always), and there is none" in await complaint(plugin)
    assert program.runs == 0


def test_it_serves_one_event_loop_after_another(program: Program) -> None:
    plugin = ExecPlugin(program.spec())

    async def ask() -> list[Mapping[str, str]]:
        return list(await asyncio.gather(plugin.headers(), plugin.headers()))

    async def ask_again() -> bool:
        return await plugin.refresh()

    assert asyncio.run(ask()) == [{"Authorization": "Bearer t1"}] * 2
    program.give(token="t2")
    assert asyncio.run(ask_again())


async def test_no_secret_is_in_a_repr(program: Program) -> None:
    program.give(token="hunter2")
    spec = program.spec(env={"A": "hunter2"}, args=(str(program.script), "hunter2"))
    plugin = ExecPlugin(spec)
    await plugin.headers()

    assert "hunter2" not in f"{plugin!r} {spec!r}"
