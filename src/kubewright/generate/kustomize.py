"""Kustomization files: created if missing, else only completed.

Users edit their kustomizations. So an existing one keeps its lines: only in its `resources`, missing entries are added,
and those are removed whose file is gone, since kustomize builds nothing with them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from itertools import takewhile
from typing import Any, Final

from kubewright._base import yaml
from kubewright.errors import ConfigError

__all__ = ("kustomization", "resources_in", "with_resources")

_LIST: Final = re.compile(r"^resources:[ \t]*(\[\])?[ \t]*(#.*)?$", re.MULTILINE)
_ITEM: Final = re.compile(r"[ \t]*(-|#|$)")


def kustomization(resources: Iterable[str], **more: Any) -> str:
    """A new kustomization file."""
    return yaml.dump({"resources": sorted(resources), **more})


def resources_in(text: str, *, where: str) -> list[str]:
    """The resources that a kustomization names; `where` is named in errors."""
    try:
        tree = yaml.load(text) or {}
    except ValueError as exc:
        raise ConfigError(f"{where}: {exc}; correct the file") from exc
    present = tree.get("resources") if isinstance(tree, Mapping) else None
    return [name for name in present if isinstance(name, str)] if isinstance(present, list) else []


def with_resources(text: str, resources: Iterable[str], *, where: str, without: Collection[str] = ()) -> str:
    """The text with entries for all of the resources and none for those in `without`; unchanged if that is so."""
    present = resources_in(text, where=where)
    missing = sorted(set(resources) - set(present))
    surplus = set(without) & set(present)
    if not missing and not surplus:
        return text
    found = _LIST.search(text)
    if found is None:
        if present:
            raise ConfigError(
                f"{where}: write resources as a list of lines, so that {[*missing, *sorted(surplus)][0]} can be "
                f"{'added' if missing else 'removed'}"
            )
        return text.rstrip("\n") + "\nresources:\n" + "".join(f"- {name}\n" for name in missing)
    lines = text.splitlines()
    first = text[: found.start()].count("\n")
    items = list(takewhile(_ITEM.match, lines[first + 1 :]))
    kept = [line for line in items if _entry(line) not in surplus]
    last = max((place for place, line in enumerate(kept, 1) if line.lstrip().startswith("-")), default=0)
    indent = kept[last - 1][: len(kept[last - 1]) - len(kept[last - 1].lstrip())] if last else ""
    kept[last:last] = [f"{indent}- {name}" for name in missing]
    whole = any(line.lstrip().startswith("-") for line in kept)
    lines[first : first + 1 + len(items)] = ["resources:" if whole else "resources: []", *kept]
    return "\n".join(lines) + "\n"


def _entry(line: str) -> str | None:
    """The name in a line of a list."""
    try:
        tree = yaml.load(line)
    except ValueError:
        return None
    return tree[0] if isinstance(tree, list) and tree and isinstance(tree[0], str) else None
