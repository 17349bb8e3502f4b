"""The default pull policy of a container image, by its tag.

The grammar of image names is that of github.com/distribution/reference, as used by
k8s.io/kubernetes/pkg/util/parsers/parsers.go.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

__all__ = ("pull_policy",)

_TAGGED: Final = re.compile(
    r"(?P<name>[^@]*?)(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?"
    r"(?P<digest>@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9A-Fa-f]{32,})?"
)
_HOST: Final = re.compile(
    r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
)
_PATH: Final = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*")
_IDENTIFIER: Final = re.compile(r"[a-f0-9]{64}")


@lru_cache(maxsize=4096)
def pull_policy(image: str) -> str:
    """Always for the tag `latest`, explicit or implied; IfNotPresent for any other, and for an invalid name."""
    match = _TAGGED.fullmatch(image)
    if match is None or _IDENTIFIER.fullmatch(image) or not _is_name(match["name"]):
        return "IfNotPresent"
    tag = match["tag"] or ("" if match["digest"] else "latest")
    return "Always" if tag == "latest" else "IfNotPresent"


def _is_name(name: str) -> bool:
    first, slash, rest = name.partition("/")
    if slash and (any(sign in first for sign in ".:") or first == "localhost" or first.lower() != first):
        return _HOST.fullmatch(first) is not None and _PATH.fullmatch(rest) is not None
    return _PATH.fullmatch(name) is not None
