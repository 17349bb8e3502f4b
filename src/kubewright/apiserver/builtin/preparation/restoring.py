"""Put back what an endpoint may not change.

What is put back is shared with the stored object, not copied: from here on to the store nobody changes it.
"""

from __future__ import annotations

from typing import Final

from kubewright.apiserver.builtin.trees import Tree, section

__all__ = ("restore", "restore_metadata")

_KEPT: Final = (
    "deletionTimestamp",
    "generation",
    "selfLink",
    "labels",
    "annotations",
    "finalizers",
    "ownerReferences",
)


def restore(tree: Tree, old: Tree, name: str) -> None:
    """A field back to what it was, or away when it was not there."""
    if name in old:
        tree[name] = old[name]
    else:
        tree.pop(name, None)


def restore_metadata(obj: Tree, old: Tree) -> None:
    """All metadata an endpoint for a part of the object may not touch; managed fields are the server's."""
    metadata = section(obj, "metadata")
    for name in _KEPT:
        restore(metadata, old["metadata"], name)
