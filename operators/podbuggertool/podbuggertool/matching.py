"""Which pods a tool is for, and which tools a pod concerns.

A tool acts on pods of its own namespace alone. To find the tools of a pod without asking each of them, every tool is
indexed by one label that its pods must have; those that demand no label with a certain value are all in one drawer.
"""

from collections.abc import Iterable
from typing import Final

from kubewright import Selector
from kubewright.controllers import Predicate
from kubewright.errors import DecodeError
from kubewright.k8s.core.v1 import Pod

from podbuggertool.api.v1alpha1.podbuggertool import PodBuggerTool
from podbuggertool.pods import DISABLED, is_ready

INDEX: Final = "label"
"""The name of the index of tools."""
ANY: Final = "*"
"""The drawer of tools that any pod might concern; no label looks like this."""


def selector_of(tool: PodBuggerTool) -> Selector:
    """What selects the tool's pods; a DecodeError if it says what no label can be."""
    if tool.spec.label is None:
        return Selector.from_structured(tool.spec.selector)
    key, _, value = tool.spec.label.partition("=")
    return Selector.of({key: value})


def demanded_label(tool: PodBuggerTool) -> Iterable[str]:
    """Under what a tool is found: one `key=value` that all its pods have, or the drawer for the rest."""
    try:
        requirements = selector_of(tool).requirements
    except DecodeError:
        return ()
    labels = [f"{item.key}={item.values[0]}" for item in requirements if item.operator == "="]
    return labels[:1] or (ANY,)


def labels_of(pod: Pod) -> Iterable[str]:
    """Under what to look for the tools of a pod."""
    return (*(f"{key}={value}" for key, value in pod.metadata.labels.items()), ANY)


pod_matters = Predicate(
    lambda change: change.old is None or change.new is None or _facts(change.old) != _facts(change.new), "pod_matters"
)
"""A pod came, went, or changed in something that this operator looks at."""


def _facts(pod: Pod) -> tuple[object, ...]:
    return (
        pod.metadata.labels,
        pod.metadata.annotations.get(DISABLED),
        pod.metadata.deletion_timestamp,
        pod.spec.node_name,
        pod.spec.ephemeral_containers,
        pod.status.phase,
        is_ready(pod),
        pod.status.ephemeral_container_statuses,
    )
