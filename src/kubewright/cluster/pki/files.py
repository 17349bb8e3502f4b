"""The certificate files of one control plane, laid out in a folder.

`certificates` makes the bytes; here they get names and places, and `flags` points the components at them.
The CAs and the service-account key are kept where the data is kept: tokens and kubeconfigs made on a data
folder stay good over restarts. Serving and component certificates are made anew each time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self, final

from kubewright._base.files import write_private
from kubewright.cluster.pki.certificates import Authority, KeyPair, service_account_keys

__all__ = ("Pki",)

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

    kept: Path
    """The CAs and the service-account key."""
    fresh: Path
    """What the CAs signed for this run."""
    authority: Authority

    @classmethod
    def prepare(cls, *, kept: Path, fresh: Path) -> Self:
        """Write every file the components need; what is in `kept` already is used again."""
        authority = Authority(_kept(kept, "ca", lambda: Authority.create("kubewright-ca").pair))
        proxies = Authority(_kept(kept, "front-proxy-ca", lambda: Authority.create("kubewright-proxy-ca").pair))
        _kept(kept, "service-account", service_account_keys)
        _write(fresh, "server", authority.server("kube-apiserver", hosts=_HOSTS))
        _write(fresh, "front-proxy-client", proxies.client("front-proxy-client"))
        return cls(kept, fresh, authority)

    @property
    def ca(self) -> bytes:
        """The certificate that clients trust, PEM."""
        return self.authority.certificate

    def certificate(self, name: str) -> str:
        """The path of a certificate by name, as a flag wants it."""
        return str(self._folder(name) / f"{name}.crt")

    def key(self, name: str) -> str:
        """The path of a private key by name."""
        return str(self._folder(name) / f"{name}.key")

    def _folder(self, name: str) -> Path:
        return self.kept if name in {"ca", "front-proxy-ca", "service-account"} else self.fresh


def _kept(folder: Path, name: str, make: Callable[[], KeyPair]) -> KeyPair:
    """The pair of that name in the folder, made and written if it is not there."""
    certificate, key = folder / f"{name}.crt", folder / f"{name}.key"
    if certificate.is_file() and key.is_file():
        return KeyPair(certificate.read_bytes(), key.read_bytes())
    pair = make()
    _write(folder, name, pair)
    return pair


def _write(folder: Path, name: str, pair: KeyPair) -> None:
    write_private(folder / f"{name}.crt", pair.certificate)
    write_private(folder / f"{name}.key", pair.key)
