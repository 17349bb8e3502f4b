"""The operator that a Deployment asks for, as a process on this machine: no kubelet here runs containers.

It gets the environment of its container, the file that its arguments name, and the token of its account, so it has the
rights and the options that it would have in its pod. Only its ports are others, and the Service in front of it leads to
loopback.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kubewright import Client
from kubewright._base import yaml
from kubewright.cluster.processes.ports import free_ports
from kubewright.k8s.apps.v1 import Deployment
from kubewright.k8s.core.v1 import ConfigMap

__all__ = ("Ports", "at_work", "overlay_for", "scraped", "token_of")


def free_port() -> int:
    """One that nobody gets by chance before it is listened on, which is much later."""
    return free_ports(1)[0]


@dataclass(frozen=True)
class Ports:
    """Where the process listens."""

    webhooks: int = field(default_factory=free_port)
    metrics: int = field(default_factory=free_port)


def overlay_for(project: Path, ports: Ports) -> str:
    """An overlay over `config/default` with which an API server finds webhooks on this machine."""
    name = f"local-{ports.webhooks}"
    folder = project / "config" / name
    folder.mkdir()
    at = "clientConfig/service/port"
    places = {
        "MutatingWebhookConfiguration": f"/webhooks/0/{at}",
        "ValidatingWebhookConfiguration": f"/webhooks/0/{at}",
        "CustomResourceDefinition": f"/spec/conversion/webhook/{at}",
    }
    here = {"type": "ExternalName", "externalName": "localhost"}
    patches = [_patch("Service", "/spec", here, name=".*-webhook-service")]
    patches += [_patch(kind, path, ports.webhooks) for kind, path in places.items()]
    (folder / "kustomization.yaml").write_text(yaml.dump({"resources": ["../default"], "patches": patches}))
    return f"config/{name}"


def _patch(kind: str, path: str, value: object, **target: str) -> dict[str, Any]:
    return {"target": {"kind": kind, **target}, "patch": yaml.dump([{"op": "replace", "path": path, "value": value}])}


async def token_of(client: Client, namespace: str, account: str) -> str:
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
    body = json.dumps({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}).encode()
    token: str = json.loads((await client.request("POST", path, body=body)).body)["status"]["token"]
    return token


@asynccontextmanager
async def at_work(
    client: Client, kubeconfig: Path, project: Path, deployment: Deployment, ports: Ports
) -> AsyncIterator[None]:
    """From when the operator has started until it is asked to stop; it must end well."""
    environment = await _environment(client, kubeconfig, project, deployment, ports)
    package, arguments = project.name.replace("-", "_"), await _arguments(client, project, deployment)
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", package, *arguments, cwd=project, env=environment, stderr=asyncio.subprocess.PIPE
    )
    assert child.stderr is not None
    told = b""
    async for line in child.stderr:
        told += line
        if b'"started"' in line:
            break
    assert b'"started"' in told, told.decode()
    rest = asyncio.create_task(child.stderr.read())  # so that it never waits for us to read
    try:
        yield
    finally:
        child.send_signal(signal.SIGTERM)
        told += await rest
        code = await child.wait()
    assert code == 0, told.decode()
    assert b"forbidden" not in told, told.decode()


async def _arguments(client: Client, project: Path, deployment: Deployment) -> list[str]:
    """Those of the container, with the mounted files where they are on this machine."""
    pod = deployment.spec.template.spec
    assert pod is not None
    (container,) = pod.containers
    named = {volume.name: volume.config_map.name for volume in pod.volumes or () if volume.config_map is not None}
    arguments = list(container.args or ())
    for mount in container.volume_mounts or ():
        files = await client.get(ConfigMap, named[mount.name] or "", namespace=deployment.metadata.namespace)
        for name, text in (files.data or {}).items():
            (project / f"{mount.name}-{name}").write_text(text)
            arguments = [word.replace(f"{mount.mount_path}/{name}", f"{mount.name}-{name}") for word in arguments]
    return arguments


async def _environment(
    client: Client, kubeconfig: Path, project: Path, deployment: Deployment, ports: Ports
) -> dict[str, str]:
    namespace, pod = deployment.metadata.namespace or "", deployment.spec.template.spec
    assert pod is not None
    (container,) = pod.containers
    given = {item.name: item.value or namespace for item in container.env or ()}  # all but one are plain values
    own = project / f"kubeconfig-{ports.webhooks}"
    _write_kubeconfig(own, kubeconfig, await token_of(client, namespace, pod.service_account_name or ""))
    return {
        **os.environ,
        **given,
        "KUBECONFIG": str(own),
        "KUBEWRIGHT_LOG_FORMAT": "json",
        "KUBEWRIGHT_HEALTH_ADDRESS": "0",
        "KUBEWRIGHT_METRICS_ADDRESS": f"127.0.0.1:{ports.metrics}",
        "KUBEWRIGHT_WEBHOOK_HOST": "127.0.0.1",
        "KUBEWRIGHT_WEBHOOK_PORT": str(ports.webhooks),
    }


def _write_kubeconfig(file: Path, like: Path, token: str) -> None:
    tree = yaml.load(like.read_text())
    tree["users"][0]["user"] = {"token": token}
    file.write_text(yaml.dump(tree))


async def scraped(ports: Ports, token: str = "") -> tuple[int, str]:
    """The metrics as Prometheus gets them: over TLS, with a token or without."""
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    reader, writer = await asyncio.open_connection("127.0.0.1", ports.metrics, ssl=trusting)
    bearer = f"Authorization: Bearer {token}\r\n" if token else ""
    writer.write(f"GET /metrics HTTP/1.1\r\nHost: metrics\r\n{bearer}Connection: close\r\n\r\n".encode())
    answer = (await reader.read()).decode()
    writer.close()
    head, _, body = answer.partition("\r\n\r\n")
    return int(head.split()[1]), body
