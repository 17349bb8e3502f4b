"""The Pod Security labels of namespaces.

There are three modes: `enforce` refuses pods, `audit` annotates the audit log, `warn` warns the client. Each has a
level and a version of Kubernetes, whose definition of that level applies. An invalid label fails safe: it means
restricted for `enforce`, and privileged for the other two.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, final

from kubewright.api.field_errors import FieldError

__all__ = ("LABELS", "UNLABELLED", "Level", "Policy", "Standard", "policy_of", "stricter")

Level = Literal["privileged", "baseline", "restricted"]

LABELS: Final = "pod-security.kubernetes.io/"
"""The prefix of these labels."""
_LEVELS: Final[tuple[Level, ...]] = ("privileged", "baseline", "restricted")
_VERSION: Final = re.compile(r"v1\.([0-9]|[1-9][0-9]*)")
_LARGEST: Final = 2**63 - 1


@final
@dataclass(frozen=True, slots=True)
class Standard:
    """A level at a version: the minor one, or None for the latest."""

    level: Level = "privileged"
    minor: int | None = None

    def __str__(self) -> str:
        return f"{self.level}:{'latest' if self.minor is None else f'v1.{self.minor}'}"


@final
@dataclass(frozen=True, slots=True)
class Policy:
    """The modes of a namespace."""

    enforce: Standard = Standard()
    audit: Standard = Standard()
    warn: Standard = Standard()
    errors: tuple[FieldError, ...] = ()
    """Errors of invalid labels."""

    @property
    def is_open(self) -> bool:
        """Whether every mode is privileged, so that no pod is checked."""
        return not self.errors and self.enforce.level == self.audit.level == self.warn.level == "privileged"


UNLABELLED: Final = Policy()
"""The modes of a namespace without such labels."""


def stricter(one: Standard, two: Standard) -> bool:
    """Whether the level of one is stricter than that of the other."""
    return _LEVELS.index(one.level) > _LEVELS.index(two.level)


def policy_of(labels: Mapping[str, str] | None) -> Policy:
    """The modes that the labels of a namespace set."""
    if not labels:
        return UNLABELLED
    errors: list[FieldError] = []
    enforce = _read(labels, "enforce", "restricted", errors)
    audit = _read(labels, "audit", "privileged", errors)
    warn = _read(labels, "warn", "privileged", errors)
    is_enforced = labels.get(f"{LABELS}enforce") in _LEVELS
    if is_enforced and f"{LABELS}warn" not in labels and stricter(enforce, warn):
        # Templates are never refused, so `warn` is as strict as `enforce` by default.
        has_version = f"{LABELS}warn-version" in labels
        warn = replace(warn if has_version else enforce, level=enforce.level)
    return Policy(enforce, audit, warn, tuple(errors))


def _read(labels: Mapping[str, str], mode: str, otherwise: Level, errors: list[FieldError]) -> Standard:
    level, minor = _LEVELS[0], None
    value = labels.get(f"{LABELS}{mode}")
    if value is not None:
        known = next((item for item in _LEVELS if item == value), None)
        level = known or otherwise
        if known is None:
            errors.append(_error(mode, value, f"must be one of {', '.join(_LEVELS)}"))
    version = labels.get(f"{LABELS}{mode}-version")
    if version not in (None, "latest"):
        match = _VERSION.fullmatch(version)
        if match is not None and int(match[1]) <= _LARGEST:
            minor = int(match[1])
        else:
            errors.append(_error(f"{mode}-version", version, 'must be "latest" or "v1.x"'))
    return Standard(level, minor)


def _error(name: str, value: str, why: str) -> FieldError:
    return FieldError(f"metadata.labels[{LABELS}{name}]", "Invalid", why, value)
