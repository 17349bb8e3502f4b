"""Whatever happens in whatever order, the graph of owners knows every child of every owner.

Covers: kubewright.cluster.controller_manager.garbage
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kubewright.api.metadata import ObjectMeta, OwnerReference
from kubewright.cluster.controller_manager.garbage.graph import Graph, ObjectReference

UIDS = st.sampled_from("abcdef")
Event = tuple[str, str, list[tuple[str, bool]]]

SEEN: st.SearchStrategy[Event] = st.tuples(
    st.just("seen"), UIDS, st.lists(st.tuples(UIDS, st.booleans()), max_size=3, unique_by=lambda o: o[0])
)
GONE: st.SearchStrategy[Event] = st.tuples(st.just("gone"), UIDS, st.just([]))


def ref(uid: str) -> ObjectReference:
    return ObjectReference("v1", "ConfigMap", "shop", uid, uid)


def metadata(owners: list[tuple[str, bool]]) -> ObjectMeta:
    return ObjectMeta(
        owner_references=[
            OwnerReference(api_version="v1", kind="ConfigMap", name=uid, uid=uid, block_owner_deletion=block)
            for uid, block in owners
        ]
    )


@given(st.lists(st.one_of(SEEN, GONE), max_size=40))
def test_children_are_found_from_their_owners_and_nobody_else_is(
    events: list[Event],
) -> None:
    graph = Graph()
    alive: dict[str, list[tuple[str, bool]]] = {}
    dead: set[str] = set()
    told: dict[str, set[str]] = {}
    for what, uid, owners in events:
        if what == "seen" and uid in dead:
            continue  # a uid is never used again
        if what == "seen":
            alive[uid] = owners
            work = graph.add_or_update(ref(uid), metadata(owners))
        else:
            children = {child for child, its in alive.items() if uid in dict(its) and child != uid}
            was_known = uid in graph.nodes
            alive.pop(uid, None)
            dead.add(uid)
            work = graph.remove(uid)
            if was_known:
                # Those an earlier end of this owner was about have been looked at, and are not named again.
                assert children - told.get(uid, set()) <= {target for _, target in work}
                told.setdefault(uid, set()).update(children)
        for known in alive:
            assert known in graph.nodes
            assert not graph.nodes[known].virtual
        for member in graph.nodes.values():
            if member.virtual:
                assert member.dependents  # nobody keeps an owner in mind that no child names
            for child in member.dependents:
                assert member.ref.uid in dict(alive[child])
