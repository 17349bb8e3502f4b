"""Addresses that a process listens on, as options write them. Pure; `options` and `endpoints` call it."""

from __future__ import annotations

import ipaddress

from kubewright.errors import ConfigError

__all__ = ("is_loopback", "is_on", "parse_address")


def is_on(text: str) -> bool:
    """Whether there is to be a server at all: there is none at an empty address or `0`."""
    return text not in ("", "0")


def parse_address(text: str, *, what: str) -> tuple[str, int] | None:
    """`:8081`, `127.0.0.1:8081`, `[::1]:8081`; None, which means off, for an empty text or `0`."""
    if not is_on(text):
        return None
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise ConfigError(
            f"the {what} {text!r} is not an address; write it like :8081 or 127.0.0.1:8081, or 0 for none"
        )
    return host.removeprefix("[").removesuffix("]"), int(port)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server there."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
