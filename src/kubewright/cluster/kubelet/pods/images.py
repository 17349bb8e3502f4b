"""Simulated images: full names, digests, and whether a pull succeeds. Nothing is pulled.

The pull of a name or tag that contains `nonexistent`, `invalid`, `missing`, `no-such` or `does-not-exist` fails, and an
invalid reference is an InvalidImageName as in the kubelet. All other images are present. Pure; called by `lifecycle`
and `status`.
"""

from __future__ import annotations

import hashlib
import re

__all__ = ("full_name", "image_id", "is_well_formed", "pull_error")

_UNAVAILABLE = ("nonexistent", "non-existent", "invalid", "missing", "no-such", "does-not-exist", "doesnotexist")
_REFERENCE = re.compile(
    r"(?:[A-Za-z0-9.-]+(?::\d+)?/)?[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*"
    r"(?::[\w][\w.-]{0,127})?(?:@sha256:[0-9a-f]{64})?"
)


def is_well_formed(image: str) -> bool:
    """Whether the text is a valid image reference."""
    return _REFERENCE.fullmatch(image) is not None


def full_name(image: str) -> str:
    """The name that a runtime reports: `nginx` is `docker.io/library/nginx:latest`."""
    name, at, digest = image.partition("@")
    first, slash, _ = name.partition("/")
    if not slash:
        name = f"docker.io/library/{name}"
    elif "." not in first and ":" not in first and first != "localhost":
        name = f"docker.io/{name}"
    if not at and ":" not in name.rpartition("/")[2]:
        name = f"{name}:latest"
    return f"{name}{at}{digest}"


def image_id(image: str) -> str:
    """The name with a digest, which depends only on the name."""
    name = full_name(image)
    if "@" in name:
        return name
    repository = name[: name.rindex(":")]
    return f"{repository}@sha256:{hashlib.sha256(name.encode()).hexdigest()}"


def pull_error(image: str) -> str | None:
    """The error of containerd for the pull of this image; None if the pull succeeds."""
    if not any(word in image.lower() for word in _UNAVAILABLE):
        return None
    name = full_name(image)
    return (
        f'rpc error: code = NotFound desc = failed to pull and unpack image "{name}": '
        f'failed to resolve reference "{name}": {name}: not found'
    )
