"""The command lines of etcd, kube-apiserver and kube-controller-manager.

Pure functions from paths and ports to argument lists; `real` runs the commands. A flag of the caller replaces the
default of the same name, and an empty value drops it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import final

from kubewright.cluster.pki.files import Pki

__all__ = ("AUDIT_POLICY", "Ports", "apiserver_command", "controller_manager_command", "etcd_command")

# One line per finished request, without bodies: enough to count and to see who did what.
AUDIT_POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
"""


@final
@dataclass(frozen=True, slots=True)
class Ports:
    """Where the components listen on 127.0.0.1."""

    etcd: int
    etcd_peer: int
    apiserver: int
    controller_manager: int


def etcd_command(binary: Path, *, ports: Ports, pki: Pki, data: Path, durable: bool) -> list[str]:
    """etcd with one member, which answers who has a certificate of its own CA.

    With `durable` it syncs each write to disk; a temporary cluster need not.
    """
    client, peer = f"https://127.0.0.1:{ports.etcd}", f"https://127.0.0.1:{ports.etcd_peer}"
    certificate, key, ca = pki.certificate("etcd-server"), pki.key("etcd-server"), pki.certificate("etcd-ca")
    flags = {
        "name": "default",
        "data-dir": str(data),
        "listen-client-urls": client,
        "advertise-client-urls": client,
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "initial-cluster": f"default={peer}",
        "cert-file": certificate,
        "key-file": key,
        "trusted-ca-file": ca,
        "client-cert-auth": "true",
        # etcd's JSON gateway is a client of its own server.
        "client-cert-file": pki.certificate("etcd-client"),
        "client-key-file": pki.key("etcd-client"),
        "peer-cert-file": certificate,
        "peer-key-file": key,
        "peer-trusted-ca-file": ca,
        "peer-client-cert-auth": "true",
        "unsafe-no-fsync": "false" if durable else "true",
        # A single member elects itself: the shortest election timeout saves half a second of start-up.
        "heartbeat-interval": "20",
        "election-timeout": "100",
        "log-level": "warn",
    }
    return _command(binary, flags, {})


def apiserver_command(
    binary: Path,
    *,
    ports: Ports,
    pki: Pki,
    audit: tuple[Path, Path] | None,
    runtime_config: Mapping[str, str],
    simulated_nodes: bool,
    extra: Mapping[str, str],
) -> list[str]:
    """kube-apiserver as most clusters run it: Node and RBAC, aggregation; `audit` is a policy file and a log."""
    flags = {
        "bind-address": "127.0.0.1",
        "advertise-address": "127.0.0.1",
        "secure-port": str(ports.apiserver),
        "etcd-servers": f"https://127.0.0.1:{ports.etcd}",
        "etcd-cafile": pki.certificate("etcd-ca"),
        "etcd-certfile": pki.certificate("etcd-client"),
        "etcd-keyfile": pki.key("etcd-client"),
        "tls-cert-file": pki.certificate("server"),
        "tls-private-key-file": pki.key("server"),
        "client-ca-file": pki.certificate("ca"),
        "authorization-mode": _authorization_mode(runtime_config, extra),
        "enable-admission-plugins": "NodeRestriction",
        "allow-privileged": "true",
        "service-cluster-ip-range": "10.0.0.0/16",
        "service-account-issuer": "https://kubernetes.default.svc.cluster.local",
        "service-account-key-file": pki.certificate("service-account"),
        "service-account-signing-key-file": pki.key("service-account"),
        **_aggregation(pki),
        "kubelet-client-certificate": pki.certificate("apiserver-kubelet-client"),
        "kubelet-client-key": pki.key("apiserver-kubelet-client"),
        # Validation refuses a loopback address in endpoints: the Service `kubernetes` gets none.
        "endpoint-reconciler-type": "none",
        "profiling": "false",
        # Without it a stopping server waits a minute for its watchers to disconnect.
        "shutdown-watch-termination-grace-period": "100ms",
    }
    if simulated_nodes:
        # Their kubelet has a certificate of this CA. A real kubelet usually signs its own, which is then not verified.
        flags["kubelet-certificate-authority"] = pki.certificate("ca")
    if audit is not None:
        flags |= {"audit-policy-file": str(audit[0]), "audit-log-path": str(audit[1])}
    if runtime_config:
        flags["runtime-config"] = ",".join(f"{name}={value}" for name, value in runtime_config.items())
    return _command(binary, flags, extra)


def _authorization_mode(runtime_config: Mapping[str, str], extra: Mapping[str, str]) -> str:
    """Node and RBAC; RBAC alone without ResourceSlices, which the node authorizer would wait for forever."""
    served = [f"{name}={value}" for name, value in runtime_config.items()]
    served += [part for name, value in extra.items() if name.endswith("runtime-config") for part in value.split(",")]
    return "RBAC" if "resource.k8s.io/v1=false" in served else "Node,RBAC"


def _aggregation(pki: Pki) -> dict[str, str]:
    """The request-header flags: how the API server authenticates users to aggregated API servers."""
    return {
        "requestheader-client-ca-file": pki.certificate("front-proxy-ca"),
        "requestheader-allowed-names": "front-proxy-client",
        "requestheader-username-headers": "X-Remote-User",
        "requestheader-group-headers": "X-Remote-Group",
        "requestheader-extra-headers-prefix": "X-Remote-Extra-",
        "proxy-client-cert-file": pki.certificate("front-proxy-client"),
        "proxy-client-key-file": pki.key("front-proxy-client"),
    }


def controller_manager_command(
    binary: Path, *, ports: Ports, pki: Pki, kubeconfig: Path, extra: Mapping[str, str]
) -> list[str]:
    """kube-controller-manager with all default controllers, each under its own service account."""
    flags = {
        "kubeconfig": str(kubeconfig),
        "authentication-kubeconfig": str(kubeconfig),
        "authorization-kubeconfig": str(kubeconfig),
        "bind-address": "127.0.0.1",
        "secure-port": str(ports.controller_manager),
        "tls-cert-file": pki.certificate("server"),
        "tls-private-key-file": pki.key("server"),
        "client-ca-file": pki.certificate("ca"),
        "root-ca-file": pki.certificate("ca"),
        "cluster-signing-cert-file": pki.certificate("ca"),
        "cluster-signing-key-file": pki.key("ca"),
        "requestheader-client-ca-file": pki.certificate("front-proxy-ca"),
        "service-account-private-key-file": pki.key("service-account"),
        "use-service-account-credentials": "true",
        "leader-elect": "false",
        # The default is a system folder, which the controller manager would create.
        "flex-volume-plugin-dir": str(kubeconfig.parent / "flexvolume"),
        # The default client-side limit of 20 requests a second would only slow tests down.
        "kube-api-qps": "1000",
        "kube-api-burst": "2000",
        "profiling": "false",
    }
    return _command(binary, flags, extra)


def _command(binary: Path, flags: Mapping[str, str], extra: Mapping[str, str]) -> list[str]:
    overrides = {name.removeprefix("--"): value for name, value in extra.items()}
    return [str(binary), *(f"--{name}={value}" for name, value in {**flags, **overrides}.items() if value != "")]
