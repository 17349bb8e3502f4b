"""/healthz and /readyz: named checks, and their report in the text of Kubernetes' own servers.

    /healthz            ok, or 500 and which check failed
    /readyz?verbose     a line for each check: [+]ping ok, [-]cache failed: may not list pods
    /readyz/cache       this one alone
    /readyz?exclude=x   without x

A check is a function, async or plain; it fails by raising, or by returning a sentence. Everybody who reaches the port
reads the sentence; the text of an exception, which may hold an address with a password, is for the log. A plain check
runs in a thread, so that a slow one cannot stop the loop. Each has a time limit. Liveness is for what only a restart
cures: a check of something outside the process does not belong there. The HTTP handler is in `handlers`, the
framework's own checks in `checks`. The text follows kube-apiserver
(staging/src/k8s.io/apiserver/pkg/server/healthz/healthz.go).
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, final

import msgspec

from kubewright._base.clock import Clock, SystemClock
from kubewright._base.logs import Logger
from kubewright._base.tasks import within
from kubewright.errors import ConfigError, KubewrightError

__all__ = ("Check", "CheckResult", "Checks", "Report")

Check = Callable[[], "str | Awaitable[str | None] | None"]
"""Returns None if all is well, else a sentence; or raises."""

_TIME_LIMIT: Final = 5.0

_log = Logger("kubewright.servers")


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one check."""

    name: str
    problem: str | None = None

    def __str__(self) -> str:
        return f"[+]{self.name} ok" if self.problem is None else f"[-]{self.name} failed: {self.problem}"


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The results of all checks."""

    title: str
    results: tuple[CheckResult, ...]
    excluded: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def healthy(self) -> bool:
        return all(result.problem is None for result in self.results)

    def text(self, *, verbose: bool = False) -> str:
        """As a Kubernetes server words it: `ok`, or a line for each check if verbose or if one failed."""
        if self.healthy and not verbose:
            return "ok"
        lines = [str(result) for result in self.results]
        lines.extend(f"[+]{name} excluded: ok" for name in self.excluded)
        if self.unknown:
            names = ", ".join(f'"{name}"' for name in self.unknown)
            lines.append(f"warn: some health checks cannot be excluded: no matches for {names}")
        lines.append(f"{self.title} check {'passed' if self.healthy else 'failed'}")
        return "\n".join(lines) + "\n"


@final
class Checks:
    """A set of named checks with a title: `healthz` or `readyz`."""

    def __init__(self, title: str, *, clock: Clock | None = None) -> None:
        self.title = title
        self._clock = clock or SystemClock()
        self._checks: dict[str, _CheckRunner] = {}

    def add(self, name: str, check: Check, *, timeout: float = _TIME_LIMIT) -> None:
        """Run this check too. Names are unique, and usable in a path."""
        if not name or "/" in name or "," in name:
            raise ConfigError(
                f"the name {name!r} of a {self.title} check cannot stand in a path; use letters and dashes"
            )
        if name in self._checks:
            raise ConfigError(f"there is a {self.title} check {name!r} already; choose another name")
        self._checks[name] = _CheckRunner(name, check, timeout, self._clock)

    def names(self) -> tuple[str, ...]:
        return tuple(self._checks)

    async def report(self, *, exclude: Iterable[str] = (), only: str | None = None) -> Report:
        """Run all checks but the excluded at the same time; or a single one."""
        excluded = tuple(dict.fromkeys(exclude))
        names = [name for name in self._checks if name not in excluded and only in (None, name)]
        problems = await asyncio.gather(*(self._checks[name].problem() for name in names))
        results = [CheckResult(name=name, problem=problem) for name, problem in zip(names, problems, strict=True)]
        if not self._checks:
            results.append(CheckResult(name="ping"))
        return Report(
            title=self.title,
            results=tuple(results),
            excluded=tuple(name for name in excluded if name in self._checks),
            unknown=tuple(name for name in excluded if name not in self._checks),
        )

    async def answer(self, path: str, query: Sequence[tuple[str, str]]) -> tuple[int, str]:
        """Status and text for what stands behind the title in the path: nothing, or a slash and a name."""
        only = path.strip("/") or None
        if only is not None and only not in self._checks:
            return 404, f"there is no {self.title} check {only!r}; the checks are {', '.join(self._checks) or 'none'}\n"
        exclude = [part for name, value in query if name == "exclude" for part in value.split(",") if part]
        report = await self.report(exclude=exclude, only=only)
        return (200 if report.healthy else 500), report.text(verbose=any(name == "verbose" for name, _ in query))


@final
class _CheckRunner:
    """Runs one check, at most once at a time: a stuck check must not pile up with every probe."""

    def __init__(self, name: str, check: Check, seconds: float, clock: Clock) -> None:
        self._name = name
        self._check = check
        self._seconds = seconds
        self._clock = clock
        called = getattr(check, "__call__", None)  # noqa: B004 - an object whose call is async counts too
        self._is_async = inspect.iscoroutinefunction(check) or inspect.iscoroutinefunction(called)
        self._thread: asyncio.Future[str | None] | None = None
        self._logged = ""

    async def problem(self) -> str | None:
        try:
            said = await within(self._ask(), self._seconds, clock=self._clock)
        except TimeoutError:
            return f"no answer in {self._seconds:g} s"
        except KubewrightError as error:
            return " ".join(f"{error}".split()) or type(error).__name__
        except Exception as error:
            self._log(error)
            return f"{type(error).__name__}; the log says more"
        self._logged = ""
        return said or None

    def _log(self, error: Exception) -> None:
        """Log why a check failed, once for as long as it fails for the same reason: probes ask every few seconds."""
        if str(error) != self._logged:
            self._logged = str(error)
            _log.warning("a health check failed", check=self._name, error=error)

    async def _ask(self) -> str | None:
        if self._is_async:
            answer = self._check()
            return await answer if inspect.isawaitable(answer) else answer
        if self._thread is None or self._thread.done():
            self._thread = _in_thread(self._check)
        # Shielded: a thread cannot be cancelled; the next probe asks for its answer again.
        return await asyncio.shield(self._thread)


def _in_thread(check: Check) -> asyncio.Future[str | None]:
    """Run a plain check in a thread of its own, which does not keep the process from ending."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[str | None] = loop.create_future()

    def settle(said: object, error: Exception | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
            future.exception()  # it is asked for later, or never if the probe has given up
        else:
            future.set_result(str(said) if said else None)

    def work() -> None:
        said: object = None
        problem: Exception | None = None
        try:
            said = check()
            if inspect.isawaitable(said):
                raise TypeError("the check returned an awaitable; declare it with `async def`")
        except Exception as error:
            problem = error
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, said, problem)

    threading.Thread(target=work, name="kubewright health check", daemon=True).start()
    return future
