"""Cluster policy: one object without a namespace that decides about many namespaces.

    kubewright run --embedded examples/cluster_policy.py

    echo '
    apiVersion: v1
    kind: List
    items:
    - apiVersion: v1
      kind: Namespace
      metadata: {name: payments, labels: {zone: restricted}}
    - apiVersion: policy.example.io/v1
      kind: Isolation
      metadata: {name: restricted}
      spec: {namespaces: {zone: restricted}}
    ' | kubectl apply -f -

Look at `kubectl get networkpolicies -A`. Label another namespace `zone=restricted`, then take the label away: the
NetworkPolicy that keeps traffic out comes and goes with it. An owner without a namespace may own children in any.

The traps: looking only at what should be there. A namespace that has lost the label is in no list of those that match,
so what was put there is looked for by its own label. The namespace must also wake the policies it matched *before* the
change: `by_index` asks with the old object and the new. And a terminating namespace takes no new objects.
"""

from collections.abc import Mapping
from typing import Annotated

from kubewright import Context, Field, ObjectMeta, Resource, Spec, Status, by_index, controller
from kubewright.k8s.core.v1 import Namespace
from kubewright.k8s.meta.v1 import LabelSelector
from kubewright.k8s.networking.v1 import NetworkPolicy, NetworkPolicySpec

LABEL = "policy.example.io/isolation"


class IsolationSpec(Spec):
    namespaces: Annotated[dict[str, str], Field(min_properties=1)]
    """The labels of the namespaces it is about; all of them."""


class IsolationStatus(Status):
    namespaces: list[str] = []
    """Where traffic is kept out now."""


class Isolation(
    Resource[IsolationSpec, IsolationStatus],
    group="policy.example.io",
    version="v1",
    scope="Cluster",
    columns={"Namespaces": ".status.namespaces"},
):
    """Namespaces whose pods nobody may call, unless another policy allows it."""


def pairs(labels: Mapping[str, str]) -> list[str]:
    return [f"{name}={value}" for name, value in labels.items()]


@controller(
    Isolation,
    owns=[NetworkPolicy],
    indexes={"labels": lambda isolation: pairs(isolation.spec.namespaces)},
    watches=[(Namespace, by_index("labels", lambda namespace: pairs(namespace.metadata.labels)))],
)
async def reconcile(isolation: Isolation, ctx: Context) -> None:
    name = isolation.metadata.name
    matching = await ctx.client.list(Namespace, labels=isolation.spec.namespaces)
    wanted = [namespace.metadata.name for namespace in matching if namespace.metadata.deletion_timestamp is None]
    for namespace in wanted:
        await ctx.apply(policy_for(isolation, namespace))
    for policy in await ctx.client.list(NetworkPolicy, labels={LABEL: name}):
        if policy.metadata.namespace not in wanted:
            await ctx.delete(policy)
    isolation.status.namespaces = sorted(wanted)
    ctx.condition("Enforced", True, message=f"{len(wanted)} namespaces are isolated")


def policy_for(isolation: Isolation, namespace: str) -> NetworkPolicy:
    name = isolation.metadata.name
    return NetworkPolicy(
        metadata=ObjectMeta(name=f"isolation-{name}", namespace=namespace, labels={LABEL: name}),
        # All pods, and no rule: nothing comes in.
        spec=NetworkPolicySpec(pod_selector=LabelSelector(), policy_types=["Ingress"]),
    )
