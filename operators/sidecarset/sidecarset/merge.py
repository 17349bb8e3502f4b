"""Merge what a set brings into what stands in the pod already, so that the additions of others stay.

The API server asks the webhook again after others have added to a sidecar: the token of the service account, the
defaults of a LimitRange, variables of another webhook. What the set says holds; what it said at the earlier injection
and says no more goes; everything else stays. For that, a pod's record has the names of the fields and items that were
injected. Pure; `injection` calls it, `records` stores the names.
"""

from collections.abc import Mapping
from typing import Any, Final

__all__ = ("CONTAINER", "Fields", "Shape", "Tree", "fields_of", "merge", "shape_of_volume")

Tree = dict[str, Any]

Fields = dict[str, "Fields"]
"""The names of fields and of items of lists, each with those inside of it."""

Shape = Mapping[str, "Shape"] | tuple[str, ...]
"""Where others may add something: to an object, with the shapes of those of its fields to which they may add; or to a
list, with the fields by which its items are told apart. What has no shape is the set's as a whole, or somebody else's.
"""

CONTAINER: Final[Shape] = {
    "env": ("name",),
    "ports": ("containerPort", "protocol"),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "resizePolicy": ("resourceName",),
    "resources": {"limits": {}, "requests": {}, "claims": ("name",)},
    "securityContext": {},
}
"""A probe, for one, is no mixture of two."""


def shape_of_volume(volume: Tree) -> Shape:
    """What a volume is made from has a field of its own for each kind of volume."""
    return {field: {} for field, value in volume.items() if isinstance(value, dict)}


def fields_of(value: Any, shape: Shape) -> Fields:
    """The names of everything that is brought."""
    return {
        name: {} if (inside := _inside(shape, name)) is None else fields_of(part, inside)
        for name, part in _open(value, shape).items()
    }


def merge(present: Any, wanted: Any, earlier: Fields, shape: Shape) -> Any:
    """What is wanted, and what others have added to what is present; `earlier` names what was injected before."""
    here, there = _open(present, shape), _open(wanted, shape)
    merged = {}
    for name, part in (here | there).items():
        inside = _inside(shape, name)
        if name not in here:
            merged[name] = part
        elif inside is not None and (name in there or name in earlier):
            rest = merge(here[name], there.get(name), earlier.get(name, {}), inside)
            if rest or name in there:
                merged[name] = rest
        elif name in there or name not in earlier:
            merged[name] = part
    # The order of variables matters, since one can be made of those before it.
    ordered = {name: merged[name] for name in (*there, *here) if name in merged}
    return ordered if isinstance(shape, Mapping) else list(ordered.values())


def _open(value: Any, shape: Shape) -> Tree:
    """Parts by their names; those of a list by what tells them apart."""
    if not value:
        return {}
    if isinstance(shape, Mapping):
        return dict(value)
    return {"/".join(str(item.get(key, "")) for key in shape): item for item in value}


def _inside(shape: Shape, name: str) -> Shape | None:
    return shape.get(name) if isinstance(shape, Mapping) else None
