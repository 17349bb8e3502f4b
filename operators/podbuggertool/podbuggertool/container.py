"""The container that a tool adds: its name, and what it is.

Pure. An ephemeral container can neither be changed nor removed once it is there. So its name holds a hash of what it
is: a tool with another image is another container, and one that is there already is known by its name alone.
"""

import hashlib
import json
import re
from typing import Any, Final

from kubewright.api import to_tree
from kubewright.k8s.core.v1 import EphemeralContainer, Pod

from podbuggertool.api.v1alpha1.podbuggertool import PodBuggerTool

_PART: Final = (
    *("image", "command", "args", "env", "stdin", "tty"),
    *("imagePullPolicy", "targetContainer", "securityContext"),
)
"""The fields of a tool that make the container what it is."""


def container_part(tool: PodBuggerTool) -> dict[str, Any]:
    """What the container is, without its name."""
    spec = to_tree(tool.spec)
    return {field: spec[field] for field in _PART if field in spec}


def container_name(tool: PodBuggerTool) -> str:
    """The name that was chosen, or `pbt-<tool>-<hash>`.

    The tool's name may be longer than a container's and may have dots. It is hashed too: two tools whose names are cut
    to the same are still told apart.
    """
    if tool.spec.container_name:
        return tool.spec.container_name
    text = json.dumps([tool.metadata.name, container_part(tool)], sort_keys=True)
    return f"{_prefix(tool)}{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def holds_earlier(pod: Pod, tool: PodBuggerTool) -> bool:
    """Whether the pod has a container that the tool added when it was another."""
    made = re.compile(re.escape(_prefix(tool)) + "[0-9a-f]{8}")
    names = [present.name for present in pod.spec.ephemeral_containers or ()]
    return any(made.fullmatch(name) and name != container_name(tool) for name in names)


def _prefix(tool: PodBuggerTool) -> str:
    return f"pbt-{tool.metadata.name.replace('.', '-')[:40].rstrip('-')}-"


def container_for(tool: PodBuggerTool, pod: Pod) -> EphemeralContainer:
    """The container as it is added to a pod.

    Ports, resources, probes and lifecycle are not allowed for ephemeral containers, so a tool has no such fields.
    """
    spec = tool.spec
    return EphemeralContainer(
        name=container_name(tool),
        image=spec.image,
        command=spec.command or None,
        args=spec.args or None,
        env=spec.env or None,
        stdin=spec.stdin,
        tty=spec.tty,
        image_pull_policy=spec.image_pull_policy,
        target_container_name=_target(spec.target_container, pod),
        security_context=spec.security_context,
    )


def _target(chosen: str, pod: Pod) -> str | None:
    if chosen == "None":
        return None
    return pod.spec.containers[0].name if chosen == "First" else chosen
