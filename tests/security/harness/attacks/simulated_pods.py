"""What a simulated pod is told to do: its environment, its shell, its annotations."""

from __future__ import annotations

from typing import Any

from tests.security.harness.attack import Target, attack, many
from tests.security.harness.exchange import Answer

_PODS = "/api/v1/namespaces/edited/pods"
_NUMBER = iter(range(1, 1_000_000))


async def _pod(on: Target, container: dict[str, Any], **meta: Any) -> Answer:
    name = f"sim-{next(_NUMBER)}"
    container = {"name": "c", "image": "busybox", **container}
    body = {"metadata": {"name": name, **meta}, "spec": {"containers": [container], "restartPolicy": "Never"}}
    answer = await on.post(_PODS, body)
    await on.get(f"{_PODS}/{name}/log")
    return answer


@attack(by="editor", spoils=True)
async def variables_that_double(on: Target) -> Answer:
    """Each variable is the one before, twice."""
    env = [{"name": "V0", "value": "x"}]
    env += [{"name": f"V{n}", "value": f"$(V{n - 1})$(V{n - 1})"} for n in range(1, 40)]
    return await _pod(on, {"env": env, "command": ["echo", "$(V39)"]})


@attack(by="editor", spoils=True)
async def a_long_variable_many_times(on: Target) -> Answer:
    """A variable of a hundred kilobytes, meant a hundred thousand times."""
    env = [{"name": "V0", "value": "x" * 100_000}, {"name": "V1", "value": "$(V0)" * 100_000}]
    return await _pod(on, {"env": env, "command": ["echo", "$(V1)"]})


@attack(by="editor", spoils=True)
async def arguments(on: Target) -> Answer:
    """A long variable in a hundred thousand arguments."""
    return await _pod(on, {"env": [{"name": "V", "value": "x" * 100_000}], "command": ["echo", *["$(V)"] * 50_000]})


@attack(by="editor", spoils=True)
async def a_shell_that_doubles(on: Target) -> Answer:
    """A script in which a variable doubles forty times."""
    return await _pod(on, {"command": ["sh", "-c", "x=xxxxxxxx; " + "x=$x$x; " * 40 + "echo $x"]})


@attack(by="editor", spoils=True)
async def a_shell_loop(on: Target) -> Answer:
    """A script that loops without end, and prints."""
    return await _pod(on, {"command": ["sh", "-c", "while true; do echo x; done"]})


@attack(by="editor", spoils=True)
async def a_counted_loop(on: Target) -> Answer:
    """A script that counts to a billion."""
    return await _pod(on, {"command": ["sh", "-c", "for i in $(seq 1 1000000000); do echo $i; done"]})


@attack(by="editor", spoils=True)
async def nested_scripts(on: Target) -> Answer:
    """Shells in shells, subshells in subshells."""
    return await _pod(
        on,
        {
            "command": [
                "sh",
                "-c",
                "(" * 100_000 + "true" + ")" * 100_000 + "; echo " + "$(echo " * 50_000 + ")" * 50_000,
            ]
        },
    )


@attack(by="editor", spoils=True)
async def a_long_script(on: Target) -> Answer:
    """A script of a hundred thousand commands."""
    return await _pod(on, {"command": ["sh", "-c", "echo a;" * 150_000]})


@attack(by="editor", spoils=True)
async def quotes(on: Target) -> Answer:
    """A script of quotes and backslashes."""
    return await _pod(on, {"command": ["sh", "-c", "echo " + "'a'\"b\"\\c" * 150_000]})


@attack(by="editor", spoils=True)
async def arithmetic(on: Target) -> Answer:
    """A script with a power tower."""
    return await _pod(
        on, {"command": ["sh", "-c", "echo $((9**9**9**9)) $((" + "(" * 10_000 + "1" + ")" * 10_000 + "))"]}
    )


@attack(by="editor", spoils=True)
async def patterns(on: Target) -> Answer:
    """A script with globs and a case that match badly."""
    return await _pod(
        on, {"command": ["sh", "-c", "case " + "a" * 40 + " in " + "*a" * 30 + "b) echo;; esac; echo " + "/*" * 5000]}
    )


@attack(by="editor", spoils=True)
async def a_file_that_grows(on: Target) -> Answer:
    """A script that appends a file to itself."""
    return await _pod(
        on,
        {
            "command": [
                "sh",
                "-c",
                "echo xxxxxxxxxxxxxxxxxxxxxxxx > /tmp/a; "
                + "cat /tmp/a /tmp/a > /tmp/b; cat /tmp/b /tmp/b > /tmp/a; " * 20,
            ]
        },
    )


@attack(by="editor", spoils=True)
async def repeated_output(on: Target) -> Answer:
    """A script that prints a long text ten thousand times."""
    return await _pod(on, {"command": ["sh", "-c", "x=" + "x" * 100_000 + "; " + "echo $x; " * 50_000]})


@attack(by="editor", spoils=True)
async def odd_annotations(on: Target) -> Answer:
    """Annotations of the simulation with values that are no numbers, or too large."""
    prefix = "simulation.kubewright.io/"
    answer = Answer(0)
    for value in ("nan", "inf", "-1", "1e400", "x" * 100_000, "9" * 5000, "1h" * 10_000, ""):
        names = ("start-delay", "ready-delay", "run-for", "exit-code", "termination-delay", "ready")
        answer = await _pod(on, {}, annotations={prefix + name: value for name in names})
    return answer


@attack(by="editor", spoils=True)
async def logs_in_an_annotation(on: Target) -> Answer:
    """Logs of two hundred and fifty thousand lines, asked for in each form."""
    return await _pod(on, {}, annotations={"simulation.kubewright.io/logs": "\n" * 250_000})


@attack(by="editor", spoils=True)
async def many_containers(on: Target) -> Answer:
    """A pod of ten thousand containers."""
    containers = [{"name": f"c{n}", "image": "busybox"} for n in range(many(34, values=3))]
    return await on.post(_PODS, {"metadata": {"name": "many"}, "spec": {"containers": containers}})


@attack(by="editor", spoils=True)
async def many_env_from(on: Target) -> Answer:
    """A pod whose environment comes from one large ConfigMap, ten thousand times."""
    await on.post(
        "/api/v1/namespaces/edited/configmaps",
        {"metadata": {"name": "env"}, "data": {f"V{n}": "" for n in range(50_000)}},
    )
    return await _pod(on, {"envFrom": [{"configMapRef": {"name": "env"}, "prefix": f"P{n}"} for n in range(5_000)]})


@attack(by="editor", spoils=True)
async def many_volumes_of_a_map(on: Target) -> Answer:
    """A pod that mounts one large ConfigMap five thousand times."""
    await on.post("/api/v1/namespaces/edited/configmaps", {"metadata": {"name": "files"}, "data": {"f": "x" * 900_000}})
    volumes = [{"name": f"v{n}", "configMap": {"name": "files"}} for n in range(2_000)]
    mounts = [{"name": f"v{n}", "mountPath": f"/m{n}"} for n in range(2_000)]
    body = {
        "metadata": {"name": "mounts"},
        "spec": {
            "volumes": volumes,
            "containers": [
                {"name": "c", "image": "busybox", "volumeMounts": mounts, "command": ["sh", "-c", "cat /m*/f"]}
            ],
        },
    }
    return await on.post(_PODS, body)
