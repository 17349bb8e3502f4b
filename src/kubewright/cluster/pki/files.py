"""The certificate files of one control plane, laid out in folders.

`_base.certificates` makes the bytes; this module names and places the files, and `planes.flags` points the components
at them. The CAs and the service-account key are in the data folder, so that tokens and kubeconfigs stay valid over
restarts. Serving and client certificates are new in each run. Called by `planes.plane_folder`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self, final

from kubewright._base.certificates import Authority, KeyPair, service_account_keys
from kubewright._base.files import write_private

__all__ = ("KUBELET_CLIENT", "Pki")

KUBELET_CLIENT = "kube-apiserver-kubelet-client"
"""The user that the API server is to kubelets: the name of kubeadm, but in no group of administrators."""

_HOSTS = (
    "127.0.0.1",
    "::1",
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "10.0.0.1",  # the first address of the service range, which is the `kubernetes` Service's
)


@final
@dataclass(frozen=True, slots=True)
class Pki:
    """Paths of certificates (`.crt`) and keys (`.key`), and the CA to sign more."""

    persistent: Path
    """The folder of the CAs and the service-account key."""
    temporary: Path
    """The folder of the certificates that the CAs sign for this run."""
    authority: Authority

    @classmethod
    def prepare(cls, *, persistent: Path, temporary: Path) -> Self:
        """Write every file the components need; reuse the files that `persistent` already has."""
        authority = Authority(_load_or_create(persistent, "ca", lambda: Authority.create("kubewright-ca").pair))
        proxies = Authority(
            _load_or_create(persistent, "front-proxy-ca", lambda: Authority.create("kubewright-proxy-ca").pair)
        )
        _load_or_create(persistent, "service-account", service_account_keys)
        _write(temporary, "server", authority.server("kube-apiserver", hosts=_HOSTS))
        _write(temporary, "front-proxy-client", proxies.client("front-proxy-client"))
        _write(temporary, "apiserver-kubelet-client", authority.client(KUBELET_CLIENT))
        return cls(persistent, temporary, authority)

    def write_etcd_files(self) -> None:
        """Write what etcd and its one client, the API server, need of each other.

        The authority is one of its own: of the cluster's CA every user has a certificate. Its key is kept nowhere, so
        nobody can make another client.
        """
        authority = Authority.create("kubewright-etcd-ca")
        write_private(self.temporary / "etcd-ca.crt", authority.certificate)
        _write(self.temporary, "etcd-server", authority.server("etcd", hosts=("127.0.0.1", "localhost")))
        _write(self.temporary, "etcd-client", authority.client("kube-apiserver-etcd-client"))

    @property
    def ca(self) -> bytes:
        """The certificate that clients trust, PEM."""
        return self.authority.certificate

    def certificate(self, name: str) -> str:
        """The path of a certificate by name, as a flag takes it."""
        return str(self._folder(name) / f"{name}.crt")

    def key(self, name: str) -> str:
        """The path of a private key by name."""
        return str(self._folder(name) / f"{name}.key")

    def _folder(self, name: str) -> Path:
        return self.persistent if name in {"ca", "front-proxy-ca", "service-account"} else self.temporary


def _load_or_create(folder: Path, name: str, make: Callable[[], KeyPair]) -> KeyPair:
    """The pair of that name from the folder; create and write it if there is none."""
    certificate, key = folder / f"{name}.crt", folder / f"{name}.key"
    if certificate.is_file() and key.is_file():
        return KeyPair(certificate.read_bytes(), key.read_bytes())
    pair = make()
    _write(folder, name, pair)
    return pair


def _write(folder: Path, name: str, pair: KeyPair) -> None:
    write_private(folder / f"{name}.crt", pair.certificate)
    write_private(folder / f"{name}.key", pair.key)
