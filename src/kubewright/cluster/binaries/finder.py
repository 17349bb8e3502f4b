"""Find the four binaries of a real control plane: etcd, kube-apiserver, kube-controller-manager and kubectl.

The first of these places that has a binary wins:

1. the folder `$KUBEBUILDER_ASSETS`, as envtest uses it; the other places supply what it lacks;
2. Kubewright's cache folder, `control-plane/<version>-<os>-<arch>/`;
3. the official release archives, with verified checksums (`releases`);
4. a build from the Go module proxy, if there is a `go` (`gobuild`).

Downloads and builds go to the cache folder, under a lock. `planes.real` and the command line call `find`; a test suite
that must not wait for minutes calls `find_installed`.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

from kubewright.cluster.binaries import gobuild, releases
from kubewright.cluster.binaries.versions import DEFAULT_VERSION, Release, host_platform, matches, release
from kubewright.cluster.processes import commands
from kubewright.cluster.processes.locks import FileLock
from kubewright.cluster.processes.progress import Progress, default_progress, no_progress
from kubewright.errors import ClusterError

__all__ = ("NAMES", "Binaries", "Finder", "cache_folder", "find", "find_installed")

NAMES = ("etcd", "kube-apiserver", "kube-controller-manager", "kubectl")
_ASSETS = "KUBEBUILDER_ASSETS"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Binaries:
    """Where the four binaries are, and which Kubernetes version they are, without a leading v."""

    version: str
    etcd: Path
    kube_apiserver: Path
    kube_controller_manager: Path
    kubectl: Path


def find(version: str | None = None, *, progress: Progress | None = None) -> Binaries:
    """Find the binaries, downloading or building what is missing.

    `1.35` means the newest known patch, a full `1.35.4` itself; without a version, what `$KUBEBUILDER_ASSETS`
    holds, else the release of `k8s.release`. Blocks, for minutes if it must build. Raises ClusterError when no place
    has them.
    """
    return Finder(progress=progress or default_progress()).find(version)


def find_installed(version: str | None = None) -> Binaries:
    """Find the binaries without network and compiler, else raise ClusterError."""
    return Finder().find_installed(version)


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """`$KUBEWRIGHT_CACHE`, else `$XDG_CACHE_HOME/kubewright`, else `~/.cache/kubewright`."""
    if chosen := environment.get("KUBEWRIGHT_CACHE"):
        return Path(chosen).expanduser().absolute()
    return Path(environment.get("XDG_CACHE_HOME") or "~/.cache").expanduser().absolute() / "kubewright"


@final
@dataclass(frozen=True, kw_only=True)
class Finder:
    """The search; its fields are its environment, which a test can replace."""

    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    platform: tuple[str, str] = field(default_factory=host_platform)
    fetch: releases.Fetch = releases.fetch
    run: commands.CommandRunner = commands.run
    which: Callable[[str], str | None] = shutil.which
    progress: Progress = no_progress

    def find(self, version: str | None = None) -> Binaries:
        """As the function `find`."""
        search = self._search(version)
        try:
            if search.missing:
                self._fetch_missing(search)
        finally:
            self.progress("")
        return self._result(search)

    def find_installed(self, version: str | None = None) -> Binaries:
        """As the function `find_installed`."""
        return self._result(self._search(version))

    def _search(self, version: str | None) -> _Search:
        """The binaries in `$KUBEBUILDER_ASSETS` and in the cache folder."""
        found, held, reason = self._assets(version)
        search = _Search(release=release(held or version or DEFAULT_VERSION), found=found, reasons=[reason])
        cache = self._cache(search.release)
        search.add_from(cache)
        if search.missing:
            search.reasons.append(f"the cache folder {cache} lacks {_join_names(search.missing)}")
        return search

    def _assets(self, requested: str | None) -> tuple[dict[str, Path], str | None, str]:
        """The binaries in `$KUBEBUILDER_ASSETS`, their version, and why there are none or not all."""
        setting = self.environment.get(_ASSETS)
        if not setting:
            return {}, None, f"{_ASSETS} is not set"
        folder = Path(setting).expanduser().absolute()
        found = dict(_present(folder, NAMES))
        if "kube-apiserver" not in found:
            return {}, None, f"{_ASSETS}={folder} holds no kube-apiserver"
        version = self._version_of(found["kube-apiserver"])
        if version is None:
            return {}, None, f"{folder / 'kube-apiserver'} does not tell its version"
        if requested is not None and not matches(requested, version):
            return {}, None, f"{_ASSETS}={folder} holds {version}"
        lacking = [name for name in NAMES if name not in found]
        return found, version, f"{_ASSETS}={folder} lacks {_join_names(lacking)}"

    def _version_of(self, apiserver: Path) -> str | None:
        try:
            done = self.run([str(apiserver), "--version"])
        except OSError:
            return None
        match = re.fullmatch(r"Kubernetes v(\d+\.\d+\.\d+)(?:[-+].*)?", done.stdout.strip())
        return match[1] if match is not None and done.code == 0 else None

    def _cache(self, release: Release) -> Path:
        return cache_folder(self.environment) / "control-plane" / "-".join((release.kubernetes, *self.platform))

    def _fetch_missing(self, search: _Search) -> None:
        """Download or build what is missing into the cache; one process at a time."""
        cache = self._cache(search.release)
        try:
            lock = FileLock(cache.with_name(f"{cache.name}.lock")).acquire(
                on_wait=lambda: self.progress(f"waiting for another process that fills {cache}")
            )
            with lock:
                search.add_from(cache)
                for source in (self._download, self._build):
                    if search.missing:
                        source(search, cache)
                        search.add_from(cache)
        except PermissionError as error:
            raise ClusterError(
                f"The cache folder {cache} cannot be written ({error}); set KUBEWRIGHT_CACHE."
            ) from error

    def _download(self, search: _Search, cache: Path) -> None:
        with _staging_folder(cache) as folder:
            try:
                releases.download(
                    search.missing,
                    release=search.release,
                    platform=self.platform,
                    into=folder,
                    fetch=self.fetch,
                    progress=self.progress,
                )
            except PermissionError:
                raise
            except OSError as error:
                search.reasons.append(f"the official release cannot be downloaded ({error})")
                _clear(folder)

    def _build(self, search: _Search, cache: Path) -> None:
        go = self.which("go")
        if go is None:
            search.reasons.append("there is no `go` to build them with")
            return
        with _staging_folder(cache) as folder:
            try:
                gobuild.build(
                    search.missing,
                    go=go,
                    release=search.release,
                    into=folder,
                    run=self.run,
                    progress=self.progress,
                )
            except ClusterError as error:
                search.reasons.append(str(error).rstrip("."))

    def _result(self, search: _Search) -> Binaries:
        if search.missing:
            raise ClusterError(
                f"No {_join_names(search.missing)} of Kubernetes {search.release.kubernetes} for "
                f"{'-'.join(self.platform)}: {'; '.join(search.reasons)}. "
                f"Set {_ASSETS} to a folder that has them, or run `kubewright cluster binaries` "
                "with a network or with Go installed."
            )
        paths = {name.replace("-", "_"): search.found[name] for name in NAMES}
        return Binaries(version=search.release.kubernetes, **paths)


@final
@dataclass(kw_only=True)
class _Search:
    """The binaries found so far, and the reasons why the others are missing."""

    release: Release
    found: dict[str, Path]
    reasons: list[str]

    @property
    def missing(self) -> list[str]:
        return [name for name in NAMES if name not in self.found]

    def add_from(self, folder: Path) -> None:
        self.found.update(_present(folder, self.missing))


def _present(folder: Path, names: Iterable[str]) -> Iterator[tuple[str, Path]]:
    for name in names:
        path = folder / name
        if path.is_file() and os.access(path, os.X_OK):
            yield name, path


@contextmanager
def _staging_folder(cache: Path) -> Iterator[Path]:
    """A temporary folder whose binaries are renamed into the cache on success, so that the cache has no partial file.

    Called under the lock, so it may remove the folders that killed processes left.
    """
    for abandoned in cache.parent.glob(f".{cache.name}-*"):
        shutil.rmtree(abandoned, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=f".{cache.name}-", dir=cache.parent) as temporary:
        folder = Path(temporary)
        yield folder
        for name, path in _present(folder, NAMES):
            cache.mkdir(exist_ok=True)
            path.replace(cache / name)


def _clear(folder: Path) -> None:
    """Remove the files of a failed download: all binaries come from one source."""
    for path in folder.iterdir():
        path.unlink()


def _join_names(names: Iterable[str]) -> str:
    *most, last = tuple(names) or ("nothing",)
    return f"{', '.join(most)} and {last}" if most else last
