"""Bodies of kinds that are never stored: Binding, Eviction and Scale.

They are decoded as strictly as stored kinds: the type must match, and every field must have its Go type.
"""

from __future__ import annotations

from typing import Final

from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.builtin.golang.decoder import normalize
from kubewright.apiserver.kinds.resources import Tree
from kubewright.apiserver.verbs.decode_errors import kind_mismatch
from kubewright.apiserver.wire.decoding import read_object
from kubewright.apiserver.wire.requests import Request
from kubewright.apiserver.wire.status_errors import bad_request

__all__ = ("BINDING", "EVICTION", "OLD_EVICTION", "SCALE", "as_kind", "decode_transient")

BINDING: Final = GroupVersionKind("", "v1", "Binding")
EVICTION: Final = GroupVersionKind("policy", "v1", "Eviction")
OLD_EVICTION: Final = GroupVersionKind("policy", "v1beta1", "Eviction")
"""Not served any more, but still taken: old clients drain nodes with it (AcceptsGroupVersion of EvictionREST)."""
SCALE: Final = GroupVersionKind("autoscaling", "v1", "Scale")


def decode_transient(request: Request, kind: GroupVersionKind, *, old: GroupVersionKind | None = None) -> Tree:
    """The body as an object of a kind, which may be of an `old` version with the same fields."""
    tree, _ = read_object(request, kind=kind)
    if old is not None and (tree.get("apiVersion"), tree.get("kind")) == (old.api_version, old.kind):
        return {**as_kind(tree, old), "apiVersion": kind.api_version}
    return as_kind(tree, kind)


def as_kind(tree: Tree, kind: GroupVersionKind) -> Tree:
    """A tree as an object of a kind, changed in place: type set, values canonical. Raises `StatusError` for another."""
    version, name = tree.get("apiVersion") or kind.api_version, tree.get("kind") or kind.kind
    if (version, name) != (kind.api_version, kind.kind):
        raise bad_request(kind_mismatch(kind, str(version), str(name)))
    tree["apiVersion"], tree["kind"] = version, name
    normalize(kind, tree)
    return tree
