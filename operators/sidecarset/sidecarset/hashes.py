"""Two hashes of a spec: one tells whether a pod is up to date, the other whether it can be brought there.

Of a running pod only the images can be changed. So a pod whose containers differ from the spec in nothing but images
has the same hash without images, and can be updated in place; any other has to be made anew. Only what runs for as long
as the pod does counts: containers, and init containers that never end. Selectors, volumes and strategies are no
revision of what runs. Pure.
"""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from kubewright.api import to_tree

from sidecarset.api.v1alpha1.sidecarset import SidecarSetSpec

__all__ = ("Revision", "revision_of")

_LENGTH = 20


@dataclass(frozen=True)
class Revision:
    """What is recorded on a pod, and compared with what the spec gives now."""

    hash: str
    without_image: str


def revision_of(spec: SidecarSetSpec) -> Revision:
    """The hashes of a spec whose defaults are filled in."""
    native = [container for container in spec.init_containers if container.restart_policy == "Always"]
    containers = [to_tree(container) for container in (*spec.containers, *native)]
    whole = _digest(containers)
    return Revision(hash=whole, without_image=_digest([{**tree, "image": ""} for tree in containers]))


def _digest(trees: list[dict[str, Any]]) -> str:
    text = json.dumps(trees, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_LENGTH]
