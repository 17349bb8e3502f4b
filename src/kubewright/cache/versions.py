"""Resource versions as values that can be compared.

Kubernetes promises that versions of one resource are decimal numbers that grow with every write. A server that breaks
the promise is still served: versions that are no numbers are only told apart, and the one that came last counts as
newer.
"""

from __future__ import annotations

__all__ = ("Version", "is_newer", "parse_version", "version_text")

Version = int | str


def parse_version(text: str) -> Version:  # hot
    """A number where it is one, the text itself elsewhere."""
    return int(text) if text.isascii() and text.isdigit() else text


def version_text(version: Version) -> str:
    """As the server writes it."""
    return str(version)


def is_newer(version: Version, than: Version) -> bool:  # hot
    """Whether one version is newer than another, as far as can be told: if they do not compare, different is newer."""
    if isinstance(version, int) and isinstance(than, int):
        return version > than
    return version != than
