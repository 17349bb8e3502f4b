"""Predicates: which changes trigger a reconcile, joined with `&`, `|` and `~`.

    @controller(Cache, when=generation_changed | labels_changed)

A predicate decides what triggers a controller, never what the cache holds. Those about what *changed* pass every
creation and deletion. `spec_or_metadata_changed` is the default for the controller's own kind: an operator's own status
write must not trigger it for ever. Pure; `sources` calls them for each change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, final, get_args

from kubewright.api.metadata import ObjectMeta
from kubewright.api.selectors import Selector
from kubewright.cache.changes import Change, ChangeType
from kubewright.errors import ConfigError

__all__ = (
    "Predicate",
    "annotations_changed",
    "any_change",
    "any_version",
    "generation_changed",
    "labels_changed",
    "matches_labels",
    "on",
    "resource_version_changed",
    "spec_or_metadata_changed",
)

AnyChange = Change[Any]
_MEANT: Final = {
    "add": "added",
    "create": "added",
    "created": "added",
    "update": "updated",
    "modified": "updated",
    "change": "updated",
    "changed": "updated",
    "delete": "deleted",
    "remove": "deleted",
    "removed": "deleted",
}
"""Words of webhooks, watches and other frameworks."""


@final
class Predicate:
    """A condition on a change."""

    __slots__ = ("_name", "_test")

    def __init__(self, test: Callable[[AnyChange], bool], name: str | None = None) -> None:
        self._test = test
        self._name = name or str(getattr(test, "__name__", "predicate"))

    def __call__(self, change: AnyChange) -> bool:
        return self._test(change)

    def __and__(self, other: Predicate) -> Predicate:
        return Predicate(lambda change: self(change) and other(change), f"({self._name} & {other._name})")

    def __or__(self, other: Predicate) -> Predicate:
        return Predicate(lambda change: self(change) or other(change), f"({self._name} | {other._name})")

    def __invert__(self) -> Predicate:
        return Predicate(lambda change: not self(change), f"~{self._name}")

    def __repr__(self) -> str:
        return self._name


def on(*types: ChangeType) -> Predicate:
    """Only changes of these types: `on("added", "deleted")`."""
    for given in types:
        if given not in get_args(ChangeType):
            close = _MEANT.get(str(given))
            advice = f'write on("{close}")' if close else 'write it like on("added", "deleted")'
            raise ConfigError(f"on({given!r}) is never true: a change is added, updated or deleted; {advice}")
    if not types:
        raise ConfigError('on() is never true; name the changes, as in on("added", "deleted")')
    return Predicate(lambda change: change.type in types, f"on{types}")


def matches_labels(selector: str | Selector) -> Predicate:
    """Only objects whose labels match, before or after the change."""
    if not isinstance(selector, str | Selector):
        raise ConfigError(f"matches_labels({selector!r}): write the selector like kubectl, as in 'app=web,tier!=cache'")
    wanted = Selector.parse(selector) if isinstance(selector, str) else selector

    def test(change: AnyChange) -> bool:
        return any(
            metadata is not None and wanted.matches(metadata.labels)
            for metadata in (change.new_metadata, change.old_metadata)
        )

    return Predicate(test, f"matches_labels({wanted})")


def _on_update(differs: Callable[[ObjectMeta, ObjectMeta], bool]) -> Callable[[AnyChange], bool]:
    def test(change: AnyChange) -> bool:
        old, new = change.old_metadata, change.new_metadata
        return old is None or new is None or differs(old, new)

    return test


def _spec_or_metadata_differs(old: ObjectMeta, new: ObjectMeta) -> bool:
    return (
        old.generation != new.generation
        or old.uid != new.uid
        or old.deletion_timestamp != new.deletion_timestamp
        or old.labels != new.labels
        or old.annotations != new.annotations
        or old.finalizers != new.finalizers
        # A kind without generations, such as ConfigMap, says only that something changed.
        or (new.generation == 0 and old.resource_version != new.resource_version)
    )


FACTORIES: Final = (on, matches_labels)
"""Functions of this module that make a predicate, and are none themselves."""

any_change = Predicate(lambda change: True, "any_change")
"""Everything, resyncs included."""
generation_changed = Predicate(_on_update(lambda old, new: old.generation != new.generation), "generation_changed")
"""The desired state changed."""
labels_changed = Predicate(_on_update(lambda old, new: old.labels != new.labels), "labels_changed")
annotations_changed = Predicate(_on_update(lambda old, new: old.annotations != new.annotations), "annotations_changed")
resource_version_changed = Predicate(
    _on_update(lambda old, new: old.resource_version != new.resource_version), "resource_version_changed"
)
"""Anything changed: passes status changes, and no resyncs."""
spec_or_metadata_changed = Predicate(
    lambda change: change.resync or _on_update(_spec_or_metadata_differs)(change), "spec_or_metadata_changed"
)
"""Spec, metadata or deletionTimestamp changed, or it is a resync. A change of the status alone does not pass."""
any_version = Predicate(lambda change: change.resync or resource_version_changed(change), "any_version")
"""Anything changed, or it is a resync: the default for owned and other watched kinds."""
