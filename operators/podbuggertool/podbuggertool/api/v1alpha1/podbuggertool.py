"""PodBuggerTool: the kind as a class. The CRD follows from it: `make generate` after a change.

The schema refuses what a schema can; what depends on more than one object, or on two versions of one, is asked by the
webhooks. The defaults of command, stdin, tty and pull policy are in `podbuggertool.defaults`: one of them depends on
another, which a schema cannot say.
"""

from typing import Annotated, Final, Literal

from kubewright import Field, Model, Resource, Rule, Spec, Status
from kubewright.k8s.core.v1 import EnvVar, SecurityContext
from kubewright.k8s.meta.v1 import LabelSelector

MOST_FAILURES: Final = 10
"""How many failures a status lists."""

_PREFIX = r"([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
_WORD = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_DNS_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"

# A rule and not a pattern, because it can say what is meant.
_IS_LABEL = Rule(
    rule=rf"self.matches(r'^{_PREFIX}{_WORD}=({_WORD})?$')", message="must be one label, written as key=value"
)

Count = Annotated[int, Field(ge=0, le=2**31 - 1, format="int32")]


class PodBuggerToolSpec(
    Spec,
    marker=Field(
        one_of=[("label", "selector")],
        rules=[
            Rule(
                rule="!has(self.tty) || !self.tty || !has(self.stdin) || self.stdin",
                message="a terminal needs stdin",
                field_path=".tty",
            )
        ],
    ),
):
    """Which pods get which container."""

    label: Annotated[str, Field(max_length=381, rules=[_IS_LABEL])] | None = None
    """Pods with this label, written as `key=value`, get the container. Either this or `selector`."""
    selector: Annotated[LabelSelector, Field(min_properties=1)] | None = None
    """Pods that this selects get the container. Either this or `label`."""
    image: Annotated[str, Field(pattern=r"^\S+$", max_length=1024)]
    """The image of the container."""
    container_name: Annotated[str, Field(pattern=f"^{_DNS_LABEL}$", max_length=63)] | None = None
    """The name of the container; made from the name of this object and what the container is, if not given."""
    command: list[str] | None = None
    """What the container runs, `sh` if not given; an empty list leaves it to the image."""
    args: list[str] = []
    """The arguments of the command."""
    env: Annotated[list[EnvVar], Field(list_type="map", list_map_keys=("name",))] = []
    """The container's environment."""
    stdin: bool | None = None
    """Keep standard input open, so that one can attach; true if not given."""
    tty: bool | None = None
    """Give the container a terminal, which needs stdin; the same as stdin if not given."""
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = None
    """When to pull the image; IfNotPresent if not given."""
    target_container: Annotated[str, Field(pattern=f"^(None|First|{_DNS_LABEL})$", max_length=63)] = "None"
    """Whose processes the container sees: `None`, the `First` container of the pod, or one by its name."""
    security_context: SecurityContext | None = None
    """The security context of the container."""
    wait_for: Literal["Running", "Ready"] = "Running"
    """Serve a pod as soon as it runs, even if it crashes again and again, or not before it is ready."""
    suspend: bool = False
    """Serve no further pods."""
    max_pods: Count = 0
    """At most so many pods get the container, the oldest first; 0 for no limit."""


class Failure(Model):
    """A pod that could not be served, or whose container does not start."""

    pod: str
    """The name of the pod."""
    reason: str
    """One word for programs."""
    message: str
    """A sentence for people."""


class PodBuggerToolStatus(Status):
    """What is there; brings observedGeneration and conditions."""

    matched_pods: Count = 0
    """How many pods of the namespace match and are to be served sooner or later."""
    installed_pods: Count = 0
    """How many of them have the container."""
    running_pods: Count = 0
    """In how many of them the container runs."""
    failed_pods: Count = 0
    """How many of them the API refused, or in how many the image cannot be pulled."""
    failures: Annotated[list[Failure], Field(max_items=MOST_FAILURES)] = []
    """Why; the newest first."""


class PodBuggerTool(
    Resource[PodBuggerToolSpec, PodBuggerToolStatus],
    group="apps.jicki.cn",
    version="v1alpha1",
    short_names=("pbt",),
    columns={
        "Label": ".spec.label",
        "Image": ".spec.image",
        "Matched": ".status.matchedPods",
        "Installed": ".status.installedPods",
        "Running": ".status.runningPods",
        "Age": ".metadata.creationTimestamp",
    },
):
    """A debugging container for all pods with a label."""
