"""The store of the API server: any past version can be read back, and a watch from it tells the whole story.

Covers: kubewright.apiserver.storage
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.apiserver.storage.store import Change, Compacted, Store

KEYS = [f"{namespace}/{name}" for namespace in ("a", "a-b", "b") for name in ("x", "y", "z")]
Steps = st.lists(st.tuples(st.sampled_from(KEYS), st.sampled_from(["put", "delete"])), max_size=40)


class Seen:
    def __init__(self) -> None:
        self.changes: list[Change] = []

    def deliver(self, change: Change) -> None:
        self.changes.append(change)

    def table_gone(self) -> None:
        raise AssertionError("the table stays")


def grown(steps: list[tuple[str, str]], *, history: int = 1000) -> tuple[Store, dict[int, dict[str, bytes]], Seen]:
    """A store after some steps, what it held at each version, and what a watcher from the start saw."""
    store, seen = Store(history=history), Seen()
    table = store.table("/things")
    table.watch(seen)
    state: dict[str, bytes] = {}
    states = {store.version: dict(state)}
    for key, step in steps:
        if step == "delete" and key not in state:
            continue
        version = store.next_version()
        value = f"{key} at {version}".encode()
        if step == "put":
            table.put(key, value, version)
            state[key] = value
        else:
            table.delete(key, value, version)
            del state[key]
        states[version] = dict(state)
    return store, states, seen


@given(Steps)
def test_every_version_can_be_read_as_it_was(steps: list[tuple[str, str]]) -> None:
    store, states, _ = grown(steps)
    table = store.table("/things")

    for version, state in states.items():
        assert [(entry.key, entry.value) for entry in table.entries_at(version)] == sorted(state.items())
        wanted = sorted((key, value) for key, value in state.items() if key.startswith("a/"))
        assert [(entry.key, entry.value) for entry in table.entries_at(version, "a")] == wanted


@given(Steps, st.data())
def test_changes_since_a_version_lead_from_it_to_the_present(steps: list[tuple[str, str]], data: st.DataObject) -> None:
    store, states, seen = grown(steps)
    table = store.table("/things")
    start = data.draw(st.sampled_from(sorted(states)))

    state = dict(states[start])
    for change in table.changes_since(start):
        assert (change.old.value if change.old else None) == state.get(change.key)
        if change.new is None:
            del state[change.key]
        else:
            state[change.key] = change.new.value
    assert state == {entry.key: entry.value for entry in table.entries()}
    assert [change.version for change in seen.changes] == sorted(states)[1:]


@given(Steps, st.sampled_from(KEYS))
def test_pages_go_on_behind_a_key_and_count_what_is_left(steps: list[tuple[str, str]], after: str) -> None:
    table = grown(steps)[0].table("/things")
    everything = [entry.key for entry in table.entries()]

    assert [entry.key for entry in table.entries(after=after)] == [key for key in everything if key > after]
    assert table.count(None, after=after) == sum(key > after for key in everything)
    in_namespace = [key for key in everything if key.startswith("a/")]
    assert [entry.key for entry in table.entries("a", after=after)] == [key for key in in_namespace if key > after]
    assert table.count("a", after=after) == sum(key > after for key in in_namespace)


@given(Steps)
def test_what_is_forgotten_is_said_and_the_rest_is_whole(steps: list[tuple[str, str]]) -> None:
    store, states, _ = grown(steps, history=5)
    table = store.table("/things")

    for version, state in states.items():
        if version < table.compacted_version:
            with pytest.raises(Compacted):
                table.entries_at(version)
        else:
            assert {entry.key: entry.value for entry in table.entries_at(version)} == state
