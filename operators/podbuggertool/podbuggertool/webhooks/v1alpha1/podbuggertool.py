"""What is asked before PodBuggerTool objects are stored."""

from typing import Final

from kubewright import AdmissionRequest, Client, FieldErrors, Warnings, default, validate
from kubewright.errors import DecodeError
from kubewright.k8s.core.v1 import Pod

from podbuggertool.api.v1alpha1.podbuggertool import PodBuggerTool
from podbuggertool.defaults import set_defaults
from podbuggertool.matching import selector_of
from podbuggertool.validation import check

MANY: Final = 50
"""Above so many pods, one may have meant fewer."""


@default(PodBuggerTool)
def default_podbuggertool(tool: PodBuggerTool) -> None:
    """Fill in what the defaults of the schema cannot."""
    set_defaults(tool)


@validate(PodBuggerTool)
def validate_podbuggertool(tool: PodBuggerTool, old: PodBuggerTool | None, errors: FieldErrors) -> None:
    """Say what the rules of the schema cannot.

    What is stored already may stay: rules that became stricter must not keep labels from being edited.
    """
    if old is None or old.spec != tool.spec:
        check(tool, old, errors)


# It only warns, so a tool is stored as well where it cannot be asked.
@validate(PodBuggerTool, name="many", failure_policy="Ignore")
async def warn_of_many(tool: PodBuggerTool, request: AdmissionRequest, client: Client, warnings: Warnings) -> None:
    """Warn whoever is about to change many pods: what is added to them stays until they are gone."""
    try:
        labels = selector_of(tool)
    except DecodeError:  # the other validator says so
        return
    pods = await client.list(Pod, namespace=request.namespace, labels=labels, limit=MANY + 1)
    if len(pods) > MANY and not tool.spec.suspend and not 0 < tool.spec.max_pods <= MANY:
        warnings.add(f"more than {MANY} pods match; their new container stays until they are gone (see spec.maxPods)")
