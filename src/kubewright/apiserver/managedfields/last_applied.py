"""The annotation client-side apply leaves behind, and how kubectl gets from there to server-side apply.

For the manager `kubectl` alone, a conflict about a field that is still as its last client-side apply set it is no
conflict; and the annotation, where there is one, is kept up to date, so that a way back stays open.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final

from kubewright.api.patches import Json
from kubewright.apiserver.managedfields.comparison import changes
from kubewright.apiserver.managedfields.conflicts import Conflict
from kubewright.apiserver.managedfields.field_sets import FieldSet, difference, has
from kubewright.apiserver.managedfields.path_elements import Misfit
from kubewright.apiserver.managedfields.typed_values import claim
from kubewright.apiserver.managedfields.types import FieldType
from kubewright.apiserver.managedfields.validation import misfits

__all__ = ("KUBECTL", "remaining", "synchronized")

KUBECTL: Final = "kubectl"
ANNOTATION: Final = "kubectl.kubernetes.io/last-applied-configuration"
MOST_BYTES: Final = 256 * 1024

_HTML: Final = re.compile("[<>&\u2028\u2029]")


def remaining(
    conflicts: Sequence[Conflict], manager: str, live: Json | None, api_version: str, kind: FieldType
) -> Sequence[Conflict]:
    """The conflicts that stay conflicts."""
    if manager != KUBECTL or live is None:
        return conflicts
    allowed = _still_as_applied(live, api_version, kind)
    return conflicts if allowed is None else [one for one in conflicts if not has(allowed, one.steps)]


def _still_as_applied(live: Json, api_version: str, kind: FieldType) -> FieldSet | None:
    """The fields client-side apply set, and that are as it set them; None if it never was here."""
    text = (live["metadata"].get("annotations") or {}).get(ANNOTATION)
    if not text:
        return None
    try:
        applied = json.loads(text)
    except ValueError:
        return None
    if not isinstance(applied, dict) or applied.get("apiVersion") != api_version:
        return None
    if misfits(kind, applied) or misfits(kind, live):
        return None
    try:
        fields, gone = changes(kind, applied, live)
        return difference(difference(claim(kind, applied), fields), gone)
    except Misfit:
        return None


def synchronized(whole: Json, intent: Json) -> Json:
    """The object with the annotation, if it has one, as the intent would be written there."""
    annotations = whole["metadata"].get("annotations") or {}
    if not annotations.get(ANNOTATION):
        return whole
    said = dict(intent)
    if "metadata" in said:
        said["metadata"] = dict(said["metadata"])
        if said["metadata"].get("annotations"):
            rest = {name: text for name, text in said["metadata"]["annotations"].items() if name != ANNOTATION}
            said["metadata"]["annotations"] = rest
            if not rest:
                del said["metadata"]["annotations"]
    text = json.dumps(said, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n"
    text = _HTML.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    fitting = {**annotations, ANNOTATION: text}
    if sum(len(name.encode()) + len(value.encode()) for name, value in fitting.items()) > MOST_BYTES:
        del fitting[ANNOTATION]
    return {**whole, "metadata": {**whole["metadata"], "annotations": fitting}}
