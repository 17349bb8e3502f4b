"""Validates probes and lifecycle hooks of containers."""

from __future__ import annotations

from typing import Final

from kubewright.apiserver.builtin.validation.fields import (
    JSON,
    Errors,
    each,
    forbidden,
    invalid,
    not_negative,
    one_of,
    port_errors,
    required,
)
from kubewright.apiserver.builtin.validation.formats import header_errors

__all__ = ("lifecycle_errors", "probes_errors")

_SIGNALS: Final = tuple(
    sorted(
        [
            *[
                "SIGABRT",
                "SIGALRM",
                "SIGBUS",
                "SIGCHLD",
                "SIGCLD",
                "SIGCONT",
                "SIGFPE",
                "SIGHUP",
                "SIGILL",
                "SIGINT",
                "SIGIO",
                "SIGIOT",
                "SIGKILL",
                "SIGPIPE",
                "SIGPOLL",
                "SIGPROF",
                "SIGPWR",
                "SIGQUIT",
                "SIGSEGV",
                "SIGSTKFLT",
                "SIGSTOP",
                "SIGSYS",
                "SIGTERM",
                "SIGTRAP",
                "SIGTSTP",
                "SIGTTIN",
                "SIGTTOU",
                "SIGURG",
                "SIGUSR1",
                "SIGUSR2",
                "SIGVTALRM",
                "SIGWINCH",
                "SIGXCPU",
                "SIGXFSZ",
                "SIGRTMIN",
                "SIGRTMAX",
            ],
            *(f"SIGRTMIN+{number}" for number in range(1, 16)),
            *(f"SIGRTMAX-{number}" for number in range(1, 15)),
        ]
    )
)
_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")


def probes_errors(path: str, container: JSON, grace: int | None) -> Errors:
    """The liveness, readiness and startup probes of a container."""
    errors: Errors = []
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = container.get(name)
        if probe is None:
            continue
        place = f"{path}.{name}"
        errors += _probe(place, probe, grace)
        if name == "readinessProbe":
            seconds = probe.get("terminationGracePeriodSeconds")
            if seconds is not None:
                detail = "must not be set for readinessProbes"
                errors.append(invalid(f"{place}.terminationGracePeriodSeconds", seconds, detail))
        elif probe.get("successThreshold", 0) != 1:
            errors.append(invalid(f"{place}.successThreshold", probe.get("successThreshold", 0), "must be 1"))
    return errors


def _probe(path: str, probe: JSON, grace: int | None) -> Errors:
    errors = _handler(path, probe, grace, _HANDLERS[:4])
    for name in ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"):
        errors += not_negative(f"{path}.{name}", probe.get(name))
    seconds = probe.get("terminationGracePeriodSeconds")
    if seconds is not None and seconds <= 0:
        errors.append(invalid(f"{path}.terminationGracePeriodSeconds", seconds, "must be greater than 0"))
    return errors


def lifecycle_errors(path: str, lifecycle: JSON, grace: int | None, system: JSON) -> Errors:
    """validateLifecycle."""
    errors: Errors = []
    for name in ("postStart", "preStop"):
        if lifecycle.get(name) is not None:
            errors += _handler(f"{path}.{name}", lifecycle[name], grace, (*_HANDLERS[:3], "sleep"))
    signal = lifecycle.get("stopSignal")
    if signal is None:
        return errors
    if system is None:
        detail = "may not be set for containers with empty `spec.os.name`"
        return [*errors, forbidden(f"{path}.stopSignal", detail)]
    allowed = {"windows": ("SIGKILL", "SIGTERM"), "linux": _SIGNALS}.get(system.get("name", ""), (signal,))
    return errors if signal in allowed else [*errors, one_of(f"{path}.stopSignal", signal, allowed)]


def _handler(path: str, handler: JSON, grace: int | None, names: tuple[str, ...]) -> Errors:
    errors: Errors = []
    present = [name for name in names if handler.get(name) is not None]
    for position, name in enumerate(present):
        if position:
            errors.append(forbidden(f"{path}.{name}", "may not specify more than 1 handler type"))
        else:
            errors += _action(f"{path}.{name}", name, handler[name], grace)
    return errors if present else [required(path, "must specify a handler type")]


def _action(path: str, name: str, action: JSON, grace: int | None) -> Errors:
    if name == "exec":
        return [] if action.get("command") else [required(f"{path}.command")]
    if name == "httpGet":
        return _http(path, action)
    if name == "sleep":
        seconds = action.get("seconds", 0)
        if grace is None or 0 <= seconds <= grace:
            return []
        detail = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
        return [invalid(path, seconds, detail)]
    return port_errors(f"{path}.port", action.get("port"))


def _http(path: str, action: JSON) -> Errors:
    errors = [] if action.get("path") else [required(f"{path}.path")]
    errors += port_errors(f"{path}.port", action.get("port"))
    scheme = action.get("scheme", "")
    if scheme not in ("HTTP", "HTTPS"):
        errors.append(one_of(f"{path}.scheme", scheme, ("HTTP", "HTTPS")))
    for header in action.get("httpHeaders") or ():
        errors += each(f"{path}.httpHeaders", header.get("name", ""), header_errors(header.get("name", "")))
    return errors
