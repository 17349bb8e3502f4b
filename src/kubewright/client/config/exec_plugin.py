"""ExecPlugin: credentials that a program prints, the exec plug-ins of kubeconfig files.

Cloud clusters issue short-lived tokens through programs such as `aws` or `gke-gcloud-auth-plugin`. The program runs
when there is no valid credential, shortly before the credential expires, and after a 401; however many requests wait,
it runs once. The protocol is `client.authentication.k8s.io`, v1 and v1beta1, as in client-go's
plugin/pkg/client/auth/exec/exec.go, which renews only after expiry.

`config.config` makes an `ExecPlugin` from the `exec` field of a user; a transport sees only `Credentials`. Messages
never contain the plug-in's output, which is the secret; they contain its stderr.
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

_RENEW_BEFORE_EXPIRY = timedelta(seconds=30)
_MIN_INTERVAL = timedelta(seconds=5)
"""The plug-in does not run again sooner: not for a credential that was issued expired, not for many 401s at once."""

_OUTPUT_LIMIT = 1024 * 1024
_STDERR_LIMIT = 500


class ExecSpec(msgspec.Struct, frozen=True, kw_only=True):
    """How to run the plug-in, from the kubeconfig."""

    command: str
    api_version: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    install_hint: str = ""
    interactive_mode: Literal["Never", "IfAvailable", "Always"] = "Never"
    cluster: Mapping[str, Any] | None = None
    """The cluster information for the plug-in; None if `provideClusterInfo` is off."""
    timeout: float = 60.0
    """Seconds until a plug-in that hangs is killed; five times as long if it is interactive."""
    origin: str = "the exec plug-in"

    def __repr__(self) -> str:
        # Without arguments and variables, which may be secrets.
        return f"ExecSpec(command={self.command!r}, origin={self.origin!r})"


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: Annotated[datetime, msgspec.Meta(tz=True)] | None = None

    def __repr__(self) -> str:
        return "_Status(***)"


class _ExecCredential(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: _Status | None = None


class _Credential(msgspec.Struct, frozen=True):
    """The credential from one run of the plug-in."""

    headers: dict[str, str]
    certificate: Certificate | None
    renew_at: datetime | None
    expires_at: datetime | None

    def __repr__(self) -> str:
        return f"_Credential(expires_at={self.expires_at!r})"


@final
class ExecPlugin:
    """`Credentials` from a program."""

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
        self._credential: _Credential | None = None
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
        return self._credential.certificate if self._credential else None

    async def headers(self) -> Mapping[str, str]:
        credential = self._credential
        if credential is None or (credential.renew_at is not None and self._clock.now() >= credential.renew_at):
            credential = await self._renew(credential)
        return credential.headers

    async def refresh(self, *, rejected: Mapping[str, str] | None = None) -> bool:
        credential = self._credential
        if credential is not None and rejected and rejected != credential.headers:
            return True
        if self._refreshed_at is not None and self._clock.now() - self._refreshed_at < _MIN_INTERVAL:
            return self._refresh_helped and not rejected
        renewed = await self._renew(credential, keep_valid=False)
        helped = credential is None or (renewed.headers, renewed.certificate) != (
            credential.headers,
            credential.certificate,
        )
        self._refreshed_at, self._refresh_helped = self._clock.now(), helped
        return helped

    async def _renew(self, seen: _Credential | None, *, keep_valid: bool = True) -> _Credential:
        """The credential of a run that began after `seen` became invalid: this caller's run or another's."""
        runs = self._runs
        async with self._lock_of_this_loop():
            if self._credential is not None and self._credential is not seen:
                return self._credential
            if self._runs != runs and self._failure is not None:
                raise ConfigError(str(self._failure))
            try:
                credential = await self._run()
            except ConfigError as error:
                self._runs += 1
                self._failure = error
                now = self._clock.now()
                if keep_valid and seen is not None and seen.expires_at is not None and now < seen.expires_at:
                    # `seen` is still valid: renewal starts early so that a plug-in may fail for a while.
                    self._credential = msgspec.structs.replace(seen, renew_at=now + _MIN_INTERVAL)
                    return self._credential
                raise
            self._runs += 1
            self._failure = None
            if credential.certificate != self.client_certificate():
                self._version += 1
            self._credential = credential
            return credential

    def _lock_of_this_loop(self) -> asyncio.Lock:
        # An asyncio.Lock is bound to the loop that first waited for it, and a configuration may outlive a loop.
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._lock = loop, asyncio.Lock()
        return self._lock

    async def _run(self) -> _Credential:
        interactive = self._interactive()
        output = await _run_plugin(self._spec, self._environment(interactive), interactive=interactive)
        return self._credential_from(_parse(output, self._spec))

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

    def _credential_from(self, status: _Status) -> _Credential:
        origin = self._spec.origin
        token = checked_token(status.token, f"{origin}: status.token of the plug-in's output") if status.token else ""
        certificate = None
        if status.client_certificate_data and status.client_key_data:
            certificate = Certificate(
                status.client_certificate_data.encode(),
                status.client_key_data.encode(),
                f"{origin}: status.clientCertificateData of the plug-in's output",
            )
        expires = status.expiration_timestamp
        renew = None
        if expires is not None:
            now = self._clock.now()
            renew = max(expires - min(_RENEW_BEFORE_EXPIRY, max(expires - now, timedelta()) / 10), now + _MIN_INTERVAL)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return _Credential(headers=headers, certificate=certificate, renew_at=renew, expires_at=expires)

    def __repr__(self) -> str:
        return f"ExecPlugin({self._spec.command!r})"


def _parse(output: bytes, spec: ExecSpec) -> _Status:
    what = f"{spec.origin}: the plug-in {spec.command}"
    try:
        credential = msgspec.json.decode(output, type=_ExecCredential)
    except msgspec.DecodeError as error:
        empty = "printed nothing" if not output.strip() else f"printed no ExecCredential ({error})"
        raise ConfigError(f"{what} {empty}; run it by hand to see why") from None
    if credential.kind != "ExecCredential":
        raise ConfigError(f"{what} printed no ExecCredential, but kind {credential.kind!r}; run it by hand to see why")
    if credential.api_version != spec.api_version:
        raise ConfigError(
            f"{what} printed {credential.api_version or 'no apiVersion'}, but exec.apiVersion is "
            f"{spec.api_version}; set the field to the version of the plug-in"
        )
    status = credential.status
    if status is None or not (status.token or status.client_certificate_data or status.client_key_data):
        raise ConfigError(f"{what} gave neither a token nor a client certificate; run it by hand to see why")
    if bool(status.client_certificate_data) != bool(status.client_key_data):
        raise ConfigError(f"{what} gave only one of client certificate and key; both are needed")
    return status


async def _run_plugin(spec: ExecSpec, environment: Mapping[str, str], *, interactive: bool) -> bytes:
    """Run the plug-in to its end and return its output; `ConfigError` with the reason if it fails."""
    what = f"{spec.origin}: the plug-in {spec.command}"
    with contextlib.ExitStack() as files:
        try:
            # Unnamed files, not pipes: a child that the plug-in leaves running in the background would keep a pipe
            # open for ever. Only the plug-in itself is waited for.
            stdout, stderr = (files.enter_context(tempfile.TemporaryFile(dir=secret_folder())) for _ in range(2))
        except OSError as error:
            raise ConfigError(f"{what} cannot be started: no folder for temporary files") from error
        process = await _start(spec, environment, what, stdout, None if interactive else stderr)
        timeout = spec.timeout * (5 if interactive else 1)
        try:
            async with asyncio.timeout(timeout):
                code = await process.wait()
        except TimeoutError:
            raise ConfigError(f"{what} did not finish within {timeout:g} s and was killed") from None
        finally:
            if process.returncode is None:
                await _kill(process, group=not interactive)
        if code != 0:
            reason = " ".join(_read_output(stderr).decode("utf-8", "replace").split())[-_STDERR_LIMIT:]
            raise ConfigError(f"{what} failed with exit code {code}: {reason or 'it wrote nothing to stderr'}")
        return _read_output(stdout)


async def _start(
    spec: ExecSpec, environment: Mapping[str, str], what: str, stdout: IO[bytes], stderr: IO[bytes] | None
) -> asyncio.subprocess.Process:
    """Start the plug-in. Without `stderr` it is interactive: a person reads its messages and answers."""
    unattended = stderr is not None
    try:
        return await asyncio.create_subprocess_exec(
            spec.command,
            *spec.args,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL if unattended else None,
            stdout=stdout,
            stderr=stderr,
            # A session of its own, so that its children can be killed with it; an interactive one needs the terminal,
            # which belongs to the old session.
            start_new_session=unattended,
        )
    except FileNotFoundError:
        hint = " ".join(spec.install_hint.split())
        raise ConfigError(f"{what} is not installed; {hint or 'install it, or put it on the PATH'}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "the command, an argument or a variable is not usable"
        raise ConfigError(f"{what} cannot be started: {reason}") from None


async def _kill(process: asyncio.subprocess.Process, *, group: bool) -> None:
    with contextlib.suppress(ProcessLookupError):
        if group:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    await process.wait()


def _read_output(file: IO[bytes]) -> bytes:
    # The plug-in shares the file position and left it at the end.
    file.seek(0)
    return file.read(_OUTPUT_LIMIT)
