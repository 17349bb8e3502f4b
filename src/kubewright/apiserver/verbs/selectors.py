"""Which objects of a table a list, a watch or a deletecollection selects: by namespace, labels and fields.

It is called for every object and every change, so it decodes no more than it must: namespace and name are in the key,
labels are decoded alone, and only other fields need the whole object.
"""

from __future__ import annotations

from typing import Final, final

import msgspec

from kubewright.api.selectors import FieldSelector, Selector
from kubewright.apiserver.builtin.field_selectors import unsupported_fields
from kubewright.apiserver.kinds.resources import Resource
from kubewright.apiserver.storage.store import Entry
from kubewright.apiserver.wire.decoding import decode_json
from kubewright.apiserver.wire.status_errors import bad_request

__all__ = ("Selection", "labels_of")

_IN_KEY: Final = ("metadata.name", "metadata.namespace")


class _Labels(msgspec.Struct):
    labels: dict[str, str] | None = None


class _LabelsOnly(msgspec.Struct):
    metadata: _Labels = msgspec.field(default_factory=_Labels)


_decode_labels: Final = msgspec.json.Decoder(_LabelsOnly).decode


def labels_of(value: bytes) -> dict[str, str]:
    """The labels of an object, from its bytes."""
    return _decode_labels(value).metadata.labels or {}


@final
class Selection:
    """The selectors of one request."""

    __slots__ = ("_fields", "_labels", "_other_fields", "_prefix", "_resource", "everything", "namespace")

    def __init__(self, resource: Resource, namespace: str, labels: Selector, fields: FieldSelector) -> None:
        names = {term.field for term in fields.terms}
        unsupported = _unsupported(resource, sorted(names)) if names else ""
        if unsupported:
            raise bad_request(unsupported)
        self.namespace = namespace
        self._resource = resource
        self._prefix = f"{namespace}/" if namespace else ""
        self._labels = None if labels.selects_everything else labels
        self._fields = None if fields.selects_everything else fields
        self._other_fields = bool(names - set(_IN_KEY))
        self.everything = self._labels is None and self._fields is None

    def matches(self, entry: Entry) -> bool:
        """Whether an object is selected."""
        if self._prefix and not entry.key.startswith(self._prefix):
            return False
        if self.everything:
            return True
        if self._fields is not None and not self._fields_match(self._fields, entry):
            return False
        return self._labels is None or self._labels.matches(labels_of(entry.value))

    def _fields_match(self, fields: FieldSelector, entry: Entry) -> bool:
        namespace, _, name = entry.key.rpartition("/")
        values = {"metadata.name": name, "metadata.namespace": namespace}
        if self._other_fields:
            values.update(self._resource.strategy.field_values(decode_json(entry.value)))
        return fields.matches(values)


def _unsupported(resource: Resource, names: list[str]) -> str:
    """The error for fields that cannot be selected by; empty if all can."""
    if not resource.custom:
        return unsupported_fields(resource.kind, names)
    known = {*_IN_KEY, *resource.strategy.selectable_fields}
    unknown = next((name for name in names if name not in known), "")
    return f"field label not supported: {unknown}" if unknown else ""
