"""What makes controllers and the scheduler work without end."""

from __future__ import annotations

from typing import Any

from tests.security.harness.attack import NAMESPACE, Target, attack
from tests.security.harness.exchange import Answer

_APPS = "/apis/apps/v1/namespaces/edited"
_BATCH = "/apis/batch/v1/namespaces/edited"
_HUGE = 2_147_483_647


def _template(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


def _workload(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": _template(), **spec},
    }


@attack(by="editor", grows=True, seconds=8)
async def replicas_of_a_stateful_set(on: Target) -> Answer:
    """A StatefulSet of 2,147,483,647 replicas."""
    return await on.post(f"{_APPS}/statefulsets", _workload("huge", replicas=_HUGE, serviceName="a"))


@attack(by="editor", grows=True, seconds=8)
async def parallel_replicas_of_a_stateful_set(on: Target) -> Answer:
    """The same, all at once."""
    body = _workload("huge", replicas=_HUGE, serviceName="a", podManagementPolicy="Parallel")
    return await on.post(f"{_APPS}/statefulsets", body)


@attack(by="editor", spoils=True, seconds=8)
async def ordinals_of_a_stateful_set(on: Target) -> Answer:
    """A StatefulSet that begins to count at two billion."""
    body = _workload("huge", replicas=_HUGE, serviceName="a", ordinals={"start": _HUGE})
    return await on.post(f"{_APPS}/statefulsets", body)


@attack(by="editor", grows=True, seconds=8)
async def replicas_of_a_deployment(on: Target) -> Answer:
    """A Deployment of 2,147,483,647 replicas."""
    return await on.post(f"{_APPS}/deployments", _workload("huge", replicas=_HUGE))


@attack(by="editor", grows=True, seconds=8)
async def replicas_of_a_replica_set(on: Target) -> Answer:
    """A ReplicaSet of 2,147,483,647 replicas."""
    return await on.post(f"{_APPS}/replicasets", _workload("huge", replicas=_HUGE))


@attack(by="editor", grows=True, seconds=8)
async def replicas_of_a_replication_controller(on: Target) -> Answer:
    """A ReplicationController of as many."""
    body = {"metadata": {"name": "huge"}, "spec": {"replicas": _HUGE, "selector": {"a": "b"}, "template": _template()}}
    return await on.post(f"{NAMESPACE}/replicationcontrollers", body)


@attack(by="editor", grows=True, seconds=8)
async def parallelism_of_a_job(on: Target) -> Answer:
    """A Job of as many pods at a time."""
    spec = {"parallelism": _HUGE, "completions": _HUGE, "template": _template(restartPolicy="Never")}
    return await on.post(f"{_BATCH}/jobs", {"metadata": {"name": "huge"}, "spec": spec})


@attack(by="editor", grows=True, seconds=8)
async def indexes_of_a_job(on: Target) -> Answer:
    """An indexed Job with the largest number of completions that is allowed."""
    spec = {
        "parallelism": 100_000,
        "completions": 100_000,
        "completionMode": "Indexed",
        "template": _template(restartPolicy="Never"),
    }
    return await on.post(f"{_BATCH}/jobs", {"metadata": {"name": "huge"}, "spec": spec})


@attack(by="editor", spoils=True, seconds=5)
async def completed_indexes_of_a_job(on: Target) -> Answer:
    """A Job's status that says that four billion indexes are completed."""
    spec = {
        "parallelism": 1,
        "completions": 10,
        "completionMode": "Indexed",
        "template": _template(restartPolicy="Never"),
    }
    await on.post(f"{_BATCH}/jobs", {"metadata": {"name": "indexes"}, "spec": spec})
    status = {"completedIndexes": "0-4294967295", "failedIndexes": "0-" + "9" * 1000}
    return await on.patch(f"{_BATCH}/jobs/indexes/status", {"status": status})


@attack(by="editor", spoils=True, seconds=5)
async def a_schedule_that_never_comes(on: Target) -> Answer:
    """CronJobs whose schedules have no date, or one for each second since 1970."""
    answer = Answer(0)
    job = {"spec": {"template": _template(restartPolicy="Never")}}
    for number, schedule in enumerate(
        (
            "0 0 31 2 *",
            "*/1 * * * *",
            "@every 1ns",
            "TZ=x * * * * *",
            "1-59/0 * * * *",
            "0-" + "9" * 100 + " * * * *",
            ",".join(["*"] * 100_000) + " * * * *",
        )
    ):
        body = {
            "metadata": {"name": f"c{number}", "creationTimestamp": "1970-01-01T00:00:00Z"},
            "spec": {"schedule": schedule, "jobTemplate": job, "startingDeadlineSeconds": 9_000_000_000},
        }
        answer = await on.post(f"{_BATCH}/cronjobs", body)
        if answer.is_internal_error:
            return answer
    return answer


@attack(by="editor", grows=True, seconds=8)
async def a_large_template(on: Target) -> Answer:
    """A Deployment of a thousand replicas whose pods have a megabyte each."""
    template = _template()
    template["metadata"]["annotations"] = {"a": "x" * 250_000}
    template["spec"]["containers"][0]["env"] = [{"name": "V", "value": "x" * 800_000}]
    return await on.post(f"{_APPS}/deployments", _workload("large", replicas=1000, template=template))


@attack(by="editor", spoils=True, seconds=8)
async def selectors_of_a_service(on: Target) -> Answer:
    """A Service with a selector and ports without end."""
    ports = [{"name": f"p{n}", "port": n + 1} for n in range(20_000)]
    body = {"metadata": {"name": "many"}, "spec": {"selector": {"a": "b"}, "ports": ports}}
    return await on.post(f"{NAMESPACE}/services", body)


@attack(by="editor", spoils=True, seconds=8)
async def endpoints(on: Target) -> Answer:
    """Endpoints with a hundred thousand addresses, which are mirrored."""
    addresses = [{"ip": f"10.{n >> 16 & 255}.{n >> 8 & 255}.{n & 255}"} for n in range(90_000)]
    await on.post(f"{NAMESPACE}/services", {"metadata": {"name": "mirrored"}, "spec": {"ports": [{"port": 80}]}})
    body = {"metadata": {"name": "mirrored"}, "subsets": [{"addresses": addresses, "ports": [{"port": 80}]}]}
    return await on.post(f"{NAMESPACE}/endpoints", body)


@attack(by="editor", spoils=True, seconds=8)
async def affinities_of_a_pod(on: Target) -> Answer:
    """A pod whose affinity has tens of thousands of terms."""
    terms = [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {f"l{n}": "v"}}}
        for n in range(20_000)
    ]
    spec = {
        "containers": [{"name": "c", "image": "i"}],
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}},
    }
    return await on.post(f"{NAMESPACE}/pods", {"metadata": {"name": "affine"}, "spec": spec})


