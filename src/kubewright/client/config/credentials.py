"""Who the client is: tokens, passwords and client certificates, each as one kind of `Credentials`.

The transport asks `headers` before every request, `refresh` after a 401, and rebuilds its TLS context when
`certificate_version` has moved. Files are read again as they change, because in a pod the token is replaced
every hour. Nothing here runs a program: that is `execplugin`. Which kind a user of a kubeconfig needs is
decided in `config`. No secret is ever part of a repr or of a message.
"""

from __future__ import annotations

import base64
import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, Protocol, final

from kubewright._base.clock import Clock, SystemClock
from kubewright.errors import ConfigError

__all__ = (
    "Anonymous",
    "Basic",
    "Certificate",
    "ClientCertificate",
    "Combined",
    "Credentials",
    "StaticToken",
    "TokenFile",
    "checked_token",
    "read_file",
    "secret_folder",
)

_NOTHING: Mapping[str, str] = MappingProxyType({})

_TOKEN_AGE = 50.0
"""A token is at most this old, in seconds: under the minute within which it has to be read again."""

_CERTIFICATE_AGE = 10.0
"""How often, in seconds, certificate files are looked at: two `stat` calls while they stand unchanged."""

_JUST_NOW = 10.0
"""A change so many seconds ago is news to a request that was on its way meanwhile and got a 401."""

_MEMORY = Path("/dev/shm")  # noqa: S108 - the folder only; the files in it get unguessable names

_NOT_A_TOKEN = re.compile(r"[^\x21-\x7e]")


class Certificate(NamedTuple):
    """A client certificate with its key, both PEM, and the fields they come from, for messages."""

    certificate: bytes
    key: bytes
    origin: str = "the client certificate"

    def __repr__(self) -> str:
        return f"Certificate(origin={self.origin!r})"


class Credentials(Protocol):
    """What a transport needs to know about who is asking. Write another kind by having these four."""

    @property
    def certificate_version(self) -> int:
        """Moves whenever `client_certificate` answers differently; look at it after `headers`."""
        ...

    def client_certificate(self) -> Certificate | None:
        """The certificate to show in the TLS handshake, if there is one."""
        ...

    async def headers(self) -> Mapping[str, str]:
        """The headers to send with the next request; cheap when nothing has changed."""
        ...

    async def refresh(self, *, rejected: Mapping[str, str] | None = None) -> bool:
        """After a 401: whether there is something new that is worth one more attempt.

        `rejected` are the headers that the server refused. With them, a caller who comes late hears that
        another one has already fetched something newer.
        """
        ...


@final
class Anonymous:
    """Nobody in particular."""

    __slots__ = ()
    certificate_version = 0

    def client_certificate(self) -> None:
        return None

    async def headers(self) -> Mapping[str, str]:
        return _NOTHING

    async def refresh(self, *, rejected: Mapping[str, str] | None = None) -> bool:
        return False

    def __repr__(self) -> str:
        return "Anonymous()"


class _FixedHeader:
    """An Authorization header that never changes."""

    __slots__ = ("_headers",)
    certificate_version = 0

    def __init__(self, authorization: str) -> None:
        self._headers = MappingProxyType({"Authorization": authorization})

    def client_certificate(self) -> None:
        return None

    async def headers(self) -> Mapping[str, str]:
        return self._headers

    async def refresh(self, *, rejected: Mapping[str, str] | None = None) -> bool:
        return False

    def __repr__(self) -> str:
        return f"{type(self).__name__}(***)"


@final
class StaticToken(_FixedHeader):
    """A bearer token that is what it is."""

    __slots__ = ()

    def __init__(self, token: str, *, origin: str = "the token") -> None:
        super().__init__(f"Bearer {checked_token(token, origin)}")


@final
class Basic(_FixedHeader):
    """A user name and a password, for servers behind a proxy that asks for them."""

    __slots__ = ()

    def __init__(self, username: str, password: str) -> None:
        pair = base64.b64encode(f"{username}:{password}".encode()).decode()
        super().__init__(f"Basic {pair}")


