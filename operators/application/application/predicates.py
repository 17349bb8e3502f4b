"""Which changes cause a reconcile. They run before anything is queued, so a change they drop costs nothing."""

from typing import Any

from kubewright import generation_changed
from kubewright.cache import Change
from kubewright.controllers import Predicate

__all__ = ("data_changed", "desired_state_changed")


def _deletion_changed(change: Change[Any]) -> bool:
    old, new = change.old_metadata, change.new_metadata
    return old is None or new is None or old.deletion_timestamp != new.deletion_timestamp


def _data_changed(change: Change[Any]) -> bool:
    old, new = change.old, change.new
    return old is None or new is None or (old.data, old.binary_data) != (new.data, new.binary_data)


desired_state_changed = (
    generation_changed | Predicate(_deletion_changed) | Predicate(lambda change: change.resync, "resync")
)
"""Of an Application: its spec, that it is terminating, or the periodic resync. Not its status, labels, annotations."""
data_changed = Predicate(_data_changed, "data_changed")
"""Of a ConfigMap: that it came, went, or has other data."""