@attack(by="editor", spoils=True, seconds=8)
async def spread_constraints(on: Target) -> Answer:
    """A pod with tens of thousands of spread constraints and tolerations."""
    spread = [{"maxSkew": 1, "topologyKey": f"k{n}", "whenUnsatisfiable": "ScheduleAnyway"} for n in range(15_000)]
    tolerations = [{"key": f"k{n}", "operator": "Exists"} for n in range(20_000)]
    spec = {
        "containers": [{"name": "c", "image": "i"}],
        "topologySpreadConstraints": spread,
        "tolerations": tolerations,
    }
    return await on.post(f"{NAMESPACE}/pods", {"metadata": {"name": "spread"}, "spec": spec})


@attack(by="editor", spoils=True, seconds=8)
async def a_budget_over_everything(on: Target) -> Answer:
    """PodDisruptionBudgets, quotas of the user's own and a Job that is owned by itself."""
    body = {"metadata": {"name": "all"}, "spec": {"minAvailable": "9999999999999%", "selector": {}}}
    return await on.post("/apis/policy/v1/namespaces/edited/poddisruptionbudgets", body)


@attack(by="admin", spoils=True, seconds=8)
async def a_range_of_addresses(on: Target) -> Answer:
    """A ServiceCIDR of 2^64 addresses, and a Service that wants one of it."""
    answer = await on.post(
        "/apis/networking.k8s.io/v1/servicecidrs",
        {"metadata": {"name": "wide"}, "spec": {"cidrs": ["fd00::/64", "10.0.0.0/8"]}},
    )
    await on.post(
        f"{NAMESPACE}/services",
        {"metadata": {"name": "wide"}, "spec": {"ports": [{"port": 80}], "ipFamilies": ["IPv6"]}},
    )
    return answer


@attack(by="admin", spoils=True, seconds=8)
async def pod_ranges_of_a_node(on: Target) -> Answer:
    """Ten nodes that say they can hold two billion pods, and claim a wide range of addresses."""
    answer = Answer(0)
    for n in range(10):
        body = {
            "metadata": {"name": f"huge-{n}"},
            "spec": {"podCIDR": "10.0.0.0/8", "podCIDRs": ["10.0.0.0/8"]},
            "status": {"allocatable": {"pods": str(_HUGE), "cpu": "1e18"}},
        }
        answer = await on.post("/api/v1/nodes", body)
    return answer


@attack(by="editor", spoils=True, seconds=8)
async def owners_in_a_circle(on: Target) -> Answer:
    """Three objects, each of which is owned by the next."""
    path = f"{NAMESPACE}/configmaps"
    for n in range(3):
        await on.post(path, {"metadata": {"name": f"circle-{n}", "finalizers": ["a/b"]}})
    import json

    uids = [json.loads((await on.get(f"{path}/circle-{n}")).body)["metadata"]["uid"] for n in range(3)]
    for n in range(3):
        owner = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": f"circle-{(n + 1) % 3}",
            "uid": uids[(n + 1) % 3],
            "blockOwnerDeletion": True,
        }
        await on.patch(f"{path}/circle-{n}", {"metadata": {"ownerReferences": [owner]}})
    return await on.ask("DELETE", f"{path}/circle-0?propagationPolicy=Foreground")
