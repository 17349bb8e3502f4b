"""Credentials: tokens, passwords and client certificates.

A transport calls `headers` before every request, `refresh` after a 401, and rebuilds its TLS context when
`certificate_version` has changed. Files are read again as they change, because the kubelet replaces a pod's token
about every hour. `config.exec_plugin` runs programs for credentials; `config.config` decides which class a user of a
kubeconfig needs. No secret is ever part of a repr or of a message.
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
    "BasicAuth",
    "Certificate",
    "ClientCertificate",
    "CombinedCredentials",
    "Credentials",
    "StaticToken",
    "TokenFile",
    "checked_token",
    "read_file",
    "secret_folder",
)

_NO_HEADERS: Mapping[str, str] = MappingProxyType({})

_TOKEN_MAX_AGE = 50.0
"""Seconds after which a token file is read again: client-go rereads it after a minute less ten seconds of leeway
(transport/token_source.go), and the kubelet replaces a token long before it expires.
"""

_CERTIFICATE_POLL_SECONDS = 10.0
"""How often certificate files are checked: two `stat` calls while they are unchanged."""

_RECENT_SECONDS = 10.0
"""A request that gets a 401 is worth another attempt if the credentials changed this recently: it was sent before."""

_MEMORY_FOLDER = Path("/dev/shm")  # noqa: S108 - the folder only; the files in it get unguessable names

_NOT_IN_TOKEN = re.compile(r"[^\x21-\x7e]")


class Certificate(NamedTuple):
    """A client certificate and its key, both PEM, and the fields they come from, for messages."""

    certificate: bytes
    key: bytes
    origin: str = "the client certificate"

    def __repr__(self) -> str:
        return f"Certificate(origin={self.origin!r})"


class Credentials(Protocol):
    """What a transport needs to authenticate. Implement these four for another kind."""

    @property
    def certificate_version(self) -> int:
        """Changes whenever `client_certificate` returns something else; read it after `headers`."""
        ...

    def client_certificate(self) -> Certificate | None:
        """The certificate for the TLS handshake, if there is one."""
        ...

    async def headers(self) -> Mapping[str, str]:
        """The headers to send with the next request; cheap when nothing has changed."""
        ...

    async def refresh(self, *, rejected: Mapping[str, str] | None = None) -> bool:
        """After a 401: whether the credentials are new, so that one more attempt makes sense.

        `rejected` are the headers that the server rejected. With them, a caller learns that another one has already
        fetched newer ones.
        """
        ...


@final
class Anonymous:
    """No credentials."""

    __slots__ = ()
    certificate_version = 0

    def client_certificate(self) -> None:
        return None

    async def headers(self) -> Mapping[str, str]:
        return _NO_HEADERS

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
    """A bearer token that never changes."""

    __slots__ = ()

    def __init__(self, token: str, *, origin: str = "the token") -> None:
        super().__init__(f"Bearer {checked_token(token, origin)}")


@final
class BasicAuth(_FixedHeader):
    """A user name and a password, for proxies in front of a server."""

    __slots__ = ()

    def __init__(self, username: str, password: str) -> None:
        pair = base64.b64encode(f"{username}:{password}".encode()).decode()
        super().__init__(f"Basic {pair}")


@final
class TokenFile:
    """A bearer token in a file that somebody else rotates, as the kubelet does for every pod.

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
        if self._clock.monotonic() - self._read_at >= _TOKEN_MAX_AGE:
            self._read_again()
        return self._headers

    async def refresh(self, *, rejected: Mapping[str, str] | None = None) -> bool:
        self._read_again()
        if rejected is not None:
            return self._headers != rejected
        return self._clock.monotonic() - self._changed_at < _RECENT_SECONDS

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
    """A client certificate and its key, each as PEM or as the path of a file that is read again when it changes.

    A changed pair is used when both files can be read; until then the last one is.
    """

    __slots__ = ("_changed_at", "_clock", "_file_stamp", "_origin", "_pair", "_sources", "_stamp_at", "_version")

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
        self._file_stamp = self._file_stamps()
        self._stamp_at = self._clock.monotonic()
        self._pair = self._read()
        self._changed_at = -math.inf

    @property
    def certificate_version(self) -> int:
        return self._version

    def client_certificate(self) -> Certificate:
        return self._pair

    async def headers(self) -> Mapping[str, str]:
        if self._clock.monotonic() - self._stamp_at >= _CERTIFICATE_POLL_SECONDS:
            self._read_if_changed()
        return _NO_HEADERS

    async def refresh(self, *, rejected: Mapping[str, str] | None = None) -> bool:
        self._read_if_changed()
        return self._clock.monotonic() - self._changed_at < _RECENT_SECONDS

    def _file_stamps(self) -> tuple[tuple[int, int, int] | None, ...]:
        return tuple(_file_stamp(source) if isinstance(source, Path) else None for source in self._sources)

    def _read(self) -> Certificate:
        certificate, key = (
            read_file(source, self._origin) if isinstance(source, Path) else source for source in self._sources
        )
        return Certificate(certificate, key, self._origin)

    def _read_if_changed(self) -> None:
        self._stamp_at = self._clock.monotonic()
        stamp = self._file_stamps()
        if stamp == self._file_stamp:
            return
        try:
            pair = self._read()
        except ConfigError:
            return
        self._file_stamp = stamp
        if pair != self._pair:
            self._pair = pair
            self._version += 1
            self._changed_at = self._stamp_at

    def __repr__(self) -> str:
        return f"ClientCertificate(origin={self._origin!r})"


@final
class CombinedCredentials:
    """The headers of one kind of credentials, and the client certificate of another."""

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
    """The token without surrounding white space; `ConfigError` if it cannot be in a header."""
    token = token.strip()
    if not token:
        raise ConfigError(f"{origin} holds no token; put one there, or remove the field")
    if _NOT_IN_TOKEN.search(token):
        raise ConfigError(f"{origin} is no token: it has a space, a line break or another forbidden character")
    return token


def read_file(path: Path, origin: str) -> bytes:
    """The content of a file that a configuration names; the `ConfigError` has field, file and reason."""
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "the path is not usable"
        raise ConfigError(f"{origin}: cannot read {path}: {reason}") from error


def secret_folder() -> Path | None:
    """A folder in memory, where a temporary file with a secret never reaches a disk; None if the system has none."""
    return _MEMORY_FOLDER if _MEMORY_FOLDER.is_dir() and os.access(_MEMORY_FOLDER, os.W_OK) else None


def _file_stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    # With the inode: the kubelet replaces a mounted secret by renaming a symbolic link, and old and new file may have
    # the same modification time.
    return (found.st_mtime_ns, found.st_ino, found.st_size)