@final
class TokenFile:
    """A bearer token in a file that somebody else keeps fresh, as the kubelet does for every pod.

    Raises `ConfigError` when made, if there is no token to read. Later a file that is missing or empty for a
    moment does not matter: the last token is used, and the server decides.
    """

    __slots__ = ("_changed_at", "_clock", "_headers", "_origin", "_path", "_read_at")
    certificate_version = 0

    def __init__(self, path: Path, *, origin: str = "the token file", clock: Clock | None = None) -> None:
        self._path = path
        self._origin = origin
        self._clock = clock or SystemClock()
        self._headers = self._read()
        self._read_at = self._clock.monotonic()
        self._changed_at = -math.inf

    def client_certificate(self) -> None:
        return None

    async def headers(self) -> Mapping[str, str]:
        if self._clock.monotonic() - self._read_at >= _TOKEN_AGE:
            self._read_again()
        return self._headers

    async def refresh(self, *, rejected: Mapping[str, str] | None = None) -> bool:
        self._read_again()
        if rejected is not None:
            return self._headers != rejected
        return self._clock.monotonic() - self._changed_at < _JUST_NOW

    def _read(self) -> Mapping[str, str]:
        content = read_file(self._path, self._origin)
        token = checked_token(content.decode("utf-8", "replace"), f"{self._origin}: {self._path}")
        return MappingProxyType({"Authorization": f"Bearer {token}"})

    def _read_again(self) -> None:
        self._read_at = self._clock.monotonic()
        try:
            headers = self._read()
        except ConfigError:
            return
        if headers != self._headers:
            self._headers = headers
            self._changed_at = self._read_at

    def __repr__(self) -> str:
        return f"TokenFile({str(self._path)!r})"


@final
class ClientCertificate:
    """A client certificate and its key, each as PEM or as the path of a file that is read again on change.

    A changed pair is taken when both files can be read; until then the last one is used.
    """

    __slots__ = ("_changed_at", "_clock", "_origin", "_pair", "_sources", "_stamp", "_stamp_at", "_version")

    def __init__(
        self,
        certificate: bytes | Path,
        key: bytes | Path,
        *,
        origin: str = "the client certificate",
        clock: Clock | None = None,
    ) -> None:
        self._sources = (certificate, key)
        self._origin = origin
        self._clock = clock or SystemClock()
        self._version = 0
        self._stamp = self._look()
        self._stamp_at = self._clock.monotonic()
        self._pair = self._read()
        self._changed_at = -math.inf

    @property
    def certificate_version(self) -> int:
        return self._version

    def client_certificate(self) -> Certificate:
        return self._pair

    async def headers(self) -> Mapping[str, str]:
        if self._clock.monotonic() - self._stamp_at >= _CERTIFICATE_AGE:
            self._read_if_changed()
        return _NOTHING

    async def refresh(self, *, rejected: Mapping[str, str] | None = None) -> bool:
        self._read_if_changed()
        return self._clock.monotonic() - self._changed_at < _JUST_NOW

    def _look(self) -> tuple[tuple[int, int, int] | None, ...]:
        return tuple(_stamp(source) if isinstance(source, Path) else None for source in self._sources)

    def _read(self) -> Certificate:
        certificate, key = (
            read_file(source, self._origin) if isinstance(source, Path) else source for source in self._sources
        )
        return Certificate(certificate, key, self._origin)

    def _read_if_changed(self) -> None:
        self._stamp_at = self._clock.monotonic()
        stamp = self._look()
        if stamp == self._stamp:
            return
        try:
            pair = self._read()
        except ConfigError:
            return
        self._stamp = stamp
        if pair != self._pair:
            self._pair = pair
            self._version += 1
            self._changed_at = self._stamp_at

    def __repr__(self) -> str:
        return f"ClientCertificate(origin={self._origin!r})"


@final
class Combined:
    """A header from one kind, and a client certificate from another."""

    __slots__ = ("_authorization", "_certificate")

    def __init__(self, authorization: Credentials, certificate: Credentials) -> None:
        self._authorization = authorization
        self._certificate = certificate

    @property
    def certificate_version(self) -> int:
        return self._authorization.certificate_version + self._certificate.certificate_version

    def client_certificate(self) -> Certificate | None:
        return self._certificate.client_certificate() or self._authorization.client_certificate()

    async def headers(self) -> Mapping[str, str]:
        await self._certificate.headers()
        return await self._authorization.headers()

    async def refresh(self, *, rejected: Mapping[str, str] | None = None) -> bool:
        certificate = await self._certificate.refresh()
        return await self._authorization.refresh(rejected=rejected) or certificate

    def __repr__(self) -> str:
        return f"Combined({self._authorization!r}, {self._certificate!r})"


def checked_token(token: str, origin: str) -> str:
    """The token without surrounding white space; `ConfigError` if it cannot stand in a header."""
    token = token.strip()
    if not token:
        raise ConfigError(f"{origin} holds no token; put one there, or remove the field")
    if _NOT_A_TOKEN.search(token):
        raise ConfigError(f"{origin} is no token: it has a space, a line break or another forbidden character")
    return token


def read_file(path: Path, origin: str) -> bytes:
    """The content of a file that a configuration names; `ConfigError` says which field, file and reason."""
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "the path is not usable"
        raise ConfigError(f"{origin}: cannot read {path}: {reason}") from error


def secret_folder() -> Path | None:
    """Where a temporary file with a secret never reaches a disk; None if the system has no such folder."""
    return _MEMORY if _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK) else None


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    # The inode too: a mounted secret is replaced by renaming a link, and both files may have the same time.
    return (found.st_mtime_ns, found.st_ino, found.st_size)
