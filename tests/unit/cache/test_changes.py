"""A change made by hand, for other sources and for tests."""

from __future__ import annotations

from typing import Any

import pytest

from kubewright.cache.changes import change_of
from kubewright.cache.versions import is_newer, parse_version, version_text


def test_change_between_objects_at_hand(rig: Any) -> None:
    old, new = rig.written("a", 3), rig.written("a", 4)

    added, updated, deleted = change_of(new=new), change_of(old=old, new=new, own=True), change_of(old=old)

    assert (added.type, added.key, added.old, added.new) == ("added", new.key, None, new)
    assert (updated.type, updated.old_metadata, updated.new_metadata) == ("updated", old.metadata, new.metadata)
    assert (deleted.type, deleted.new, deleted.kind) == ("deleted", None, rig.kind)
    assert updated.own
    with pytest.raises(ValueError, match="an old object, a new one or both"):
        change_of()


def test_versions_compare_as_numbers_and_else_by_difference() -> None:
    assert [parse_version(text) for text in ("12", "0", "x1", "", "\u0661")] == [12, 0, "x1", "", "\u0661"]
    assert is_newer(10, 9)
    assert not is_newer(9, 10)
    assert not is_newer(9, 9)
    assert is_newer("a", "b")
    assert is_newer("a", 9)
    assert not is_newer("a", "a")
    assert version_text(12) == "12"
