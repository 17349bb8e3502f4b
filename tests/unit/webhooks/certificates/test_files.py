"""A certificate in files that somebody else writes."""

from __future__ import annotations

import asyncio
from pathlib import Path

from kubewright.testing.clock import VirtualClock
from kubewright.webhooks.certificates.files import FileCertificates


async def test_it_waits_for_both_files(tmp_path: Path) -> None:
    clock = VirtualClock()
    waiting = asyncio.create_task(FileCertificates(tmp_path, interval=2, clock=clock).current())
    await clock.advance(10)
    (tmp_path / "tls.crt").write_bytes(b"certificate")
    await clock.advance(10)
    assert not waiting.done()

    (tmp_path / "tls.key").write_bytes(b"key")
    await clock.advance(2)

    assert await waiting == (b"certificate", b"key")


async def test_it_says_when_the_files_have_changed(tmp_path: Path) -> None:
    clock = VirtualClock()
    (tmp_path / "a.pem").write_bytes(b"one")
    (tmp_path / "b.pem").write_bytes(b"key")
    files = FileCertificates(tmp_path, certificate="a.pem", key="b.pem", interval=2, clock=clock)
    await files.current()
    changed = asyncio.create_task(files.changed())

    await clock.advance(60)
    (tmp_path / "b.pem").unlink()
    await clock.advance(60)
    assert not changed.done()

    (tmp_path / "b.pem").write_bytes(b"another key")
    await clock.advance(2)
    await changed
    assert await files.current() == (b"one", b"another key")
    assert str(files).endswith("b.pem")
