"""DisruptionController: the status of PodDisruptionBudgets, which the eviction subresource checks.

Reconciles budgets; changes of the pods they select requeue them. The expected number of pods comes from the scale of
the pods' controllers: a percentage of the existing pods would shrink with every eviction. After
pkg/controller/disruption/disruption.go. Registered by `controllers`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, final

from kubewright._base.clock import Clock, SystemClock
from kubewright.api.conditions import Condition, set_condition
from kubewright.api.dynamic import Dynamic
from kubewright.api.intorstring import scaled_value
from kubewright.api.metadata import OwnerReference
from kubewright.api.names import ObjectKey
from kubewright.api.owners import controller_of
from kubewright.api.selectors import Selector
from kubewright.cluster.controller_manager.selector_index import SelectorIndex, pod_endpoints_changed
from kubewright.controllers.context import Context
from kubewright.controllers.declaration import Declaration, Watch, controller
from kubewright.controllers.reconcile import Result
from kubewright.errors import DecodeError, NotFound
from kubewright.k8s.apps.v1 import Deployment, ReplicaSet
from kubewright.k8s.core.v1 import Pod
from kubewright.k8s.policy.v1 import PodDisruptionBudget, PodDisruptionBudgetStatus

__all__ = ("DisruptionController",)

_DELETION_TIMEOUT: Final = timedelta(minutes=2)
"""DeletionTimeout of upstream: an eviction that has not deleted its pod by then does not count any more."""


@final
class DisruptionController:
    """Computes the status of PodDisruptionBudgets."""

    def __init__(self, *, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()

    def declaration(self) -> Declaration[PodDisruptionBudget]:
        """The controller to register with a manager."""
        index: SelectorIndex[PodDisruptionBudget] = SelectorIndex(_selector)
        return controller(
            PodDisruptionBudget,
            name="controllermanager",  # the source component of its events, as upstream
            watches=[
                Watch(PodDisruptionBudget, index.update),
                Watch(Pod, index.objects_for_pod, when=pod_endpoints_changed),
            ],
        )(self.reconcile)

    async def reconcile(self, budget: PodDisruptionBudget, ctx: Context) -> Result | None:
        """Count healthy pods and compute the allowed disruptions of one budget."""
        selector = _selector(budget)
        pods: list[Pod] = []
        if selector is not None:
            pods = (await ctx.client.list(Pod, namespace=ctx.key.namespace, labels=selector)).items
        if not pods:
            ctx.event("NoPods", "No matching pods found")
        pods = [pod for pod in pods if pod.status.phase not in ("Succeeded", "Failed")]
        try:
            expected, desired = await self._expected_pod_count(budget, pods, ctx)
        except (DecodeError, LookupError) as error:
            self._set_condition(budget, "False", "SyncFailed", str(error))
            return None
        now = self._clock.now()
        disrupted = self._disrupted_pods(budget, pods, now)
        healthy = sum(1 for pod in pods if _is_healthy(pod) and pod.metadata.name not in disrupted)
        allowed = max(0, healthy - desired) if expected > 0 else 0
        before = budget.status
        budget.status = PodDisruptionBudgetStatus(
            current_healthy=healthy,
            desired_healthy=desired,
            expected_pods=expected,
            disruptions_allowed=allowed,
            disrupted_pods=disrupted or None,
            conditions=before.conditions if before is not None else None,
            observed_generation=budget.metadata.generation or None,
        )
        self._set_condition(budget, *(("True", "SufficientPods", "") if allowed else ("False", "InsufficientPods", "")))
        if not disrupted:
            return None
        return Result(requeue_after=_DELETION_TIMEOUT.total_seconds())

    async def _expected_pod_count(
        self, budget: PodDisruptionBudget, pods: Sequence[Pod], ctx: Context
    ) -> tuple[int, int]:
        """The expected number of pods, and the desired number of healthy ones."""
        spec = budget.spec
        if spec.max_unavailable is not None:
            expected = await _expected_scale(pods, ctx)
            return expected, max(0, expected - scaled_value(spec.max_unavailable, expected, round_up=True))
        if isinstance(spec.min_available, str):
            expected = await _expected_scale(pods, ctx)
            return expected, scaled_value(spec.min_available, expected, round_up=True)
        return len(pods), spec.min_available or 0

    @staticmethod
    def _disrupted_pods(budget: PodDisruptionBudget, pods: Sequence[Pod], now: datetime) -> dict[str, datetime]:
        evicted = (budget.status.disrupted_pods if budget.status is not None else None) or {}
        present = {pod.metadata.name for pod in pods if pod.metadata.deletion_timestamp is None}
        return {name: at for name, at in evicted.items() if name in present and now - at < _DELETION_TIMEOUT}

    def _set_condition(self, budget: PodDisruptionBudget, status: str, reason: str, message: str) -> None:
        if budget.status is None:
            budget.status = PodDisruptionBudgetStatus(
                current_healthy=0, desired_healthy=0, expected_pods=0, disruptions_allowed=0
            )
        conditions: list[Condition] = list(budget.status.conditions or ())
        set_condition(
            conditions,
            "DisruptionAllowed",
            status == "True",
            reason=reason,
            message=message,
            observed_generation=budget.metadata.generation or None,
            now=self._clock.now().replace(microsecond=0),
        )
        budget.status.conditions = conditions


def _selector(budget: PodDisruptionBudget) -> Selector | None:
    return None if budget.spec.selector is None else Selector.from_structured(budget.spec.selector)


def _is_healthy(pod: Pod) -> bool:
    ready = any(item.type == "Ready" and item.status == "True" for item in pod.status.conditions or ())
    return ready and pod.metadata.deletion_timestamp is None


async def _expected_scale(pods: Sequence[Pod], ctx: Context) -> int:
    """The sum of the scales of the pods' controllers; pods without a controller do not count."""
    scales: dict[str, int] = {}
    seen_uids: set[str] = set()
    for pod in pods:
        reference = controller_of(pod)
        if reference is None or reference.uid in seen_uids:
            continue
        seen_uids.add(reference.uid)
        uid, replicas = await _controller_scale(reference, pod, ctx)
        scales[uid] = replicas
    return sum(scales.values())


async def _controller_scale(reference: OwnerReference, pod: Pod, ctx: Context) -> tuple[str, int]:
    key = ObjectKey(pod.metadata.namespace, reference.name)
    try:
        if reference.kind == "ReplicaSet":
            replica_set = await ctx.client.get(ReplicaSet, key)
            owner_of_owner = controller_of(replica_set)
            if owner_of_owner is not None and owner_of_owner.kind == "Deployment":
                deployment = await ctx.client.get(Deployment, ObjectKey(key.namespace, owner_of_owner.name))
                return owner_of_owner.uid, _or_default(deployment.spec.replicas)
            return reference.uid, _or_default(replica_set.spec.replicas)
        scale = await ctx.client.live.scales.get(Dynamic(reference.api_version, reference.kind), key)
        return reference.uid, scale.spec.replicas
    except NotFound:
        raise LookupError(f'found no controllers for pod "{pod.metadata.name}"') from None


def _or_default(replicas: int | None) -> int:
    return 1 if replicas is None else replicas
