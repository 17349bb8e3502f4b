"""Download control-plane binaries from the official Kubernetes and etcd releases.

Each file must match the checksum in `checksums`, or if there is none the one that its release publishes; else it is
deleted and refused. A published checksum is fetched first: without a network that fails within seconds, before a large
download starts. Knows no cache; `finder` calls `download` and decides what to try next.
"""

from __future__ import annotations

import hashlib
import http.client
import io
import shutil
import tarfile
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import IO, Protocol

from kubewright._base.version import __version__
from kubewright.cluster.binaries.checksums import RELEASE_FILES
from kubewright.cluster.binaries.versions import Release
from kubewright.cluster.processes.progress import Progress
from kubewright.errors import ClusterError

__all__ = ("Fetch", "download", "fetch")

_KUBERNETES = "https://dl.k8s.io/release"
_ETCD = "https://github.com/etcd-io/etcd/releases/download"
_TIMEOUT = 10.0
_CHUNK = 1 << 18


class Fetch(Protocol):
    """Downloads one URL; raises OSError on failure. Tests pass their own."""

    def __call__(self, url: str, into: IO[bytes], report: Callable[[int, int], None], /) -> None:
        """Write the body of `url` to `into`, reporting bytes so far and in total (0 if unknown)."""


def fetch(url: str, into: IO[bytes], report: Callable[[int, int], None], /) -> None:
    """The `Fetch` over HTTPS; the standard library honours the proxies of the environment."""
    request = urllib.request.Request(url, headers={"User-Agent": f"kubewright/{__version__}"})  # noqa: S310 - our own https constants
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:  # noqa: S310 - as above
            total = int(answer.headers.get("Content-Length") or 0)
            done = 0
            while chunk := answer.read(_CHUNK):
                into.write(chunk)
                done += len(chunk)
                report(done, total)
    except urllib.error.HTTPError as error:
        error.close()  # it holds the connection
        raise FileNotFoundError(f"{url} answers {error.code} {error.reason}") from error
    except (OSError, http.client.HTTPException) as error:
        cause = getattr(error, "reason", error)
        text = getattr(cause, "strerror", None) or str(cause)
        raise ConnectionError(f"{urllib.parse.urlsplit(url).netloc}: {text}") from error
    if total and done != total:
        raise ConnectionError(f"{url}: the connection was cut at {done} of {total} bytes")


def download(
    names: Iterable[str],
    *,
    release: Release,
    platform: tuple[str, str],
    into: Path,
    fetch: Fetch = fetch,
    progress: Progress,
    pinned: Mapping[str, str] = RELEASE_FILES,
) -> None:
    """Download the named binaries of a release into a folder.

    Raises OSError if the release cannot be reached or lacks a binary (there is no kube-apiserver for macOS), and
    ClusterError if a file does not match its checksum.
    """
    for name in names:
        if name == "etcd":
            _download_etcd(release.etcd, platform, into, fetch, progress, pinned)
        else:
            _download_kubernetes(name, release.kubernetes, platform, into, fetch, progress, pinned)
        (into / name).chmod(0o755)


def _download_kubernetes(
    name: str,
    version: str,
    platform: tuple[str, str],
    into: Path,
    fetch: Fetch,
    progress: Progress,
    pinned: Mapping[str, str],
) -> None:
    file = f"v{version}/bin/{platform[0]}/{platform[1]}/{name}"
    url = f"{_KUBERNETES}/{file}"
    checksum = pinned.get(file) or next(iter(_text(f"{url}.sha512", fetch).split()), "")
    if not checksum:
        raise ClusterError(f"The checksum file {url}.sha512 is empty; nothing was installed.")
    _file(url, into / name, fetch, progress, algorithm="sha512", checksum=checksum)


def _download_etcd(
    version: str, platform: tuple[str, str], into: Path, fetch: Fetch, progress: Progress, pinned: Mapping[str, str]
) -> None:
    stem = f"etcd-v{version}-{platform[0]}-{platform[1]}"
    archive = f"{stem}.{'zip' if platform[0] == 'darwin' else 'tar.gz'}"
    url = f"{_ETCD}/v{version}"
    checksum = pinned.get(f"v{version}/{archive}") or _listed_checksum(f"{url}/SHA256SUMS", archive, fetch)
    packed = into / archive
    _file(f"{url}/{archive}", packed, fetch, progress, algorithm="sha256", checksum=checksum)
    _unpack(packed, f"{stem}/etcd", into / "etcd")
    packed.unlink()


def _listed_checksum(url: str, name: str, fetch: Fetch) -> str:
    lines = (line.split() for line in _text(url, fetch).splitlines())
    checksums = {words[1]: words[0] for words in lines if len(words) == 2}
    if name not in checksums:
        raise FileNotFoundError(f"{url} lists no {name}")
    return checksums[name]


def _text(url: str, fetch: Fetch) -> str:
    buffer = io.BytesIO()
    fetch(url, buffer, lambda done, total: None)
    return buffer.getvalue().decode("utf-8", "replace")


def _file(url: str, path: Path, fetch: Fetch, progress: Progress, *, algorithm: str, checksum: str) -> None:
    what = f"downloading {path.name}"
    progress(what)
    with path.open("wb") as into:
        fetch(url, into, lambda done, total: progress(what, done, total))
    with path.open("rb") as written:
        actual = hashlib.file_digest(written, algorithm).hexdigest()
    if actual != checksum.lower():
        path.unlink()
        # Do not try the next source: something between here and the release changed the file.
        raise ClusterError(
            f"The download {url} does not match its {algorithm} checksum and was thrown away; "
            "try again, or set KUBEBUILDER_ASSETS to a folder of binaries you trust."
        )


def _unpack(archive: Path, member: str, into: Path) -> None:
    """Extract one member by name, to a path of our choice: the archive's other paths are not trusted."""
    try:
        if archive.suffix == ".zip":
            with zipfile.ZipFile(archive) as zipped, zipped.open(member) as source, into.open("wb") as target:
                shutil.copyfileobj(source, target)
            return
        with tarfile.open(archive) as tarred:
            packed = tarred.extractfile(member)
            if packed is None:
                raise KeyError(member)
            with packed, into.open("wb") as target:
                shutil.copyfileobj(packed, target)
    except (KeyError, tarfile.TarError, zipfile.BadZipFile) as error:
        raise ClusterError(f"The archive {archive.name} holds no readable {member}: {error}.") from error
