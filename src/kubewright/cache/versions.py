"""Resource versions as values that can be compared.

Kubernetes promises since 1.35 that resourceVersions of one resource are decimal numbers that grow with every write
(KEP-5504, comparable resource versions). Servers that do not keep the promise work as well: versions that are no
numbers are only compared for equality, and the one that came last counts as newer.
"""

from __future__ import annotations

__all__ = ("Version", "is_newer", "parse_version", "version_text")

Version = int | str


def parse_version(text: str) -> Version:  # hot
    """The number, or the text itself if it is none."""
    return int(text) if text.isascii() and text.isdigit() else text


def version_text(version: Version) -> str:
    """As the server writes it."""
    return str(version)


def is_newer(version: Version, than: Version) -> bool:  # hot
    """Whether one version is newer than another; if they have no order, a different one counts as newer."""
    if isinstance(version, int) and isinstance(than, int):
        return version > than
    return version != than
