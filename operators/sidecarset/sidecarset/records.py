"""What a pod says about its injection: annotations that the webhook writes and the controller reads.

| annotation `apps.unisound.io/...` | holds |
| --- | --- |
| `sidecarset-hash` | JSON: for each set its hashes, containers and generation as they were injected, and which fields |
| `sidecarset-injected-list` | the names of the sets, sorted, with commas between them |
| `inject` | `"false"`: the pod's owner wants no sidecars |

Pods belong to their owners, who may write anything into annotations. What cannot be read is `BrokenRecordError`, no
crash. Pure.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kubewright.k8s.core.v1 import Pod

from sidecarset.hashes import Revision
from sidecarset.merge import Fields

__all__ = (
    "GROUP",
    "HASH",
    "INJECT",
    "INJECTED_LIST",
    "BrokenRecordError",
    "Record",
    "injected_sets",
    "records_of",
    "write",
)

GROUP = "apps.unisound.io/"
HASH = f"{GROUP}sidecarset-hash"
INJECTED_LIST = f"{GROUP}sidecarset-injected-list"
INJECT = f"{GROUP}inject"
_DEEPEST = 8


class BrokenRecordError(ValueError):
    """The annotation is not what the webhook wrote."""


@dataclass(frozen=True)
class Record:
    """What one set did to a pod."""

    revision: Revision
    containers: tuple[str, ...]
    generation: int
    fields: Fields = field(default_factory=dict)
    """The names of what was injected, in `containers` and in `volumes`; empty if the record is older than that."""


def records_of(pod: Pod) -> dict[str, Record]:
    """The records by the name of their set; BrokenRecordError if they cannot be read."""
    text = pod.metadata.annotations.get(HASH)
    if text is None:
        return {}
    try:
        return {str(name): _read(tree) for name, tree in json.loads(text).items()}
    except (AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError) as error:
        raise BrokenRecordError(
            f"the annotation {HASH} is not what was written at injection; delete the pod to have it made anew"
        ) from error


def write(annotations: dict[str, str], records: Mapping[str, Record]) -> None:
    """Put the records into annotations."""
    trees = {name: _tree(records[name]) for name in sorted(records)}
    annotations[HASH] = json.dumps(trees, separators=(",", ":"))
    annotations[INJECTED_LIST] = ",".join(sorted(records))


def injected_sets(annotations: Mapping[str, str]) -> frozenset[str]:
    """The names in the list: whom a change of the pod concerns, whatever its record looks like."""
    return frozenset(filter(None, annotations.get(INJECTED_LIST, "").split(",")))


def _read(tree: Any) -> Record:
    revision = Revision(hash=str(tree["hash"]), without_image=str(tree["hashWithoutImage"]))
    containers = tuple(map(str, tree["containers"]))
    return Record(revision, containers, int(tree["generation"]), _fields(tree.get("fields", {})))


def _fields(tree: Any, depth: int = 0) -> Fields:
    if depth > _DEEPEST:
        raise ValueError("names of fields are nested deeper than a container is")
    return {str(name): _fields(inside, depth + 1) for name, inside in tree.items()}


def _tree(record: Record) -> dict[str, Any]:
    return {
        "hash": record.revision.hash,
        "hashWithoutImage": record.revision.without_image,
        "containers": list(record.containers),
        "generation": record.generation,
        "fields": record.fields,
    }
