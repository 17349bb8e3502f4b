"""The simulated program of an image and a command."""

from __future__ import annotations

import math

import pytest

from kubewright.cluster.kubelet.pods.programs import Program, simulated_program


def run(image: str, *argv: str, short_lived: bool = False, env: dict[str, str] | None = None) -> Program:
    return simulated_program(image, argv, env=env or {}, short_lived=short_lived, short_delay=0.01)


@pytest.mark.parametrize(
    ("argv", "seconds", "code"),
    [
        (("sleep", "30"), 30.0, 0),
        (("/bin/sleep", "1m"), 60.0, 0),
        (("sleep", "infinity"), math.inf, 0),
        (("true",), 0.01, 0),
        (("/bin/false",), 0.01, 1),
        (("sh", "-c", "exit 3"), 0.01, 3),
        (("sh", "-ec", "sleep 2; exit 1"), 2.0, 1),
        (("bash", "-c", "sleep 1 && sleep 2 && true"), 3.0, 0),
        (("sh", "-c", "while true; do sleep 1; done"), math.inf, 0),
        (("tail", "-f", "/dev/null"), math.inf, 0),
        (("sh", "-c", "touch /tmp/ready\nsleep 5"), 5.0, 0),
        (("nginx", "-g", "daemon off;"), math.inf, 0),
        (("sh", "-c", "echo start; exec python app.py"), math.inf, 0),
        (("sh", "-c", "echo 'not closed"), 0.01, 2),
        (("sh", "-c", "PORT=80 HOST=a server --port=80"), math.inf, 0),
        (("sh", "-c", "A=1 sleep 3; B=2"), 3.0, 0),
        (("sh", "-c", "A=1"), 0.01, 0),
        (("env", "A=1", "B=2", "sleep", "3"), 3.0, 0),
        (("env", "A=1", "server"), math.inf, 0),
        (("env",), 0.01, 0),
        (("./server=1",), math.inf, 0),
    ],
)
def test_a_command_has_a_duration_and_an_exit_code(argv: tuple[str, ...], seconds: float, code: int) -> None:
    program = run("busybox", *argv)

    assert (program.seconds, program.exit_code) == (seconds, code)


@pytest.mark.parametrize(
    ("image", "args", "seconds"),
    [
        ("quay.io/prometheus/prometheus", ("--web.listen-address=:9100",), math.inf),
        ("example.io/server", ("a=b", "c"), math.inf),
        ("example.io/server", ("sync", "--all"), math.inf),
        ("example.io/server", ("sleep", "3"), 3.0),
        ("example.io/server", ("sh", "-c", "date; sleep 3"), 3.0),
        ("busybox", ("date",), 0.01),
    ],
)
def test_arguments_alone_are_those_of_the_images_own_program(image: str, args: tuple[str, ...], seconds: float) -> None:
    assert simulated_program(image, args, env={}, has_command=False, short_delay=0.01).seconds == seconds


def test_echo_prints_its_words_with_plain_variables() -> None:
    program = run(
        "busybox", "sh", "-c", 'echo "hello $(WHO)"; echo $WHO and ${OTHER} > /dev/null', env={"WHO": "world"}
    )

    assert program.output == ("hello world", "world and ${OTHER}")


@pytest.mark.parametrize("image", ["crasher", "example.io/team/always-fails:v1", "will-fail@sha256:" + "a" * 64])
def test_an_image_named_crash_or_fail_crashes(image: str) -> None:
    assert run(image).exit_code == 1


def test_fail_in_a_tag_or_a_registry_means_nothing() -> None:
    assert run("failing.example.io/web:no-fail").seconds == math.inf


def test_without_a_command_a_shell_image_ends_and_a_server_runs() -> None:
    assert run("docker.io/library/busybox:1.36").seconds == 0.01
    assert run("hello-world").output == ("Hello from Docker!",)
    assert run("nginx").seconds == math.inf


def test_pause_runs_for_ever_even_where_programs_are_short_lived() -> None:
    assert run("registry.k8s.io/pause:3.10", short_lived=True).seconds == math.inf


def test_an_unknown_short_lived_program_succeeds() -> None:
    program = run("migrations", "migrate", "--all", short_lived=True)

    assert (program.seconds, program.exit_code) == (0.01, 0)


def test_sleep_ignores_sigterm_and_a_server_handles_it() -> None:
    assert not run("busybox", "sleep", "30").handles_sigterm
    assert run("nginx").handles_sigterm
