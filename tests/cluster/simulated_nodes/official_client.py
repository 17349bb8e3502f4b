"""The official Python client in a process of its own, where its open sockets are nobody's trouble.

    official_client.py KUBECONFIG NAMESPACE (command | shell | ports)

Prints what it got as JSON. Run by `test_entering`.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import kubernetes
from kubernetes.stream import portforward, stream

_SECONDS = 60


def command(api: Any, namespace: str) -> list[Any]:
    """What a script prints, and its exit code."""
    words = ["sh", "-c", "echo out; echo wrong >&2; cat; exit 7"]
    answer = _entered(api, namespace, words, stdin=False)
    answer.run_forever(timeout=_SECONDS)
    return [answer.read_stdout(), answer.read_stderr(), answer.returncode]


def shell(api: Any, namespace: str) -> list[Any]:
    """What a shell answers to two lines."""
    answer = _entered(api, namespace, ["/bin/sh"], stdin=True)
    answer.write_stdin("hostname\n")
    first = answer.readline_stdout(timeout=_SECONDS)
    answer.write_stdin("echo $POD; exit\n")
    second = answer.readline_stdout(timeout=_SECONDS)
    answer.run_forever(timeout=_SECONDS)
    return [first, second]


def ports(api: Any, namespace: str) -> list[Any]:
    """What port 80 answers, and what is wrong with port 81."""
    forwarded: Any = portforward(api.connect_get_namespaced_pod_portforward, "web", namespace, ports="80,81")
    open_port = forwarded.socket(80)
    open_port.sendall(b"GET / HTTP/1.1\r\nHost: web\r\n\r\n")
    answer = b""
    while piece := open_port.recv(4096):
        answer += piece
    return [answer.decode(), forwarded.error(81)]


def _entered(api: Any, namespace: str, words: list[str], *, stdin: bool) -> Any:
    return stream(
        api.connect_get_namespaced_pod_exec,
        "web",
        namespace,
        command=words,
        stdin=stdin,
        stdout=True,
        stderr=True,
        _preload_content=False,
    )


if __name__ == "__main__":
    load: Any = kubernetes.config.new_client_from_config
    core = kubernetes.client.CoreV1Api(load(sys.argv[1]))
    print(json.dumps({"command": command, "shell": shell, "ports": ports}[sys.argv[3]](core, sys.argv[2])))
