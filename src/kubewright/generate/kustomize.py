"""Kustomization files: created if missing, else only completed.

Users edit their kustomizations. So an existing one keeps every line, and only entries missing from its `resources` are
added.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from kubewright._base import yaml
from kubewright.errors import ConfigError

__all__ = ("kustomization", "with_resources")

_LIST: Final = re.compile(r"^resources:[ \t]*(\[\])?[ \t]*(#.*)?$", re.MULTILINE)
_ITEM: Final = re.compile(r"[ \t]*(-|#|$)")


def kustomization(resources: Iterable[str], **more: Any) -> str:
    """A new kustomization file."""
    return yaml.dump({"resources": sorted(resources), **more})


def with_resources(text: str, resources: Iterable[str], *, where: str) -> str:
    """The text with entries for all of the resources; unchanged if none is missing."""
    try:
        tree = yaml.load(text) or {}
    except ValueError as exc:
        raise ConfigError(f"{where}: {exc}; correct the file") from exc
    present = tree.get("resources") if isinstance(tree, Mapping) else None
    missing = sorted(set(resources) - set(present or ()))
    if not missing:
        return text
    found = _LIST.search(text)
    if found is None:
        if present:
            raise ConfigError(f"{where}: write resources as a list of lines, so that {missing[0]} can be added")
        return text.rstrip("\n") + "\nresources:\n" + "".join(f"- {name}\n" for name in missing)
    lines = text.splitlines()
    first = text[: found.start()].count("\n")
    lines[first] = "resources:"
    last = first
    for number in range(first + 1, len(lines)):
        if not _ITEM.match(lines[number]):
            break
        if lines[number].lstrip().startswith("-"):
            last = number
    indent = lines[last][: len(lines[last]) - len(lines[last].lstrip())] if last > first else ""
    lines[last + 1 : last + 1] = [f"{indent}- {name}" for name in missing]
    return "\n".join(lines) + "\n"
