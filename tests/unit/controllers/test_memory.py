"""What a controller remembers of an object goes with the object."""

from __future__ import annotations

from kubewright import ObjectKey
from kubewright.cache.changes import change_of
from kubewright.controllers.memory import ControllerMemory
from kubewright.k8s.core.v1 import ConfigMap, Secret

OWNER = ObjectKey("shop", "owner")


def child(version: str = "2") -> ConfigMap:
    made = ConfigMap.named("child", "shop")
    made.metadata.uid, made.metadata.resource_version = "u", version
    return made


def remembering() -> ControllerMemory:
    memory = ControllerMemory(Secret)
    with memory.self_writes.track(OWNER, ConfigMap, child().key) as write:
        write.version = "2"
    memory.applied.remember(child(), child())
    memory.foreign.add(child(), OWNER)
    return memory


def test_a_deleted_child_is_forgotten() -> None:
    memory = remembering()
    own_event = change_of(old=child("1"), new=child())
    assert memory.self_writes.suppresses(own_event, OWNER, lambda: None)
    assert memory.applied.is_noop(child(), child())

    memory.forget(ConfigMap, child().key)

    assert not memory.self_writes.suppresses(own_event, OWNER, lambda: None)
    assert not memory.applied.is_noop(child(), child())
    assert set(memory.foreign.unblock(change_of(old=child()))) == {OWNER}


def test_a_deleted_owner_waits_for_no_foreign_object() -> None:
    memory = remembering()

    memory.forget(Secret, OWNER)

    assert not set(memory.foreign.unblock(change_of(old=child())))


def test_a_child_of_the_owners_name_does_not_end_its_wait() -> None:
    memory = remembering()

    memory.forget(ConfigMap, OWNER)

    assert set(memory.foreign.unblock(change_of(old=child()))) == {OWNER}


def test_deletions_by_others_are_counted_for_write_loops() -> None:
    memory = ControllerMemory(Secret)
    target, loops = (ConfigMap, child().key), []
    for now in range(8):
        loops.append(memory.write_loops.record_creation(target, "ConfigMap shop/child", now=float(now)))
        memory.forget(*target)
    loops.append(memory.write_loops.record_creation(target, "ConfigMap shop/child", now=8.0))

    assert [loop.pattern for loop in loops if loop is not None] == ["deleted"]
