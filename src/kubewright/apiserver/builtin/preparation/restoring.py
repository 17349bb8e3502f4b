"""Resets fields to those of the stored object.

The values are shared with the stored object, not copied: nothing changes them between here and the store.
"""

from __future__ import annotations

from typing import Final

from kubewright.apiserver.builtin.trees import Tree, section

__all__ = ("restore", "restore_metadata")

_METADATA: Final = (
    "deletionTimestamp",
    "generation",
    "selfLink",
    "labels",
    "annotations",
    "finalizers",
    "ownerReferences",
)


def restore(tree: Tree, old: Tree, name: str) -> None:
    """Reset a field to the old object's, or drop it if the old object has none."""
    if name in old:
        tree[name] = old[name]
    else:
        tree.pop(name, None)


def restore_metadata(obj: Tree, old: Tree) -> None:
    """Reset the metadata that a status endpoint may not write (`ResetObjectMetaForStatus`)."""
    metadata = section(obj, "metadata")
    for name in _METADATA:
        restore(metadata, old["metadata"], name)
