"""Prepare the operators of the benchmark and say how each is started.

The Go one is compiled and kopf is installed into Kubewright's cache folder, once for each state of their sources;
neither touches the repository or the environment of the benchmark. An operator that cannot be had here (no `go`, no
package index) is a ClusterError; the benchmarks go on without it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

from kubewright.cluster.binaries.finder import cache_folder
from kubewright.cluster.processes.commands import run
from kubewright.cluster.processes.locks import FileLock
from kubewright.errors import ClusterError, ConfigError

__all__ = ("NAMES", "TITLES", "YARDSTICK", "Peer", "compiled", "go_binary", "prepare")

YARDSTICK = "go"
"""What ratios are taken against: controller-runtime set up so that it writes nothing twice, as the others do not.

`go-default` is the same program without the experimental option that this takes.
"""

_ROOT = Path(__file__).resolve().parents[2]
_GO_MODULE = Path(__file__).parent / "controller_runtime"
_KOPF = "kopf[uvloop]==1.45.2"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """One operator, ready to be started."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)

    def arguments(self, kubeconfig: Path) -> list[str]:
        """The command line."""
        return [*self.command, f"--kubeconfig={kubeconfig}"]


def prepare(names: Iterable[str], *, say: Callable[[str], None]) -> list[Peer]:
    """The operators of these names, compiled or installed where need be; those that cannot be had are left out."""
    peers = []
    for name in names:
        if name not in _PREPARED_BY:
            raise ConfigError(f"There is no operator {name!r}; choose from {', '.join(NAMES)}.")
        try:
            peers.append(_PREPARED_BY[name](say))
        except ClusterError as error:
            say(f"without {name}: {error}")
    return peers


def compiled(name: str = YARDSTICK) -> Peer | None:
    """The operator in Go, if `prepare` has compiled it as its sources are now; nothing is compiled here."""
    ready = _go_path(_GO_MODULE, "controller-runtime").exists()
    return _PREPARED_BY[name](lambda _: None) if ready else None


def _floor(_say: Callable[[str], None]) -> Peer:
    return _python_peer("floor", "bench.peers.floor")


def _kubewright(_say: Callable[[str], None]) -> Peer:
    return _python_peer("kubewright", "bench.peers.kubewright_operator")


def _python_peer(name: str, module: str) -> Peer:
    environment = {"PYTHONPATH": f"{_ROOT}{os.pathsep}{_ROOT / 'src'}"}
    return Peer(name=name, command=(sys.executable, "-m", module), environment=environment)


def _go(say: Callable[[str], None]) -> Peer:
    return Peer(name="go", command=(str(_go_binary(say)), "--read-your-writes"))


def _go_default(say: Callable[[str], None]) -> Peer:
    return Peer(name="go-default", command=(str(_go_binary(say)),))


def _go_binary(say: Callable[[str], None]) -> Path:
    return go_binary(_GO_MODULE, "controller-runtime", say=say)


def go_binary(folder: Path, name: str, *, say: Callable[[str], None]) -> Path:
    """The program in a folder of Go sources, compiled if it has not been since they last changed."""
    binary = _go_path(folder, name)
    if not binary.exists():
        go = shutil.which("go")
        if go is None:
            raise ClusterError(f"The program {name} of the benchmark needs Go; install it and put `go` on the PATH.")
        say(f"compiling {name}")
        with _installing(binary) as target:
            environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}
            _call([go, "build", "-buildvcs=false", "-trimpath", "-o", str(target), "."], environment, folder=folder)
    return binary


def _go_path(folder: Path, name: str) -> Path:
    """Where the program of these sources is, or is to be."""
    sources = sorted(path for path in folder.iterdir() if path.suffix in (".go", ".mod", ".sum"))
    return _cached(f"{name}-{_digest(path.read_bytes() for path in sources)}")


def _kopf(say: Callable[[str], None]) -> Peer:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    packages = _cached(f"kopf-{_digest([_KOPF.encode(), version.encode()])}")
    if not packages.exists():
        say(f"installing {_KOPF}")
        with _installing(packages) as target:
            _call([sys.executable, "-m", "pip", "install", "--quiet", "--target", str(target), _KOPF], os.environ)
    # Without site packages (-S): nothing but kopf's own requirements is importable.
    return Peer(
        name="kopf",
        command=(sys.executable, "-S", "-m", "bench.peers.kopf_operator"),
        environment={"PYTHONPATH": f"{packages}{os.pathsep}{_ROOT}"},
    )


_PREPARED_BY: Mapping[str, Callable[[Callable[[str], None]], Peer]] = {
    "floor": _floor,
    "kubewright": _kubewright,
    "go": _go,
    "go-default": _go_default,
    "kopf": _kopf,
}
NAMES = tuple(_PREPARED_BY)
TITLES = {
    "floor": "no framework (aiohttp + msgspec)",
    "kubewright": "Kubewright",
    "go": "controller-runtime, with read-your-writes",
    "go-default": "controller-runtime, as it comes",
    "kopf": "kopf",
}
"""For people."""


def _cached(name: str) -> Path:
    return cache_folder() / "bench" / name


def _digest(parts: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()[:16]


@contextmanager
def _installing(path: Path) -> Iterator[Path]:
    """A path to prepare something at; on success it moves into its place, whole or not at all."""
    with (
        FileLock(path.with_name(f"{path.name}.lock")).acquire(),
        tempfile.TemporaryDirectory(prefix=f".{path.name}-", dir=path.parent) as folder,
    ):
        prepared = Path(folder) / path.name
        yield prepared
        if not path.exists():
            prepared.replace(path)


def _call(command: Sequence[str], environment: Mapping[str, str], *, folder: Path = _GO_MODULE) -> None:
    try:
        done = run(command, folder=folder, environment=environment)
    except OSError as error:
        raise ClusterError(f"{command[0]} cannot be started: {error}.") from error
    if done.code != 0:
        tail = " | ".join(done.stderr.strip().splitlines()[-3:])
        raise ClusterError(f"`{Path(command[0]).name} {command[1]}` ended with code {done.code}: {tail}.")
