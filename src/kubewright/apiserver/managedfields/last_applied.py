"""The last-applied-configuration annotation of client-side apply, for users who move to server-side apply.

For the manager `kubectl` alone, a field that still has the value of its last client-side apply is no conflict, and the
annotation, if there is one, is updated so that the user can go back to client-side apply. `field_manager` calls it. It
follows k8s.io/apimachinery/pkg/util/managedfields/internal/lastappliedmanager.go and lastappliedupdater.go.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final

from kubewright.api.patches import Json
from kubewright.apiserver.managedfields.comparison import compare
from kubewright.apiserver.managedfields.conflicts import Conflict
from kubewright.apiserver.managedfields.field_sets import FieldSet, difference, has
from kubewright.apiserver.managedfields.path_elements import ManagedFieldsError
from kubewright.apiserver.managedfields.typed_values import to_field_set
from kubewright.apiserver.managedfields.types import FieldType
from kubewright.apiserver.managedfields.validation import validate

__all__ = ("KUBECTL", "remove_last_applied_conflicts", "update_last_applied")

KUBECTL: Final = "kubectl"
ANNOTATION: Final = "kubectl.kubernetes.io/last-applied-configuration"
MAX_ANNOTATION_BYTES: Final = 256 * 1024

_HTML: Final = re.compile("[<>&\u2028\u2029]")


def remove_last_applied_conflicts(
    conflicts: Sequence[Conflict], manager: str, live: Json | None, api_version: str, kind: FieldType
) -> Sequence[Conflict]:
    """The conflicts without those about fields that are as the last client-side apply set them."""
    if manager != KUBECTL or live is None:
        return conflicts
    allowed = _last_applied_fields(live, api_version, kind)
    return conflicts if allowed is None else [one for one in conflicts if not has(allowed, one.steps)]


def _last_applied_fields(live: Json, api_version: str, kind: FieldType) -> FieldSet | None:
    """The fields that are as the last client-side apply set them; None without a usable annotation."""
    text = (live["metadata"].get("annotations") or {}).get(ANNOTATION)
    if not text:
        return None
    try:
        applied = json.loads(text)
    except ValueError:
        return None
    if not isinstance(applied, dict) or applied.get("apiVersion") != api_version:
        return None
    if validate(kind, applied) or validate(kind, live):
        return None
    try:
        fields, removed = compare(kind, applied, live)
        return difference(difference(to_field_set(kind, applied), fields), removed)
    except ManagedFieldsError:
        return None


def update_last_applied(whole: Json, intent: Json) -> Json:
    """The object with its annotation, if it has one, set to the intent."""
    annotations = whole["metadata"].get("annotations") or {}
    if not annotations.get(ANNOTATION):
        return whole
    applied = dict(intent)
    if "metadata" in applied:
        applied["metadata"] = dict(applied["metadata"])
        if applied["metadata"].get("annotations"):
            rest = {name: text for name, text in applied["metadata"]["annotations"].items() if name != ANNOTATION}
            applied["metadata"]["annotations"] = rest
            if not rest:
                del applied["metadata"]["annotations"]
    text = json.dumps(applied, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n"
    text = _HTML.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    updated = {**annotations, ANNOTATION: text}
    if sum(len(name.encode()) + len(value.encode()) for name, value in updated.items()) > MAX_ANNOTATION_BYTES:
        del updated[ANNOTATION]
    return {**whole, "metadata": {**whole["metadata"], "annotations": updated}}
