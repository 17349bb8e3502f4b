"""Credentials are fresh, cheap to ask and never shown."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kubewright.client.config.credentials import (
    Anonymous,
    BasicAuth,
    Certificate,
    ClientCertificate,
    CombinedCredentials,
    Credentials,
    StaticToken,
    TokenFile,
)
from kubewright.errors import ConfigError


class HandClock:
    """Time that moves when told."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


async def test_nobody_sends_nothing() -> None:
    nobody: Credentials = Anonymous()

    assert await nobody.headers() == {}
    assert nobody.client_certificate() is None
    assert not await nobody.refresh()


async def test_a_token_is_sent_as_it_is_without_surrounding_white_space() -> None:
    token: Credentials = StaticToken(" abc\n")

    assert await token.headers() == {"Authorization": "Bearer abc"}
    assert not await token.refresh()


@pytest.mark.parametrize("bad", ["", "  \n", "a b", "a\nb: c", "ä"])
def test_what_cannot_stand_in_a_header_is_refused_and_not_shown(bad: str) -> None:
    with pytest.raises(ConfigError, match=r"^users\[0\]\.user\.token ") as caught:
        StaticToken(bad, origin="users[0].user.token")

    assert "\n" not in str(caught.value)


async def test_user_and_password_are_basic_authentication() -> None:
    basic: Credentials = BasicAuth("aladdin", "open sesame")

    assert await basic.headers() == {"Authorization": "Basic YWxhZGRpbjpvcGVuIHNlc2FtZQ=="}


async def test_a_token_file_is_read_again_within_a_minute(tmp_path: Path, clock: HandClock) -> None:
    path = tmp_path / "token"
    path.write_text("one\n")
    token: Credentials = TokenFile(path, clock=clock)
    path.write_text("two\n")

    clock.seconds = 49
    assert await token.headers() == {"Authorization": "Bearer one"}
    clock.seconds = 60
    assert await token.headers() == {"Authorization": "Bearer two"}


async def test_a_token_file_is_read_again_after_a_401(tmp_path: Path, clock: HandClock) -> None:
    path = tmp_path / "token"
    path.write_text("one")
    token = TokenFile(path, clock=clock)
    rejected = await token.headers()
    assert not await token.refresh(rejected=rejected)
    path.write_text("two")

    assert await token.refresh(rejected=rejected)
    assert await token.headers() == {"Authorization": "Bearer two"}
    # A second request that was on its way with the old token hears of the new one, too.
    assert await token.refresh(rejected=rejected)
    assert await token.refresh()
    clock.seconds = 10
    assert not await token.refresh()


async def test_a_token_file_that_is_gone_for_a_moment_does_not_matter(tmp_path: Path, clock: HandClock) -> None:
    path = tmp_path / "token"
    path.write_text("one")
    token = TokenFile(path, clock=clock)
    path.unlink()

    clock.seconds = 60

    assert await token.headers() == {"Authorization": "Bearer one"}
    assert not await token.refresh()


def test_a_token_file_must_be_there_and_hold_a_token_at_first(tmp_path: Path) -> None:
    path = tmp_path / "token"
    with pytest.raises(ConfigError) as missing:
        TokenFile(path, origin="users[0].user.tokenFile")
    path.write_text(" \n")
    with pytest.raises(ConfigError) as empty:
        TokenFile(path, origin="users[0].user.tokenFile")

    assert str(missing.value) == f"users[0].user.tokenFile: cannot read {path}: No such file or directory"
    assert str(empty.value) == (f"users[0].user.tokenFile: {path} holds no token; put one there, or remove the field")


async def test_certificate_files_are_read_again_when_they_change(tmp_path: Path, clock: HandClock) -> None:
    certificate, key = tmp_path / "c", tmp_path / "k"
    certificate.write_bytes(b"C1")
    key.write_bytes(b"K1")
    shown: Credentials = ClientCertificate(certificate, key, origin="o", clock=clock)
    assert shown.client_certificate() == Certificate(b"C1", b"K1", "o")
    version = shown.certificate_version
    replacement = tmp_path / "new"
    replacement.write_bytes(b"C2")
    replacement.replace(certificate)

    assert await shown.headers() == {}
    assert version == shown.certificate_version
    clock.seconds = 10
    assert await shown.headers() == {}

    assert version + 1 == shown.certificate_version
    assert shown.client_certificate() == Certificate(b"C2", b"K1", "o")


async def test_certificate_files_are_looked_at_after_a_401(tmp_path: Path, clock: HandClock) -> None:
    certificate = tmp_path / "c"
    certificate.write_bytes(b"C1")
    shown = ClientCertificate(certificate, b"K", clock=clock)
    assert not await shown.refresh()
    certificate.write_bytes(b"C2+")

    assert await shown.refresh()
    assert shown.certificate_version == 1


async def test_touched_certificate_files_are_no_change_and_missing_ones_are_waited_for(
    tmp_path: Path, clock: HandClock
) -> None:
    certificate = tmp_path / "c"
    certificate.write_bytes(b"C1")
    shown = ClientCertificate(certificate, b"K", clock=clock)

    os.utime(certificate, (1, 1))
    assert not await shown.refresh()
    certificate.unlink()
    assert not await shown.refresh()
    certificate.write_bytes(b"C2+")

    assert await shown.refresh()
    assert shown.client_certificate() == Certificate(b"C2+", b"K")


def test_certificate_data_needs_no_file() -> None:
    assert ClientCertificate(b"C", b"K").client_certificate() == Certificate(b"C", b"K")


async def test_a_token_and_a_certificate_go_together(tmp_path: Path, clock: HandClock) -> None:
    certificate = tmp_path / "c"
    certificate.write_bytes(b"C1")
    both: Credentials = CombinedCredentials(StaticToken("abc"), ClientCertificate(certificate, b"K", clock=clock))
    certificate.write_bytes(b"C2+")

    assert await both.headers() == {"Authorization": "Bearer abc"}
    assert await both.refresh(rejected={"Authorization": "Bearer abc"})
    assert both.certificate_version == 1
    assert both.client_certificate() == Certificate(b"C2+", b"K")


def test_no_secret_is_in_a_repr(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("hunter2")
    pair = ClientCertificate(b"hunter2", b"hunter2")
    everyone = [
        Anonymous(),
        StaticToken("hunter2"),
        BasicAuth("hunter2", "hunter2"),
        TokenFile(path),
        pair,
        pair.client_certificate(),
        CombinedCredentials(StaticToken("hunter2"), pair),
    ]

    assert "hunter2" not in f"{everyone!r} {pair.client_certificate()}"
