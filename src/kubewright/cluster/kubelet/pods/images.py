"""Images nobody pulls: their full names, digests and whether they can be had.

A name or tag that holds `nonexistent`, `invalid`, `missing`, `no-such` or `does-not-exist` cannot be pulled; a
reference that no registry could ever have is refused as the kubelet refuses it. Everything else is there at once.
Pure; asked by `pod_life`.
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
    """Whether the text can be the name of an image at all."""
    return _REFERENCE.fullmatch(image) is not None


def full_name(image: str) -> str:
    """The name as a runtime reports it: `nginx` is `docker.io/library/nginx:latest`."""
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
    """The name by digest, the same for the same image each time."""
    name = full_name(image)
    if "@" in name:
        return name
    repository = name[: name.rindex(":")]
    return f"{repository}@sha256:{hashlib.sha256(name.encode()).hexdigest()}"


def pull_error(image: str) -> str | None:
    """Why the image cannot be pulled, in the words of containerd; None if it can."""
    if not any(word in image.lower() for word in _UNAVAILABLE):
        return None
    name = full_name(image)
    return (
        f'rpc error: code = NotFound desc = failed to pull and unpack image "{name}": '
        f'failed to resolve reference "{name}": {name}: not found'
    )
