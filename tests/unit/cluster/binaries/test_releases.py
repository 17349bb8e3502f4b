"""Downloads are verified, and failures are told apart: unreachable is one thing, altered another."""

from __future__ import annotations

import hashlib
import http.server
import io
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest

from kubewright.cluster.binaries.releases import Fetch, download, fetch
from kubewright.cluster.binaries.versions import Release
from kubewright.cluster.processes.progress import no_progress
from kubewright.errors import ClusterError

RELEASE = Release("1.35.4", "3.6.16")
KUBECTL = "https://dl.k8s.io/release/v1.35.4/bin/linux/amd64/kubectl"
ETCD = "https://github.com/etcd-io/etcd/releases/download/v3.6.16"


def serving(pages: dict[str, bytes]) -> Fetch:
    def fetch(url: str, into: IO[bytes], report: Callable[[int, int], None], /) -> None:
        if url not in pages:
            raise FileNotFoundError(f"{url} answers 404 Not Found")
        into.write(pages[url])
        report(len(pages[url]), len(pages[url]))

    return fetch


def tarred(name: str, content: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def zipped(name: str, content: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, content)
    return buffer.getvalue()


def get(name: str, into: Path, pages: dict[str, bytes], *, system: str = "linux") -> None:
    download(
        [name],
        release=RELEASE,
        platform=(system, "amd64"),
        into=into,
        fetch=serving(pages),
        progress=no_progress,
    )


def test_a_binary_with_the_right_checksum_is_installed_executable(tmp_path: Path) -> None:
    checksum = hashlib.sha512(b"binary").hexdigest().encode() + b"\n"

    get("kubectl", tmp_path, {KUBECTL: b"binary", f"{KUBECTL}.sha512": checksum})

    assert (tmp_path / "kubectl").read_bytes() == b"binary"
    assert (tmp_path / "kubectl").stat().st_mode & 0o777 == 0o755


def test_a_binary_with_another_checksum_is_refused_and_removed(tmp_path: Path) -> None:
    checksum = hashlib.sha512(b"binary").hexdigest().encode()

    with pytest.raises(ClusterError, match="does not match its sha512 checksum"):
        get("kubectl", tmp_path, {KUBECTL: b"altered", f"{KUBECTL}.sha512": checksum})

    assert list(tmp_path.iterdir()) == []


def test_an_empty_checksum_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match=r"kubectl\.sha512 is empty"):
        get("kubectl", tmp_path, {KUBECTL: b"binary", f"{KUBECTL}.sha512": b""})


@pytest.mark.parametrize(("system", "suffix", "pack"), [("linux", "tar.gz", tarred), ("darwin", "zip", zipped)])
def test_etcd_is_taken_out_of_its_archive(
    tmp_path: Path, system: str, suffix: str, pack: Callable[[str, bytes], bytes]
) -> None:
    stem = f"etcd-v3.6.16-{system}-amd64"
    archive = pack(f"{stem}/etcd", b"etcd binary")
    sums = f"{hashlib.sha256(archive).hexdigest()}  {stem}.{suffix}\n".encode()

    get("etcd", tmp_path, {f"{ETCD}/{stem}.{suffix}": archive, f"{ETCD}/SHA256SUMS": sums}, system=system)

    assert [path.name for path in tmp_path.iterdir()] == ["etcd"]
    assert (tmp_path / "etcd").read_bytes() == b"etcd binary"


def test_an_archive_without_etcd_is_refused(tmp_path: Path) -> None:
    stem = "etcd-v3.6.16-linux-amd64"
    archive = tarred(f"{stem}/README.md", b"")
    sums = f"{hashlib.sha256(archive).hexdigest()}  {stem}.tar.gz\n".encode()

    with pytest.raises(ClusterError, match=f"holds no readable {stem}/etcd"):
        get("etcd", tmp_path, {f"{ETCD}/{stem}.tar.gz": archive, f"{ETCD}/SHA256SUMS": sums})


def test_a_platform_the_release_does_not_have_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"lists no etcd-v3\.6\.16-plan9-amd64"):
        get("etcd", tmp_path, {f"{ETCD}/SHA256SUMS": b"00  etcd-v3.6.16-linux-amd64.tar.gz\n"}, system="plan9")


class _Pages(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        found = self.path != "/missing"
        self.send_response(200 if found else 404)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hel" if self.path == "/cut" else b"hello")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it
        """Quiet."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Pages) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


def test_fetching_reports_how_far_it_is(server: str) -> None:
    buffer, seen = io.BytesIO(), list[tuple[int, int]]()

    fetch(f"{server}/there", buffer, lambda done, total: seen.append((done, total)))

    assert buffer.getvalue() == b"hello"
    assert seen == [(5, 5)]


@pytest.mark.parametrize(("path", "expected"), [("missing", "answers 404"), ("cut", "cut at 3 of 5 bytes|Incomplete")])
def test_an_answer_that_is_missing_or_cut_short_is_an_os_error(server: str, path: str, expected: str) -> None:
    with pytest.raises(OSError, match=expected):
        fetch(f"{server}/{path}", io.BytesIO(), lambda done, total: None)


def test_a_host_that_does_not_answer_is_named() -> None:
    with pytest.raises(ConnectionError, match=r"^127\.0\.0\.1:1: Connection refused$"):
        fetch("http://127.0.0.1:1/", io.BytesIO(), lambda done, total: None)
