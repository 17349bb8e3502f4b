"""What can be wrong with a tool that its schema does not see.

Pure, and used twice: by the webhook, which refuses it, and by the reconciler, which also works where no webhook was.
"""

from kubewright import FieldErrors
from kubewright.errors import DecodeError

from podbuggertool.api.v1alpha1.podbuggertool import PodBuggerTool
from podbuggertool.container import container_part
from podbuggertool.matching import selector_of


def check(tool: PodBuggerTool, old: PodBuggerTool | None, errors: FieldErrors) -> None:
    """Add everything that is wrong, `old` being the tool as it is stored."""
    _check_selection(tool, errors)
    if tool.spec.tty and not tool.spec.stdin:
        errors.add("spec.tty", "a terminal needs stdin")
    if old is not None:
        _check_name(tool, old, errors)


def _check_selection(tool: PodBuggerTool, errors: FieldErrors) -> None:
    label, selector = tool.spec.label, tool.spec.selector
    if (label is None) == (selector is None):
        errors.add("spec", "give either label or selector")
        return
    field = "spec.selector" if label is None else "spec.label"
    if label is not None and label.count("=") != 1:
        errors.add(field, "must be one label, written as key=value")
        return
    try:
        everything = selector_of(tool).selects_everything
    except DecodeError as error:
        errors.add(field, str(error))
        return
    if everything:
        errors.add(field, "must not be empty: that would be every pod of the namespace")


def _check_name(tool: PodBuggerTool, old: PodBuggerTool, errors: FieldErrors) -> None:
    """A container is known by its name, so pods that have the old one would never get the new."""
    same_name = tool.spec.container_name and tool.spec.container_name == old.spec.container_name
    if same_name and container_part(tool) != container_part(old):
        errors.add("spec.containerName", "must be changed too: containers that are there cannot be changed any more")
