"""The known Kubernetes versions and the etcd version for each.

Data and a small parser, without I/O. Called by `finder`, which looks for the binaries.
"""

from __future__ import annotations

import platform
import re
import sys
from dataclasses import dataclass
from typing import final

from kubewright.errors import ConfigError
from kubewright.k8s.release import KUBERNETES_MINOR_VERSION, KUBERNETES_VERSION

__all__ = ("DEFAULT_VERSION", "Release", "host_platform", "matches", "release")

DEFAULT_VERSION = KUBERNETES_MINOR_VERSION

# Minor version -> its newest known patch, and the etcd to run it with. A streaming list needs etcd's progress
# notifications on request, which fail below 3.5.16.
_KNOWN = {
    "1.33": ("1.33.13", "3.5.35"),
    "1.34": ("1.34.4", "3.6.16"),
    "1.35": ("1.35.4", "3.6.16"),
    "1.36": ("1.36.3", "3.6.16"),
}
_MINOR = re.compile(r"v?(1\.\d+)")
_FULL = re.compile(r"v?((1\.\d+)\.\d+)")


@final
@dataclass(frozen=True, slots=True)
class Release:
    """One Kubernetes version and the etcd version it is run with, both without a leading v."""

    kubernetes: str
    etcd: str

    @property
    def staging(self) -> str:
        """The version of the `k8s.io/*` Go modules of this release: v1.35.4 goes with v0.35.4."""
        return "0" + self.kubernetes[1:]

    @property
    def minor(self) -> str:
        """The minor version alone, such as `1.35`."""
        return self.kubernetes.rpartition(".")[0]


def release(version: str) -> Release:
    """The release meant by `1.35` (its newest known patch) or by a full `1.35.4`; a leading v is fine."""
    full = _FULL.fullmatch(version)
    if full is not None:
        _, etcd = _KNOWN.get(full[2], _KNOWN[DEFAULT_VERSION])
        return Release(full[1], etcd)
    minor = _MINOR.fullmatch(version)
    if minor is None:
        raise ConfigError(
            f"Kubernetes version {version!r} is not one; write it as {DEFAULT_VERSION} or {KUBERNETES_VERSION}."
        )
    if minor[1] not in _KNOWN:
        known = ", ".join(_KNOWN)
        raise ConfigError(
            f"No patch of Kubernetes {minor[1]} is known; use one of {known}, or a full version such as {minor[1]}.1."
        )
    return Release(*_KNOWN[minor[1]])


def matches(requested: str, version: str) -> bool:
    """Whether a full version satisfies the requested one: `1.35` takes any patch of it, `1.35.4` only itself."""
    requested = requested.removeprefix("v")
    return version == requested or version.startswith(f"{requested}.")


def host_platform() -> tuple[str, str]:
    """Operating system and architecture of this machine, in the words of Kubernetes releases."""
    system = {"linux": "linux", "darwin": "darwin"}.get(sys.platform)
    machine = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}.get(
        platform.machine().lower()
    )
    if system is None or machine is None:
        raise ConfigError(
            f"A real control plane does not run on {sys.platform} {platform.machine()}; "
            "use Linux or macOS on amd64 or arm64."
        )
    return system, machine
