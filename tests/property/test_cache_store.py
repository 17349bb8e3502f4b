"""The write overlay of objects that others and this process write, with events and answers in any order.

The model is the server's whole history. After each step: readers see a state at least as new as the watch has shown and
as the answers to this process; handlers got every change without gaps, also of what only readers have seen;
indexes equal recomputation.

Covers: kubewright.cache
"""

from __future__ import annotations

import json

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kubewright import ObjectKey, Resource, Spec, Status
from kubewright.cache.changes import Change
from kubewright.cache.overlay import WriteOverlay
from kubewright.cache.store import Entry, Store
from kubewright.testing.clock import VirtualClock


class ToySpec(Spec):
    color: str = ""


class ToyStatus(Status):
    pass


class Toy(Resource[ToySpec, ToyStatus], group="toys.example.io", version="v1"):
    """Has a color to be indexed by."""


COLORS = ("", "red", "green", "blue")
KEYS = (ObjectKey("one", "a"), ObjectKey("two", "b"))
keys = st.sampled_from((KEYS[0], *KEYS))  # most of it about one name: its objects come and go
colors = st.sampled_from(COLORS)


def entry_of(key: ObjectKey, uid: str, version: int, color: str) -> Entry:
    metadata = {"name": key.name, "namespace": key.namespace, "uid": uid, "resourceVersion": str(version)}
    if color:
        metadata["labels"] = {"color": color}  # type: ignore[assignment]  # a mapping among strings, as JSON has it
    return Entry(version, uid, json.dumps({"metadata": metadata, "spec": {"color": color}}).encode())


def by_color(toy: Toy) -> list[str]:
    return [toy.spec.color] if toy.spec.color else []


class OverlayMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.version = 0
        self.uids = 0
        self.clock = VirtualClock()
        self.store = Store(Toy)
        self.overlay = WriteOverlay(self.store, clock=self.clock)
        self.store.add_index("color", by_color)
        self.store.label_index("color")
        # The server: what is there, and everything that happened, as (version, key, state or None, last state).
        self.state: dict[ObjectKey, Entry] = {}
        self.history: list[tuple[int, ObjectKey, Entry | None, Entry]] = []
        self.position = 0
        self.seen = 0
        # This process: answers under way, and what was answered.
        self.answers: list[tuple[int, ObjectKey, Entry | None, Entry]] = []
        self.answered: dict[ObjectKey, int] = {}
        self.own: set[int] = set()
        # What handlers have got.
        self.delivered: dict[ObjectKey, Entry] = {}
        self.told_gone: set[str] = set()
        # What readers have seen last of each name.
        self.read: dict[ObjectKey, str] = {}

    def write(self, key: ObjectKey, color: str) -> tuple[int, ObjectKey, Entry | None, Entry]:
        self.version += 1
        present = self.state.get(key)
        if present is None:
            self.uids += 1
        uid = present.uid if present is not None else f"uid-{self.uids}"
        entry = self.state[key] = entry_of(key, uid, self.version, color)
        self.history.append((self.version, key, entry, entry))
        return self.history[-1]

    def delete(self, key: ObjectKey) -> tuple[int, ObjectKey, Entry | None, Entry]:
        self.version += 1
        last = self.state.pop(key)
        self.history.append((self.version, key, None, last))
        return self.history[-1]

    def hear(self, changes: list[Change[Toy]]) -> None:
        for change in changes:
            before = self.delivered.get(change.key)
            old, new = change.old_metadata, change.new_metadata
            if change.type == "added":
                assert before is None
            else:
                assert before is not None
                assert old is not None
                assert old.uid == before.uid
                if change.type == "updated":
                    assert new is not None
                    assert old.resource_version == str(before.version) != new.resource_version
            if new is None:
                assert old is not None
                del self.delivered[change.key]
                self.told_gone.add(old.uid)
            else:
                self.delivered[change.key] = Entry(int(new.resource_version), new.uid, b"")
                assert not change.own or int(new.resource_version) in self.own
        # Deletions come before additions when delivered together, but for what was added and deleted unseen.
        gone = {change.old_metadata.uid for change in changes if change.type == "deleted" and change.old_metadata}
        news = [(change.type, change.new_metadata) for change in changes]
        types = [kind for kind, after in news if after is None or after.uid not in gone]
        assert "deleted" not in types[sum(kind == "deleted" for kind in types) :]

    # --- the world ---

    @rule(key=keys, color=colors)
    def somebody_writes(self, key: ObjectKey, color: str) -> None:
        self.write(key, color)

    @rule(key=keys)
    def somebody_deletes(self, key: ObjectKey) -> None:
        if key in self.state:
            self.delete(key)

    @rule(key=keys, color=colors)
    def this_process_writes(self, key: ObjectKey, color: str) -> None:
        done = self.write(key, color)
        self.own.add(done[0])
        self.answers.append(done)

    @rule(key=keys, color=colors)
    def this_process_writes_and_is_answered_at_once(self, key: ObjectKey, color: str) -> None:
        self.this_process_writes(key, color)
        self.answer_arrives(-1)

    @rule(key=keys)
    def this_process_deletes(self, key: ObjectKey) -> None:
        if key in self.state:
            self.answers.append(self.delete(key))

    @precondition(lambda self: self.answers)
    @rule(number=st.integers(0, 100))
    def answer_arrives(self, number: int) -> None:
        version, key, entry, last = self.answers.pop(number % len(self.answers))
        if entry is not None:
            self.overlay.record_write(key, entry)
        else:
            self.overlay.record_deletion(key, last.uid, last.version)
        self.answered[key] = max(version, self.answered.get(key, 0))

    # --- the watch ---

    @precondition(lambda self: self.position < len(self.history))
    @rule()
    def watch_shows(self) -> None:
        version, key, entry, last = self.history[self.position]
        self.position += 1
        if entry is not None:
            changes = self.overlay.observe(key, entry)
        else:
            changes = self.overlay.observe_deletion(key, Entry(version, last.uid, last.data))
        self.seen = version
        self.hear(list(changes))
        self.overlay.advance("", version)

    @precondition(lambda self: self.position > 0)
    @rule()
    def watch_repeats_what_it_showed(self) -> None:
        version, key, entry, last = self.history[self.position - 1]
        if entry is not None:
            self.hear(list(self.overlay.observe(key, entry)))
        else:
            self.hear(list(self.overlay.observe_deletion(key, Entry(version, last.uid, last.data))))

    @precondition(lambda self: self.position == len(self.history) and self.version > 0)
    @rule()
    def bookmark_comes(self) -> None:
        self.overlay.advance("", self.version)

    @rule()
    def everything_is_listed(self) -> None:
        if self.version == 0:
            return
        self.hear(list(self.overlay.replace("", dict(self.state), self.version)))
        self.position, self.seen = len(self.history), self.version

    # --- what must hold ---

    def states(self, key: ObjectKey) -> list[Entry | None]:
        """Every state of an object from the version on that this process must know of."""
        floor = max(self.seen, self.answered.get(key, 0))
        at_floor: Entry | None = None
        later: list[Entry | None] = []
        for version, changed, entry, _ in self.history:
            if changed == key and version <= floor:
                at_floor = entry
            elif changed == key:
                later.append(entry)
        return [at_floor, *later]

    @invariant()
    def readers_see_nothing_older_than_they_must(self) -> None:
        for key in KEYS:
            assert self.store.entry(key) in self.states(key)

    @invariant()
    def when_all_is_known_the_store_is_the_server(self) -> None:
        if self.position == len(self.history) and not self.answers:
            assert dict(self.store.items()) == self.state
            assert {key: entry.version for key, entry in self.delivered.items()} == {
                key: entry.version for key, entry in self.state.items()
            }

    @invariant()
    def what_readers_saw_and_is_gone_has_been_told(self) -> None:
        for key, entry in self.store.items():
            self.read[key] = entry.uid
        if self.position < len(self.history):
            return
        unanswered = {key for _, key, _, _ in self.answers}
        for key, uid in self.read.items():
            present = self.state.get(key)
            assert key in unanswered or uid in self.told_gone or (present is not None and present.uid == uid)

    @invariant()
    def indexes_equal_recomputation(self) -> None:
        held = {key: json.loads(entry.data)["spec"]["color"] for key, entry in self.store.items()}
        for index in (self.store.index("color"), self.store.label_index("color")):
            assert index is not None
            assert {value: set(index.keys(value)) for value in index.values()} == {
                color: {key for key in held if held[key] == color} for color in set(held.values()) - {""}
            }
            assert index.indexed() == {key for key in held if held[key]}

    @invariant()
    def counts_are_right(self) -> None:
        assert len(self.store) == len(tuple(self.store.keys()))
        assert self.store.size == sum(len(entry.data) for _, entry in self.store.items())
        assert sum(self.store.count(namespace) for namespace in ("one", "two")) == len(self.store)


OverlayMachine.TestCase.settings = settings(max_examples=500, stateful_step_count=40, deadline=None)
TestView = OverlayMachine.TestCase


async def test_tombstone_of_an_object_created_here_does_not_expire_before_it_is_delivered() -> None:
    clock, key = VirtualClock(), KEYS[0]
    overlay = WriteOverlay(Store(Toy), clock=clock)
    list(overlay.replace("", {}, 10))
    overlay.record_write(key, entry_of(key, "uid-1", 12, ""))
    overlay.record_deletion(key, "uid-1", 12)
    for _ in range(2):
        await clock.advance(301)
        overlay.record_deletion(KEYS[1], "uid-2", 5)  # the next write expires tombstones

    assert [change.type for change in overlay.replace("", {}, 20)] == ["added", "deleted"]
