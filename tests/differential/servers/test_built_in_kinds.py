"""Kinds with ways of their own, and their subresources: both servers must know them.

Covers: kubewright.apiserver.builtin, kubewright.apiserver.verbs
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
from tests.builders.pods import pod_tree
from tests.builders.services import service_tree
from tests.differential.servers.server_pair import (
    Request,
    ServerPair,
    apply,
    delete,
    get,
    json_patch,
    merge,
    post,
    put,
    run_case,
    strategic,
)

pytestmark = pytest.mark.real

NS = "/api/v1/namespaces/{ns}"
PODS, POD = f"{NS}/pods", f"{NS}/pods/p"
SERVICES, SERVICE = f"{NS}/services", f"{NS}/services/s"
SECRETS = f"{NS}/secrets"
APPS = "/apis/apps/v1/namespaces/{ns}"
BATCH = "/apis/batch/v1/namespaces/{ns}"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases"
PDBS = "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets"
HPA1 = "/apis/autoscaling/v1/namespaces/{ns}/horizontalpodautoscalers"
HPA2 = "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers"
EVENTS = f"{NS}/events"
NEW_EVENTS = "/apis/events.k8s.io/v1/namespaces/{ns}/events"
NETWORKING = "/apis/networking.k8s.io/v1/namespaces/{ns}"
ACCOUNT = post(f"{NS}/serviceaccounts", {"metadata": {"name": "default"}}, quiet=True)
TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "a", "image": "b"}]},
}
SELECTOR = {"matchLabels": {"app": "web"}}


def named(name: str = "x", **members: Any) -> dict[str, Any]:
    """An object of any kind."""
    return {"metadata": {"name": name}, **members}


pod = partial(pod_tree, "p", app="web", container={"name": "a", "image": "b"})
"""A pod of one container."""


GREEDY = {
    **pod(containers=[{"name": "a", "image": "b", "resources": {"limits": {"cpu": "5"}}}]),
    "metadata": {"name": "q"},
}


service = partial(service_tree, "s")
"""A Service of one port."""


def unready(name: str, spec: dict[str, Any], status: dict[str, Any], ready: str) -> list[Request]:
    """A running pod of its own budget, which allows nothing, is evicted."""
    own = {"app": name}
    limits = {"minAvailable": 1, "selector": {"matchLabels": own}, **spec}
    counted = {"observedGeneration": 1, "disruptionsAllowed": 0, "expectedPods": 2, **status}
    said = {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]}
    return [
        post(PODS, {**pod(nodeName="n"), "metadata": {"name": name, "labels": own}}),
        merge(f"{PODS}/{name}/status", {"status": said}),
        post(PDBS, named(name, spec=limits)),
        merge(f"{PDBS}/{name}/status", {"status": counted}),
        post(f"{PODS}/{name}/eviction", {"metadata": {"name": name}}),
        get(f"{PDBS}/{name}"),
    ]


def scale(replicas: Any, **meta: Any) -> dict[str, Any]:
    """A Scale of the deployment."""
    return {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": "web", "namespace": "{ns}", **meta},
        "spec": {"replicas": replicas},
    }


A_POD = [ACCOUNT, post(PODS, pod())]
RUNNING = [
    ACCOUNT,
    post(PODS, pod(nodeName="n")),
    merge(f"{POD}/status", {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}),
]
WEB = post(f"{APPS}/deployments", named("web", spec={"selector": SELECTOR, "template": TEMPLATE}))
SCALE = f"{APPS}/deployments/web/scale"

SUBRESOURCES: dict[str, Sequence[Request]] = {
    "status of a deployment": [
        WEB,
        get(f"{APPS}/deployments/web/status"),
        merge(f"{APPS}/deployments/web/status", {"status": {"replicas": 3}, "spec": {"replicas": 9}}),
        put(
            f"{APPS}/deployments/web/status",
            {
                **named("web", spec={"replicas": 5, "selector": SELECTOR, "template": TEMPLATE}),
                "status": {"replicas": 1},
            },
        ),
        merge(f"{APPS}/deployments/web/status", {"metadata": {"labels": {"a": "b"}}, "status": {"readyReplicas": -1}}),
        merge(f"{APPS}/deployments/web", {"status": {"replicas": 7}}),
        delete(f"{APPS}/deployments/web/status"),
        post(f"{APPS}/deployments/web/status", {}),
        get(f"{APPS}/deployments/nono/status"),
    ],
    "conditions of a deployment": [
        WEB,
        strategic(
            f"{APPS}/deployments/web/status",
            {"status": {"conditions": [{"type": "Available", "status": "True", "reason": "a"}]}},
        ),
        strategic(
            f"{APPS}/deployments/web/status",
            {"status": {"conditions": [{"type": "Progressing", "status": "True"}]}},
        ),
        strategic(
            f"{APPS}/deployments/web/status",
            {"status": {"conditions": [{"type": "Available", "$patch": "delete"}]}},
        ),
    ],
    "scale of a deployment": [
        WEB,
        get(SCALE),
        put(SCALE, scale(3)),
        merge(SCALE, {"spec": {"replicas": 5}}),
        json_patch(SCALE, {"op": "replace", "path": "/spec/replicas", "value": 6}),
        strategic(SCALE, {"spec": {"replicas": 7}}),
        merge(SCALE, {"spec": {"replicas": -1}}),
        merge(f"{SCALE}?dryRun=All", {"spec": {"replicas": 9}}),
        put(SCALE, scale(3, resourceVersion="1")),
        put(SCALE, {**scale(3), "metadata": {"name": "other"}}),
        get(f"{APPS}/deployments/nono/scale"),
        get(f"{APPS}/deployments/web"),
        delete(SCALE),
    ],
    "scale of others": [
        post(f"{APPS}/replicasets", named("web", spec={"selector": SELECTOR, "template": TEMPLATE})),
        merge(f"{APPS}/replicasets/web/scale", {"spec": {"replicas": 2}}),
        post(
            f"{APPS}/statefulsets", named("web", spec={"selector": SELECTOR, "template": TEMPLATE, "serviceName": "s"})
        ),
        merge(f"{APPS}/statefulsets/web/scale", {"spec": {"replicas": 2}}),
        post(f"{NS}/replicationcontrollers", named("web", spec={"selector": {"app": "web"}, "template": TEMPLATE})),
        merge(f"{NS}/replicationcontrollers/web/scale", {"spec": {"replicas": 2}}),
        get(f"{NS}/replicationcontrollers/web/scale"),
        get(f"{APPS}/daemonsets/web/scale"),
    ],
    "status of a pod": [
        *A_POD,
        merge(f"{POD}/status", {"status": {"phase": "Running", "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]}}),
        strategic(f"{POD}/status", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}),
        strategic(f"{POD}/status", {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}),
        merge(f"{POD}/status", {"spec": {"nodeName": "n"}}),
        merge(f"{POD}/status", {"metadata": {"labels": {"x": "y"}}}),
    ],
    "ephemeral containers": [
        *A_POD,
        strategic(f"{POD}/ephemeralcontainers", {"spec": {"ephemeralContainers": [{"name": "d", "image": "e"}]}}),
        strategic(f"{POD}/ephemeralcontainers", {"spec": {"ephemeralContainers": [{"name": "d", "image": "f"}]}}),
        get(f"{POD}/ephemeralcontainers"),
    ],
    "resizing": [
        ACCOUNT,
        post(
            PODS,
            pod(
                containers=[
                    {"name": "a", "image": "b", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}}
                ]
            ),
        ),
        strategic(
            f"{POD}/resize", {"spec": {"containers": [{"name": "a", "resources": {"requests": {"cpu": "1500m"}}}]}}
        ),
        strategic(POD, {"spec": {"containers": [{"name": "a", "resources": {"requests": {"cpu": "1"}}}]}}),
        strategic(f"{POD}/resize", {"spec": {"containers": [{"name": "a", "resources": {"requests": {"cpu": "9"}}}]}}),
        get(f"{POD}/resize"),
    ],
    "binding": [
        *A_POD,
        post(
            f"{POD}/binding",
            {"target": {"kind": "Node", "name": "n"}, "metadata": {"name": "p", "annotations": {"a": "b"}}},
        ),
        get(POD),
        post(f"{POD}/binding", {"target": {"name": "n"}, "metadata": {"name": "p"}}),
        post(f"{POD}/binding", {"target": {"name": ""}, "metadata": {"name": "p"}}),
        post(f"{NS}/bindings", {"target": {"name": "n"}, "metadata": {"name": "nono"}}),
        post(f"{POD}/binding", {"target": {"name": "n"}, "metadata": {"name": "other"}}),
        post(f"{POD}/binding?dryRun=All", {"target": {"name": "n"}, "metadata": {"name": "p"}}),
    ],
    "eviction": [
        *RUNNING,
        post(f"{POD}/eviction?dryRun=All", {"metadata": {"name": "p"}}),
        post(f"{POD}/eviction", {"metadata": {"name": "other"}}),
        post(f"{POD}/eviction", {"metadata": {"name": "p"}, "deleteOptions": {"preconditions": {"uid": "x"}}}),
        post(f"{POD}/eviction", {"metadata": {"name": "p"}}),
        get(POD),
        post(f"{PODS}/nono/eviction", {"metadata": {"name": "nono"}}),
    ],
    "eviction by an old client": [
        ACCOUNT,
        post(PODS, pod(), quiet=True),
        *(
            post(f"{POD}/eviction", {"apiVersion": version, "kind": "Eviction", "metadata": {"name": "p"}, **more})
            for version, more in (
                ("policy/v1beta2", {}),
                ("policy/v1alpha1", {}),
                ("extensions/v1beta1", {}),
                ("policy/v1beta1", {"deleteOptions": 5}),
                ("policy/v1beta1", {"deleteOptions": {"dryRun": ["All"]}}),
                ("policy/v1beta1", {}),
            )
        ),
    ],
    "eviction of a pod that is not ready": [
        ACCOUNT,
        *(
            item
            for number, (spec, status, ready) in enumerate(
                (
                    ({"unhealthyPodEvictionPolicy": "AlwaysAllow"}, {}, "False"),
                    ({"unhealthyPodEvictionPolicy": "AlwaysAllow"}, {}, "True"),
                    ({}, {"currentHealthy": 2, "desiredHealthy": 2}, "False"),
                    ({}, {"currentHealthy": 1, "desiredHealthy": 2}, "False"),
                    ({"unhealthyPodEvictionPolicy": "IfHealthyBudget"}, {}, "False"),
                )
            )
            for item in unready(f"p{number}", spec, status, ready)
        ),
    ],
    "eviction with a budget": [
        *RUNNING,
        post(PDBS, named("b", spec={"minAvailable": 1, "selector": SELECTOR})),
        post(f"{POD}/eviction", {"metadata": {"name": "p"}}),
        merge(
            f"{PDBS}/b/status",
            {
                "status": {
                    "observedGeneration": 1,
                    "disruptionsAllowed": 0,
                    "currentHealthy": 1,
                    "desiredHealthy": 1,
                    "expectedPods": 1,
                }
            },
        ),
        post(f"{POD}/eviction", {"metadata": {"name": "p"}}),
        merge(f"{PDBS}/b/status", {"status": {"disruptionsAllowed": 1}}),
        post(f"{POD}/eviction?dryRun=All", {"metadata": {"name": "p"}}),
        post(f"{POD}/eviction", {"metadata": {"name": "p"}}),
        get(f"{PDBS}/b"),
    ],
    "eviction with two budgets": [
        *RUNNING,
        post(PDBS, named("b", spec={"minAvailable": 1, "selector": SELECTOR})),
        post(PDBS, named("c", spec={"maxUnavailable": 1, "selector": SELECTOR})),
        post(f"{POD}/eviction", {"metadata": {"name": "p"}}),
    ],
    "eviction of a pod that waits": [
        *A_POD,
        post(PDBS, named("b", spec={"minAvailable": 1, "selector": SELECTOR})),
        post(f"{POD}/eviction", {"metadata": {"name": "p"}}),
        get(POD),
    ],
    "finalizing a namespace": [
        put(f"{NS}/finalize", {"metadata": {"name": "{ns}"}, "spec": {"finalizers": ["kubernetes", "a.io/b"]}}),
        put(f"{NS}/finalize", {"metadata": {"name": "{ns}"}, "spec": {"finalizers": ["foo"]}}),
        merge(f"{NS}/status", {"status": {"phase": "Foo"}}),
        merge(NS, {"spec": {"finalizers": []}}),
        delete(NS),
        post(f"{NS}/configmaps", named()),
        post(f"{NS}/configmaps?dryRun=All", named()),
        get(NS),
        delete(NS),
        put(f"{NS}/finalize", {"metadata": {"name": "{ns}"}, "spec": {"finalizers": []}}),
        get(NS),
    ],
    "status of others": [
        post(f"{NS}/services", service()),
        merge(f"{SERVICE}/status", {"status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}}),
        post(
            f"{NS}/persistentvolumeclaims",
            named(spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}),
        ),
        merge(f"{NS}/persistentvolumeclaims/x/status", {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}}),
        get(f"{NS}/configmaps/x/status"),
        get(f"{NS}/secrets/x/status"),
        get(f"{LEASES}/x/status"),
    ],
}

KINDS: dict[str, Sequence[Request]] = {
    "Services": [
        post(SERVICES, service()),
        post(SERVICES, {**service(clusterIP="None"), "metadata": {"name": "t"}}),
        post(SERVICES, {**service(type="NodePort"), "metadata": {"name": "u"}}),
        post(SERVICES, {**service(type="LoadBalancer"), "metadata": {"name": "v"}}),
        post(SERVICES, {"metadata": {"name": "w"}, "spec": {"type": "ExternalName", "externalName": "a.b"}}),
        post(SERVICES, {**service(clusterIP="1.2.3.4"), "metadata": {"name": "x"}}),
        post(SERVICES, {**service(clusterIP="foo"), "metadata": {"name": "x"}}),
        post(SERVICES, {"metadata": {"name": "x"}}),
        post(SERVICES, {**service(), "metadata": {"name": "1x"}}),
        post(SERVICES, {"metadata": {"name": "x"}, "spec": {"ports": [{"port": 1}, {"port": 2}]}}),
        merge(SERVICE, {"spec": {"clusterIP": "10.9.9.9"}}),
        merge(SERVICE, {"spec": {"clusterIP": ""}}),
        merge(SERVICE, {"spec": {"type": "NodePort"}}),
        merge(
            SERVICE, {"spec": {"type": "ExternalName", "externalName": "a.b", "clusterIP": None, "clusterIPs": None}}
        ),
    ],
    "a Service with an address of its own": [
        post(SERVICES, service(), keep={"ip": "spec.clusterIP"}),
        post(SERVICES, {**service(clusterIP="${ip}"), "metadata": {"name": "t"}}, ignore=("message", "details")),
        delete(SERVICE),
        post(SERVICES, {**service(clusterIP="${ip}"), "metadata": {"name": "t"}}),
    ],
    "Services with node ports": [
        post(SERVICES, service(type="NodePort"), keep={"port": "spec.ports.0.nodePort"}),
        post(
            SERVICES, {"metadata": {"name": "t"}, "spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": 80}]}}
        ),
        merge(SERVICE, {"spec": {"type": "ClusterIP"}}),
    ],
    "Services, dry": [post(f"{SERVICES}?dryRun=All", service(type="NodePort")), get(SERVICE)],
    "Secrets": [
        post(SECRETS, named("a", stringData={"a": "b"}, data={"a": "eA==", "c": "eA=="})),
        post(SECRETS, named("b", data={"a": "!"})),
        post(SECRETS, named("c", type="kubernetes.io/tls")),
        post(SECRETS, named("d", type="kubernetes.io/tls", stringData={"tls.crt": "", "tls.key": ""})),
        post(SECRETS, named("e", type="kubernetes.io/dockerconfigjson", stringData={".dockerconfigjson": "x"})),
        post(SECRETS, named("f", type="kubernetes.io/basic-auth")),
        post(SECRETS, named("g", type="kubernetes.io/service-account-token")),
        merge(f"{SECRETS}/a", {"type": "foo"}),
        merge(f"{SECRETS}/a", {"stringData": {"z": "y"}}),
        merge(f"{SECRETS}/a", {"data": {"a": None}}),
        apply(
            f"{SECRETS}/h", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "h"}, "stringData": {"a": "b"}}
        ),
        merge(f"{SECRETS}/a", {"immutable": True}),
        merge(f"{SECRETS}/a", {"stringData": {"z": "x"}}),
    ],
    "Jobs": [
        post(f"{BATCH}/jobs", named(spec={"template": {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}})),
        post(f"{BATCH}/jobs", named("y", spec={"template": {"spec": TEMPLATE["spec"]}})),
        post(
            f"{BATCH}/jobs",
            named(
                "z",
                spec={
                    "completions": 3,
                    "parallelism": 2,
                    "completionMode": "Indexed",
                    "template": {"spec": {**TEMPLATE["spec"], "restartPolicy": "OnFailure"}},
                },
            ),
        ),
        merge(f"{BATCH}/jobs/x", {"spec": {"parallelism": 5}}),
        merge(f"{BATCH}/jobs/x", {"spec": {"completions": 5}}),
        merge(f"{BATCH}/jobs/x", {"spec": {"suspend": True}}),
        merge(f"{BATCH}/jobs/x/status", {"status": {"active": 1, "startTime": "2020-01-01T00:00:00Z"}}),
        delete(f"{BATCH}/jobs/x"),
        delete(f"{BATCH}/jobs/z", {"propagationPolicy": "Background"}),
    ],
    "CronJobs": [
        post(
            f"{BATCH}/cronjobs",
            named(
                spec={
                    "schedule": "* * * * *",
                    "jobTemplate": {"spec": {"template": {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}}},
                }
            ),
        ),
        post(
            f"{BATCH}/cronjobs",
            named("y", spec={"schedule": "foo", "jobTemplate": {"spec": {"template": {"spec": TEMPLATE["spec"]}}}}),
        ),
        merge(f"{BATCH}/cronjobs/x", {"spec": {"suspend": True, "timeZone": "Europe/Berlin"}}),
        merge(f"{BATCH}/cronjobs/x", {"spec": {"timeZone": "Nowhere"}}),
        delete(f"{BATCH}/cronjobs/x"),
    ],
    "autoscalers of the first version": [
        post(
            HPA1,
            named(
                spec={
                    "scaleTargetRef": {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"},
                    "maxReplicas": 3,
                    "targetCPUUtilizationPercentage": 50,
                }
            ),
        ),
        get(f"{HPA1}/x"),
        get(f"{HPA2}/x"),
        merge(f"{HPA2}/x", {"spec": {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 5}}}}),
        get(f"{HPA1}/x"),
        merge(f"{HPA1}/x", {"spec": {"maxReplicas": 5}}),
        get(HPA1),
        get(HPA2),
        merge(f"{HPA1}/x", {"spec": {"maxReplicas": 0}}),
    ],
    "autoscalers of the second version": [
        post(
            HPA2,
            named(
                spec={
                    "scaleTargetRef": {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"},
                    "minReplicas": 2,
                    "maxReplicas": 3,
                    "metrics": [
                        {
                            "type": "Resource",
                            "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}},
                        }
                    ],
                }
            ),
        ),
        get(f"{HPA1}/x"),
        apply(
            f"{HPA1}/x",
            {
                "apiVersion": "autoscaling/v1",
                "kind": "HorizontalPodAutoscaler",
                "metadata": {"name": "x"},
                "spec": {"maxReplicas": 9},
            },
            force=True,
        ),
        get(f"{HPA2}/x"),
        delete(f"{HPA1}/x"),
    ],
    "Events of the core group": [
        post(
            EVENTS,
            named(
                involvedObject={"kind": "Pod", "name": "p", "namespace": "{ns}"},
                reason="R",
                message="m",
                type="Normal",
                firstTimestamp="2020-01-01T00:00:00Z",
                count=1,
            ),
        ),
        get(f"{NEW_EVENTS}/x"),
        post(EVENTS, named("y", involvedObject={"namespace": "other"})),
        post(EVENTS, named("z")),
        strategic(f"{EVENTS}/x", {"count": 2, "lastTimestamp": "2020-01-01T00:01:00Z"}),
        merge(f"{EVENTS}/x", {"involvedObject": {"name": "q"}}),
        get(EVENTS),
        delete(f"{EVENTS}/x"),
    ],
    "Events of their own group": [
        post(
            NEW_EVENTS,
            named(
                eventTime="2020-01-01T00:00:00.000000Z",
                regarding={"kind": "Pod", "name": "p", "namespace": "{ns}"},
                reason="R",
                action="A",
                note="n",
                type="Normal",
                reportingController="a.io/b",
                reportingInstance="i",
            ),
        ),
        get(f"{EVENTS}/x"),
        post(NEW_EVENTS, named("y", regarding={"namespace": "{ns}"})),
        merge(f"{NEW_EVENTS}/x", {"series": {"count": 2, "lastObservedTime": "2020-01-01T00:00:01.000000Z"}}),
        merge(f"{NEW_EVENTS}/x", {"reason": "other"}),
        get(NEW_EVENTS),
        delete(NEW_EVENTS),
    ],
    "Leases": [
        post(
            LEASES,
            named(
                spec={
                    "holderIdentity": "a",
                    "leaseDurationSeconds": 15,
                    "renewTime": "2020-01-01T00:00:00.123456Z",
                    "acquireTime": "2020-01-01T00:00:00Z",
                }
            ),
        ),
        merge(f"{LEASES}/x", {"spec": {"holderIdentity": "b", "leaseTransitions": 1}}),
        merge(f"{LEASES}/x", {"spec": {"leaseDurationSeconds": 0}}),
        merge(f"{LEASES}/x", {"spec": {"leaseTransitions": -1}}),
        post(LEASES, named("y")),
        post(LEASES, named("z", spec={"renewTime": "foo"})),
        merge(f"{LEASES}/x", {"spec": None}),
    ],
    "Roles": [
        post(
            f"{RBAC}/namespaces/{{ns}}/roles",
            named(rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]),
        ),
        post(f"{RBAC}/namespaces/{{ns}}/roles", named("y", rules=[{"resources": ["pods"]}])),
        post(f"{RBAC}/namespaces/{{ns}}/roles", named("z", rules=[{"nonResourceURLs": ["/x"], "verbs": ["get"]}])),
        merge(f"{RBAC}/namespaces/{{ns}}/roles/x", {"rules": []}),
        merge(f"{RBAC}/namespaces/{{ns}}/roles/x", {"rules": None}),
        post(f"{RBAC}/clusterroles", named("{ns}", rules=[{"nonResourceURLs": ["/x"], "verbs": ["get"]}])),
        post(f"{RBAC}/clusterroles", named("{ns}-2", aggregationRule={"clusterRoleSelectors": []})),
        delete(f"{RBAC}/clusterroles/{{ns}}"),
    ],
    "bindings of roles": [
        post(
            f"{RBAC}/namespaces/{{ns}}/rolebindings",
            named(
                roleRef={"kind": "Role", "name": "r", "apiGroup": "rbac.authorization.k8s.io"},
                subjects=[{"kind": "ServiceAccount", "name": "s", "namespace": "{ns}"}],
            ),
        ),
        post(
            f"{RBAC}/namespaces/{{ns}}/rolebindings",
            named(
                "y",
                roleRef={"kind": "Role", "name": "r"},
                subjects=[
                    {"kind": "User", "name": "u"},
                    {"kind": "Foo", "name": "g"},
                    {"kind": "ServiceAccount", "name": "g"},
                ],
            ),
        ),
        merge(f"{RBAC}/namespaces/{{ns}}/rolebindings/x", {"roleRef": {"name": "other"}}),
        post(
            f"{RBAC}/clusterrolebindings",
            named("{ns}", roleRef={"kind": "ClusterRole", "name": "r"}, subjects=[{"kind": "Group", "name": "g"}]),
        ),
        post(f"{RBAC}/clusterrolebindings", named("{ns}-2", roleRef={"kind": "Role", "name": "r"})),
        delete(f"{RBAC}/clusterrolebindings/{{ns}}"),
    ],
    "pods": [
        ACCOUNT,
        post(PODS, pod()),
        post(PODS, named("q")),
        post(PODS, named("q", spec={"containers": [{"name": "A", "image": ""}]})),
        post(PODS, named("q", spec={"containers": [{"name": "a", "image": "b"}, {"name": "a", "image": "b"}]})),
        post(PODS, {**pod(serviceAccountName="nono"), "metadata": {"name": "q"}}),
        post(PODS, {**pod(priorityClassName="nono"), "metadata": {"name": "q"}}),
        post(PODS, {**pod(priorityClassName="system-node-critical"), "metadata": {"name": "r"}}),
        post(PODS, {**pod(automountServiceAccountToken=False), "metadata": {"name": "s"}}),
        post(PODS, {**pod(volumes=[{"name": "v", "emptyDir": {}}]), "metadata": {"name": "t"}}),
        merge(POD, {"spec": {"containers": [{"name": "a", "image": "c"}]}}),
        strategic(POD, {"spec": {"containers": [{"name": "a", "image": "c"}]}}),
        strategic(POD, {"spec": {"nodeName": "n"}}),
        strategic(POD, {"spec": {"activeDeadlineSeconds": 5}}),
        strategic(POD, {"spec": {"activeDeadlineSeconds": 9}}),
        strategic(POD, {"spec": {"tolerations": [{"key": "a", "operator": "Exists"}]}}),
        strategic(POD, {"spec": {"restartPolicy": "Never"}}),
    ],
    "pods with resources": [
        ACCOUNT,
        post(
            PODS,
            pod(containers=[{"name": "a", "image": "b", "resources": {"limits": {"cpu": "0.5", "memory": "1024Mi"}}}]),
        ),
        post(
            PODS,
            {
                **pod(
                    containers=[
                        {"name": "a", "image": "b", "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}}
                    ]
                ),
                "metadata": {"name": "q"},
            },
        ),
        post(
            PODS,
            {
                **pod(containers=[{"name": "a", "image": "b", "resources": {"limits": {"cpu": "x"}}}]),
                "metadata": {"name": "q"},
            },
        ),
        post(
            PODS,
            {
                **pod(containers=[{"name": "a", "image": "b", "resources": {"limits": {"cpu": 1, "memory": 1.5}}}]),
                "metadata": {"name": "r"},
            },
        ),
    ],
    "limits": [
        ACCOUNT,
        post(
            f"{NS}/limitranges",
            named(
                spec={
                    "limits": [
                        {
                            "type": "Container",
                            "default": {"cpu": "1"},
                            "defaultRequest": {"cpu": "500m"},
                            "max": {"cpu": "2"},
                        }
                    ]
                }
            ),
        ),
        # A server hears of limits a moment after they are stored.
        post(f"{PODS}?dryRun=All", GREEDY, until=lambda tree: tree.get("reason") == "Forbidden"),
        post(PODS, pod()),
        post(PODS, GREEDY),
        post(f"{NS}/limitranges", named("y", spec={"limits": [{"type": "Foo"}]})),
    ],
    "workloads": [
        WEB,
        post(f"{APPS}/deployments", named("y", spec={"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE})),
        post(f"{APPS}/deployments", named("y")),
        post(f"{APPS}/daemonsets", named(spec={"selector": SELECTOR, "template": TEMPLATE})),
        post(f"{APPS}/replicasets", named(spec={"selector": SELECTOR, "template": TEMPLATE})),
        post(
            f"{APPS}/statefulsets",
            named(
                spec={
                    "selector": SELECTOR,
                    "template": TEMPLATE,
                    "serviceName": "s",
                    "volumeClaimTemplates": [
                        named(
                            "c", spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
                        )
                    ],
                }
            ),
        ),
        merge(f"{APPS}/statefulsets/x", {"spec": {"serviceName": "t"}}),
        merge(f"{APPS}/daemonsets/x", {"spec": {"selector": {"matchLabels": {"x": "y"}}}}),
        post(f"{APPS}/controllerrevisions", named(revision=1, data={"a": 1})),
        merge(f"{APPS}/controllerrevisions/x", {"data": {"a": 2}}),
    ],
    "networking": [
        post(
            f"{NETWORKING}/ingresses",
            named(
                spec={
                    "rules": [
                        {
                            "host": "a.b",
                            "http": {
                                "paths": [
                                    {
                                        "path": "/",
                                        "pathType": "Prefix",
                                        "backend": {"service": {"name": "s", "port": {"number": 80}}},
                                    }
                                ]
                            },
                        }
                    ]
                }
            ),
        ),
        post(f"{NETWORKING}/ingresses", named("y")),
        post(f"{NETWORKING}/ingresses", named("y", spec={"rules": [{"http": {"paths": [{"path": "x"}]}}]})),
        post(f"{NETWORKING}/networkpolicies", named(spec={"podSelector": {}})),
        post(
            f"{NETWORKING}/networkpolicies",
            named("y", spec={"podSelector": {}, "egress": [{"to": [{"ipBlock": {"cidr": "x"}}]}]}),
        ),
        post(
            "/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices",
            named(addressType="IPv4", endpoints=[{"addresses": ["10.1.2.3"]}]),
        ),
        post(
            "/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices",
            named("y", addressType="IPv4", endpoints=[{"addresses": ["x"]}]),
        ),
        post(f"{NS}/endpoints", named(subsets=[{"addresses": [{"ip": "10.1.2.3"}], "ports": [{"port": 80}]}])),
    ],
    "storage": [
        post(
            f"{NS}/persistentvolumeclaims",
            named(spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}),
        ),
        merge(f"{NS}/persistentvolumeclaims/x", {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}),
        merge(f"{NS}/persistentvolumeclaims/x", {"spec": {"accessModes": ["ReadWriteMany"]}}),
        post(
            "/api/v1/persistentvolumes",
            named(
                "{ns}",
                spec={"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}},
            ),
        ),
        delete("/api/v1/persistentvolumes/{ns}"),
        post("/apis/storage.k8s.io/v1/storageclasses", named("{ns}", provisioner="a.io/b")),
        merge("/apis/storage.k8s.io/v1/storageclasses/{ns}", {"provisioner": "c.io/d"}),
        delete("/apis/storage.k8s.io/v1/storageclasses/{ns}"),
    ],
    "flow control that every server needs": [
        *(
            merge(f"/apis/flowcontrol.apiserver.k8s.io/v1/{path}", {"spec": spec})
            for path, spec in (
                ("flowschemas/exempt", {"matchingPrecedence": 2}),
                ("flowschemas/catch-all", {"distinguisherMethod": {"type": "ByNamespace"}}),
                ("flowschemas/catch-all", {"matchingPrecedence": 10000}),
                ("prioritylevelconfigurations/exempt", {"type": "Limited"}),
                ("prioritylevelconfigurations/catch-all", {"limited": {"lendablePercent": 5}}),
                ("prioritylevelconfigurations/catch-all", {"limited": {"lendablePercent": 0}}),
            )
        ),
    ],
    "the rest": [
        post(PDBS, named(spec={"minAvailable": "50%", "selector": SELECTOR})),
        post(PDBS, named("y", spec={"minAvailable": 1, "maxUnavailable": 1})),
        post("/apis/scheduling.k8s.io/v1/priorityclasses", named("{ns}", value=5)),
        merge("/apis/scheduling.k8s.io/v1/priorityclasses/{ns}", {"value": 6}),
        delete("/apis/scheduling.k8s.io/v1/priorityclasses/{ns}"),
        post("/api/v1/nodes", named("{ns}")),
        merge(
            "/api/v1/nodes/{ns}", {"spec": {"unschedulable": True, "taints": [{"key": "a", "effect": "NoSchedule"}]}}
        ),
        merge("/api/v1/nodes/{ns}/status", {"status": {"capacity": {"cpu": "4"}}}),
        delete("/api/v1/nodes/{ns}"),
        post(f"{NS}/serviceaccounts", named(secrets=[{"name": "a"}])),
        post(f"{NS}/podtemplates", named(template=TEMPLATE)),
        post(f"{NS}/configmaps", named(binaryData={"a": "eA=="}, data={"a": "b"})),
        post("/api/v1/namespaces", named("{ns}-x", spec={"finalizers": []})),
        post("/api/v1/namespaces", named("A_B")),
        merge("/api/v1/namespaces/{ns}-x", {"metadata": {"labels": {"kubernetes.io/metadata.name": "other"}}}),
    ],
}

GROUPS = {"subresource": SUBRESOURCES, "kind": KINDS}


@pytest.mark.parametrize(
    "requests",
    [
        pytest.param(requests, id=f"{group}: {name}")
        for group, cases in GROUPS.items()
        for name, requests in cases.items()
    ],
)
async def test_a_kind_behaves_alike(quiet_pair: ServerPair, requests: Sequence[Request]) -> None:
    await run_case(quiet_pair, requests)


# What is wrong with metadata is told by the rules of all kinds and again by those of the kind, each in its own way.
SPOILED: dict[str, Any] = {
    "configmaps": (f"{NS}/configmaps", named()),
    "secrets": (SECRETS, named()),
    "services": (SERVICES, {**service(), "metadata": {"name": "x"}}),
    "serviceaccounts": (f"{NS}/serviceaccounts", named()),
    "endpoints": (f"{NS}/endpoints", named()),
    "events": (EVENTS, named(involvedObject={"namespace": "{ns}"})),
    "limitranges": (f"{NS}/limitranges", named()),
    "resourcequotas": (f"{NS}/resourcequotas", named()),
    "podtemplates": (f"{NS}/podtemplates", named(template=TEMPLATE)),
    "replicationcontrollers": (f"{NS}/replicationcontrollers", named(spec={"template": TEMPLATE})),
    "claims": KINDS["storage"][0],
    "pods": (PODS, {**pod(), "metadata": {"name": "x"}}),
    "deployments": (f"{APPS}/deployments", named(spec={"selector": SELECTOR, "template": TEMPLATE})),
    "replicasets": (f"{APPS}/replicasets", named(spec={"selector": SELECTOR, "template": TEMPLATE})),
    "daemonsets": (f"{APPS}/daemonsets", named(spec={"selector": SELECTOR, "template": TEMPLATE})),
    "statefulsets": (
        f"{APPS}/statefulsets",
        named(spec={"selector": SELECTOR, "template": TEMPLATE, "serviceName": "s"}),
    ),
    "jobs": KINDS["Jobs"][0],
    "cronjobs": KINDS["CronJobs"][0],
    "autoscalers": KINDS["autoscalers of the second version"][0],
    "leases": (LEASES, named()),
    "roles": KINDS["Roles"][0],
    "rolebindings": KINDS["bindings of roles"][0],
    "ingresses": KINDS["networking"][0],
    "networkpolicies": KINDS["networking"][3],
    "endpointslices": KINDS["networking"][5],
    "budgets": KINDS["the rest"][0],
}


@pytest.mark.parametrize("kind", SPOILED)
async def test_bad_metadata_is_refused_alike(quiet_pair: ServerPair, kind: str) -> None:
    case = SPOILED[kind]
    path, body = (case.path, case.body) if isinstance(case, Request) else case
    bad = {"metadata": {"labels": {"a b": "c"}}}
    new = {**body, "metadata": {**body["metadata"], **bad["metadata"]}}
    requests = [ACCOUNT, post(path, new), post(path, body, quiet=True), merge(f"{path}/x", bad)]
    older = merge(f"{path}/x", {"metadata": {"deletionGracePeriodSeconds": 5}})
    await run_case(quiet_pair, [*requests, older, delete(f"{path}/x", ignore=("status",))])


WARNED_OF: dict[str, Any] = {
    "a label in beta": {"nodeSelector": {"beta.kubernetes.io/os": "linux"}},
    "a variable that hides another": {
        "containers": [{"name": "a", "image": "b", "env": [{"name": "A"}, {"name": "A"}]}]
    },
}


@pytest.mark.parametrize(
    "plural", ["replicationcontrollers", "deployments", "replicasets", "daemonsets", "statefulsets"]
)
async def test_an_update_warns_of_its_template_alike(quiet_pair: ServerPair, plural: str) -> None:
    path = f"{NS}/{plural}" if plural == "replicationcontrollers" else f"{APPS}/{plural}"
    selector = SELECTOR["matchLabels"] if plural == "replicationcontrollers" else SELECTOR

    def workload(**spec: Any) -> dict[str, Any]:
        template = {**TEMPLATE, "spec": {**TEMPLATE["spec"], **spec}}
        return {"metadata": {"name": "x"}, "spec": {"selector": selector, "template": template}}

    updates = [put(f"{path}/x", workload(**spec)) for spec in (*WARNED_OF.values(), {}) for _ in range(2)]
    await run_case(quiet_pair, [post(path, workload()), *updates])
