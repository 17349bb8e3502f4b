"""Credentials from another program: the exec plug-ins of kubeconfig files.

Cloud clusters hand out short-lived tokens through programs such as `aws` or `gke-gcloud-auth-plugin`. This
module runs the program when there is nothing valid at hand, shortly before what it gave expires, and after a
401; however many requests are waiting, it runs once. The protocol is `client.authentication.k8s.io`, v1 and
v1beta1.

`config` makes an `ExecPlugin` from the `exec` part of a user; the transport sees only `Credentials`. What the
plug-in printed is never shown, since it is the secret; what it wrote to stderr is.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import IO, Annotated, Any, Literal, final

import msgspec

from kubewright._base.clock import Clock, SystemClock
from kubewright.client.config.credentials import Certificate, checked_token, secret_folder
from kubewright.errors import ConfigError

__all__ = ("EXEC_VERSIONS", "ExecPlugin", "ExecSpec")

EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")

_LEEWAY = timedelta(seconds=30)
_PAUSE = timedelta(seconds=5)
"""The plug-in does not run again sooner: not for what was expired when it came, not for a storm of 401s."""

_OUTPUT_LIMIT = 1024 * 1024
_STDERR_SHOWN = 500


class ExecSpec(msgspec.Struct, frozen=True, kw_only=True):
    """How to run the plug-in, as the kubeconfig says it."""

    command: str
    api_version: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    install_hint: str = ""
    interactive_mode: Literal["Never", "IfAvailable", "Always"] = "Never"
    cluster: Mapping[str, Any] | None = None
    """What the plug-in is told about the cluster; None when `provideClusterInfo` is off."""
    timeout: float = 60.0
    """Seconds until a plug-in that hangs is ended; five times as long when a person has to answer it."""
    origin: str = "the exec plug-in"

    def __repr__(self) -> str:
        # Arguments and variables may be secrets.
        return f"ExecSpec(command={self.command!r}, origin={self.origin!r})"


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


class _ExecCredential(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: _Status | None = None


class _Issued(msgspec.Struct, frozen=True):
    """What one run gave."""

    headers: dict[str, str]
    certificate: Certificate | None
    renew_at: datetime | None
    expires_at: datetime | None


@final
class ExecPlugin:
    """`Credentials` that a program prints."""

    def __init__(
        self,
        spec: ExecSpec,
        *,
        clock: Clock | None = None,
        environ: Mapping[str, str] | None = None,
        terminal: Callable[[], bool] = lambda: sys.stdin is not None and sys.stdin.isatty(),
    ) -> None:
        self._spec = spec
        self._clock = clock or SystemClock()
        self._environ = environ
        self._terminal = terminal
        self._issued: _Issued | None = None
        self._version = 0
        self._runs = 0
        self._failure: ConfigError | None = None
        self._refreshed_at: datetime | None = None
        self._refresh_helped = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = asyncio.Lock()

    @property
    def certificate_version(self) -> int:
        return self._version

    def client_certificate(self) -> Certificate | None:
        return self._issued.certificate if self._issued else None

    async def headers(self) -> Mapping[str, str]:
        issued = self._issued
        if issued is None or (issued.renew_at is not None and self._clock.now() >= issued.renew_at):
            issued = await self._renewed(issued)
        return issued.headers

    async def refresh(self, *, rejected: Mapping[str, str] | None = None) -> bool:
        issued = self._issued
        if issued is not None and rejected and rejected != issued.headers:
            return True
        if self._refreshed_at is not None and self._clock.now() - self._refreshed_at < _PAUSE:
            return self._refresh_helped and not rejected
        renewed = await self._renewed(issued, keep_old=False)
        helped = issued is None or (renewed.headers, renewed.certificate) != (
            issued.headers,
            issued.certificate,
        )
        self._refreshed_at, self._refresh_helped = self._clock.now(), helped
        return helped

    async def _renewed(self, seen: _Issued | None, *, keep_old: bool = True) -> _Issued:
        """What a run gives that began after `seen` was found wanting: this caller's or another's."""
        runs = self._runs
        async with self._lock_of_this_loop():
            if self._issued is not None and self._issued is not seen:
                return self._issued
            if self._runs != runs and self._failure is not None:
                raise ConfigError(str(self._failure))
            try:
                issued = await self._run()
            except ConfigError as error:
                self._runs += 1
                self._failure = error
                now = self._clock.now()
                if keep_old and seen is not None and seen.expires_at is not None and now < seen.expires_at:
                    # Still good: asked early, so that a plug-in that fails for a moment does no harm.
                    self._issued = msgspec.structs.replace(seen, renew_at=now + _PAUSE)
                    return self._issued
                raise
            self._runs += 1
            self._failure = None
            if issued.certificate != self.client_certificate():
                self._version += 1
            self._issued = issued
            return issued

    def _lock_of_this_loop(self) -> asyncio.Lock:
        # A lock belongs to the loop that first waited for it, while a configuration may outlive a loop.
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._lock = loop, asyncio.Lock()
        return self._lock

    async def _run(self) -> _Issued:
        interactive = self._interactive()
        output = await _output(self._spec, self._environment(interactive), interactive=interactive)
        return self._issued_from(_parsed(output, self._spec))

    def _interactive(self) -> bool:
        mode = self._spec.interactive_mode
        if mode == "Never":
            return False
        terminal = self._terminal()
        if mode == "Always" and not terminal:
            raise ConfigError(
                f"{self._spec.origin}: the plug-in {self._spec.command} needs a terminal (interactiveMode is "
                "Always), and there is none; run this in a terminal, or use another way to log in"
            )
        return terminal

    def _environment(self, interactive: bool) -> dict[str, str]:
        spec: dict[str, Any] = {"interactive": interactive}
        if self._spec.cluster is not None:
            spec["cluster"] = self._spec.cluster
        info = {"apiVersion": self._spec.api_version, "kind": "ExecCredential", "spec": spec}
        inherited = os.environ if self._environ is None else self._environ
        return {**inherited, **self._spec.env, "KUBERNETES_EXEC_INFO": msgspec.json.encode(info).decode()}

    def _issued_from(self, status: _Status) -> _Issued:
        origin = self._spec.origin
        token = checked_token(status.token, f"{origin}: status.token of the plug-in's answer") if status.token else ""
        certificate = None
        if status.client_certificate_data and status.client_key_data:
            certificate = Certificate(
                status.client_certificate_data.encode(),
                status.client_key_data.encode(),
                f"{origin}: status.clientCertificateData of the plug-in's answer",
            )
        expires = status.expiration_timestamp
        renew = None
        if expires is not None:
            now = self._clock.now()
            renew = max(expires - min(_LEEWAY, max(expires - now, timedelta()) / 10), now + _PAUSE)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return _Issued(headers=headers, certificate=certificate, renew_at=renew, expires_at=expires)

    def __repr__(self) -> str:
        return f"ExecPlugin({self._spec.command!r})"


def _parsed(output: bytes, spec: ExecSpec) -> _Status:
    what = f"{spec.origin}: the plug-in {spec.command}"
    try:
        answer = msgspec.json.decode(output, type=_ExecCredential)
    except msgspec.DecodeError as error:
        empty = "printed nothing" if not output.strip() else f"printed no ExecCredential ({error})"
        raise ConfigError(f"{what} {empty}; run it by hand to see why") from None
    if answer.kind != "ExecCredential":
        raise ConfigError(f"{what} printed no ExecCredential, but kind {answer.kind!r}; run it by hand to see why")
    if answer.api_version != spec.api_version:
        raise ConfigError(
            f"{what} answered in {answer.api_version or 'no apiVersion'}, and its apiVersion field says "
            f"{spec.api_version}; set the field to what the plug-in speaks"
        )
    status = answer.status
    if status is None or not (status.token or status.client_certificate_data or status.client_key_data):
        raise ConfigError(f"{what} gave neither a token nor a client certificate; run it by hand to see why")
    if bool(status.client_certificate_data) != bool(status.client_key_data):
        raise ConfigError(f"{what} gave only one of client certificate and key; both are needed")
    return status


async def _output(spec: ExecSpec, environment: Mapping[str, str], *, interactive: bool) -> bytes:
    """Run the plug-in to its end; what it printed, or `ConfigError` with the reason."""
    what = f"{spec.origin}: the plug-in {spec.command}"
    with contextlib.ExitStack() as files:
        try:
            # Files without a name, not pipes: a helper that the plug-in leaves running in the background may
            # keep its output open for ever, and only the plug-in itself is waited for.
            printed, complaint = (files.enter_context(tempfile.TemporaryFile(dir=secret_folder())) for _ in range(2))
        except OSError as error:
            raise ConfigError(f"{what} cannot be started: no folder for temporary files") from error
        process = await _started(spec, environment, what, printed, None if interactive else complaint)
        timeout = spec.timeout * (5 if interactive else 1)
        try:
            async with asyncio.timeout(timeout):
                code = await process.wait()
        except TimeoutError:
            raise ConfigError(f"{what} did not finish within {timeout:g} s and was ended") from None
        finally:
            if process.returncode is None:
                await _end(process, group=not interactive)
        if code != 0:
            reason = " ".join(_content(complaint).decode("utf-8", "replace").split())[-_STDERR_SHOWN:]
            raise ConfigError(f"{what} failed with exit code {code}: {reason or 'it said nothing'}")
        return _content(printed)


async def _started(
    spec: ExecSpec, environment: Mapping[str, str], what: str, printed: IO[bytes], complaint: IO[bytes] | None
) -> asyncio.subprocess.Process:
    """The running plug-in. Without a file for its complaints a person is there to read and answer them."""
    alone = complaint is not None
    try:
        return await asyncio.create_subprocess_exec(
            spec.command,
            *spec.args,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL if alone else None,
            stdout=printed,
            stderr=complaint,
            # A group of its own, so that its children end with it; a terminal belongs to the old group.
            start_new_session=alone,
        )
    except FileNotFoundError:
        hint = " ".join(spec.install_hint.split())
        raise ConfigError(f"{what} is not installed; {hint or 'install it, or put it on the PATH'}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "the command, an argument or a variable is not usable"
        raise ConfigError(f"{what} cannot be started: {reason}") from None


async def _end(process: asyncio.subprocess.Process, *, group: bool) -> None:
    with contextlib.suppress(ProcessLookupError):
        if group:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    await process.wait()


def _content(file: IO[bytes]) -> bytes:
    # The position is shared with the plug-in, which left it at the end.
    file.seek(0)
    return file.read(_OUTPUT_LIMIT)
