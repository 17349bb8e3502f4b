"""Namespaces with labels of pod security refuse the same pods, and warn of the same, on both servers.

Covers: kubewright.apiserver.admission.pod_security
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping
from typing import Any
from uuid import uuid4

import pytest
from tests.differential.servers.server_pair import (
    Request,
    Response,
    ServerClient,
    ServerPair,
    apply,
    get,
    merge,
    post,
    run_case,
    strategic,
)

from kubewright.testing.time_limits import slowness

pytestmark = pytest.mark.real

JSON = dict[str, Any]
PREFIX = "pod-security.kubernetes.io/"
NS = "/api/v1/namespaces/{ns}"
POD = f"{NS}/pods/p"
DRY = "?dryRun=All"
PATIENCE = 30.0
DROPPED = {"drop": ["ALL"]}
TIGHT: JSON = {"allowPrivilegeEscalation": False, "capabilities": DROPPED}
CALM: JSON = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
ARMOR = "container.apparmor.security.beta.kubernetes.io/"
SECCOMP = "container.seccomp.security.alpha.kubernetes.io/"


def contained(name: str = "a", /, security: JSON | None = None, **members: Any) -> JSON:
    """A container that breaks nothing but what is said."""
    return {"name": name, "image": "b", "securityContext": {**TIGHT, **(security or {})}, **members}


def pod(*containers: JSON, security: JSON | None = None, notes: Mapping[str, str] | None = None, **spec: Any) -> JSON:
    """A pod that breaks nothing but what is said."""
    shown = {"containers": list(containers) or [contained()], "securityContext": {**CALM, **(security or {})}, **spec}
    return {"metadata": {"name": "p", "annotations": dict(notes or {})}, "spec": shown}


def secure(**security: Any) -> JSON:
    """A pod whose container has this in its security context."""
    return pod(contained(security=security))


def without(pod: JSON, *names: str) -> JSON:
    """A pod whose own security context has less."""
    kept = {name: value for name, value in pod["spec"]["securityContext"].items() if name not in names}
    return {**pod, "spec": {**pod["spec"], "securityContext": kept}}


def volumes(**sources: Any) -> JSON:
    return pod(volumes=[{"name": name.lower(), name: source} for name, source in sources.items()])


def probed(**members: Any) -> JSON:
    return pod(contained(**members))


TWO = (contained("one"), contained("two"))
PLAIN: JSON = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a", "image": "b"}]}}
WINDOWS: JSON = {
    "metadata": {"name": "p"},
    "spec": {**PLAIN["spec"], "os": {"name": "windows"}, "securityContext": {"runAsNonRoot": True}},
}
HTTP = {"port": 80, "host": "10.0.0.1"}
PODS: dict[str, JSON] = {
    "fine": pod(),
    "plain": PLAIN,
    "plain-two": {**PLAIN, "spec": {"containers": [{"name": "a", "image": "b"}, {"name": "c", "image": "d"}],
                                    "initContainers": [{"name": "i", "image": "b"}]}},
    "windows": WINDOWS,
    "windows-root": {**WINDOWS, "spec": {**WINDOWS["spec"], "securityContext": {}}},
    "escalation": secure(allowPrivilegeEscalation=True),
    "escalation-two": pod(*(contained(name, {"allowPrivilegeEscalation": True}) for name in "ab")),
    "escalation-init": pod(initContainers=[contained("i", {"allowPrivilegeEscalation": True})]),
    "apparmor-default": pod(security={"appArmorProfile": {"type": "RuntimeDefault"}}),
    "apparmor-local": secure(appArmorProfile={"type": "Localhost", "localhostProfile": "x"}),
    "apparmor-pod": pod(security={"appArmorProfile": {"type": "Unconfined"}}),
    "apparmor-both": pod(contained(security={"appArmorProfile": {"type": "Unconfined"}}),
                         security={"appArmorProfile": {"type": "Unconfined"}}),
    "apparmor-note": pod(notes={f"{ARMOR}a": "unconfined"}),
    "apparmor-notes": pod(*TWO, notes={f"{ARMOR}one": "unconfined", f"{ARMOR}two": "unconfined"}),
    "apparmor-note-fine": pod(notes={f"{ARMOR}a": "runtime/default"}),
    "apparmor-note-local": pod(notes={f"{ARMOR}a": "localhost/x"}),
    "apparmor-note-wrong": pod(notes={f"{ARMOR}a": 'bo"gus'}),
    "capability": secure(capabilities={**DROPPED, "add": ["NET_RAW", "SYS_ADMIN"]}),
    "capability-default": secure(capabilities={**DROPPED, "add": ["CHOWN"]}),
    "capability-low-ports": secure(capabilities={**DROPPED, "add": ["NET_BIND_SERVICE"]}),
    "capability-prefixed": secure(capabilities={**DROPPED, "add": ["CAP_CHOWN"]}),
    "capability-kept": secure(capabilities={"drop": ["NET_RAW"]}),
    "capability-kept-added": pod(contained("k", {"capabilities": None}),
                                 contained("a", {"capabilities": {"add": ["ALL"]}}),
                                 contained("z", {"capabilities": {**DROPPED, "add": ["B", "A"]}})),
    "host-network": pod(hostNetwork=True),
    "host-all": pod(hostNetwork=True, hostPID=True, hostIPC=True),
    "host-path": volumes(hostPath={"path": "/"}),
    "host-paths": pod(volumes=[{"name": name, "hostPath": {"path": "/"}} for name in ("x", "y")]),
    "host-port": probed(ports=[{"containerPort": 80, "hostPort": 8080}]),
    "host-port-0": probed(ports=[{"containerPort": 80, "hostPort": 0}]),
    "host-ports": pod(contained("x", ports=[{"containerPort": 1, "hostPort": 9}, {"containerPort": 2, "hostPort": 10}]),
                      contained("y", ports=[{"containerPort": 3, "hostPort": 100}])),
    "probe": probed(livenessProbe={"httpGet": HTTP}),
    "probe-empty": probed(livenessProbe={"httpGet": {"port": 80, "host": ""}}),
    "probe-socket": probed(readinessProbe={"tcpSocket": HTTP}, startupProbe={"tcpSocket": {**HTTP, "host": "h"}}),
    "probe-two": pod(contained("z", livenessProbe={"httpGet": HTTP}), contained("y", readinessProbe={"httpGet": HTTP})),
    "hook": probed(lifecycle={"postStart": {"httpGet": {**HTTP, "path": "/"}},
                              "preStop": {"httpGet": {**HTTP, "host": "b", "path": "/"}}}),
    "privileged": pod(contained(security={"privileged": True, "allowPrivilegeEscalation": None})),
    "privileged-false": secure(privileged=False),
    "proc": secure(procMount="Default"),
    "proc-unmasked": pod(contained(security={"procMount": "Unmasked"}), hostUsers=False),
    "proc-unmasked-root": pod(contained(security={"procMount": "Unmasked", "runAsUser": 0, "runAsNonRoot": False}),
                              hostUsers=False),
    "selinux": pod(security={"seLinuxOptions": {"type": "container_t", "level": "s0"}}),
    "selinux-engine": pod(security={"seLinuxOptions": {"type": "container_engine_t"}}),
    "selinux-type": pod(security={"seLinuxOptions": {"type": "spc_t"}}),
    "selinux-types": pod(contained("a", {"seLinuxOptions": {"type": "one_t"}}),
                         contained("b", {"seLinuxOptions": {"type": "another_t", "user": "u"}})),
    "selinux-role": pod(contained(security={"seLinuxOptions": {"role": "r"}}), security={"seLinuxOptions": {}}),
    "selinux-all": pod(security={"seLinuxOptions": {"type": "x", "user": "u", "role": "r"}}),
    "seccomp": secure(seccompProfile={"type": "Unconfined"}),
    "seccomp-pod": pod(security={"seccompProfile": {"type": "Unconfined"}}),
    "seccomp-both": pod(contained(security={"seccompProfile": {"type": "Unconfined"}}),
                        security={"seccompProfile": {"type": "Unconfined"}}),
    "seccomp-none": without(pod(*TWO), "seccompProfile"),
    "seccomp-own": without(pod(contained("own", {"seccompProfile": {"type": "Localhost", "localhostProfile": "x"}}),
                               contained("none")), "seccompProfile"),
    "seccomp-note": pod(notes={"seccomp.security.alpha.kubernetes.io/pod": "unconfined", f"{SECCOMP}a": 'x"y'}),
    "sysctl": pod(security={"sysctls": [{"name": "kernel.shm_rmid_forced", "value": "1"}]}),
    "sysctl-bad": pod(security={"sysctls": [{"name": "kernel.msgmax", "value": "1"}, {"name": "a", "value": "1"}]}),
    "sysctl-later": pod(security={"sysctls": [
        {"name": f"net.ipv4.{name}", "value": "1"}
        for name in ("ip_local_reserved_ports", "tcp_keepalive_time", "tcp_fin_timeout", "tcp_rmem", "tcp_wmem")
    ]}),
    "host-process": pod(contained(security={"windowsOptions": {"hostProcess": True}}),
                        security={"windowsOptions": {"hostProcess": True}}, hostNetwork=True),
    "host-process-false": pod(security={"windowsOptions": {"hostProcess": False}}),
    "volumes-fine": volumes(configMap={"name": "x"}, emptyDir={}, downwardAPI={}, projected={"sources": []},
                            secret={"secretName": "x"}, persistentVolumeClaim={"claimName": "x"},
                            csi={"driver": "x.y"}, image={"reference": "x"}),
    "volume-nfs": volumes(nfs={"server": "s", "path": "/"}),
    "volumes-other": volumes(nfs={"server": "s", "path": "/"}, iscsi={"targetPortal": "a", "iqn": "iqn.2001-04.a.b:c",
                             "lun": 0}, hostPath={"path": "/"}, gcePersistentDisk={"pdName": "x"},
                             awsElasticBlockStore={"volumeID": "x"}, cephfs={"monitors": ["a"]}, azureDisk={
                             "diskName": "x", "diskURI": "y"}, fc={"targetWWNs": ["a"], "lun": 1}),
    "root": secure(runAsUser=0),
    "root-pod": pod(security={"runAsUser": 0}),
    "root-both": pod(contained(security={"runAsUser": 0}), security={"runAsUser": 0}),
    "user": secure(runAsUser=1000),
    "root-false": secure(runAsNonRoot=False),
    "root-false-pod": pod(security={"runAsNonRoot": False}),
    "root-false-all": pod(*(contained(name, {"runAsNonRoot": False}) for name in "xy"),
                          security={"runAsNonRoot": False}),
    "root-unsaid": without(pod(contained("said", {"runAsNonRoot": True}), contained("unsaid")), "runAsNonRoot"),
    "root-own-users": without(pod(contained(security={"runAsUser": 0}), hostUsers=False), "runAsNonRoot"),
}  # fmt: skip
ODD: JSON = {"procMount": "Unmasked", "runAsUser": 0, "capabilities": {"add": ["CHOWN", "SYS_TIME"]}}
TEMPLATES: dict[str, JSON] = {
    "plain": PLAIN["spec"],
    "windows": WINDOWS["spec"],
    "own-users": {**PODS["proc-unmasked-root"]["spec"], "securityContext": {}},
    "odd": {
        "containers": [contained(security=ODD, livenessProbe={"httpGet": HTTP})],
        "securityContext": {
            **PODS["sysctl-later"]["spec"]["securityContext"],
            "seLinuxOptions": {"type": "container_engine_t"},
            "seccompProfile": {"type": "Unconfined"},
        },
        "volumes": PODS["host-paths"]["spec"]["volumes"],
        "hostUsers": False,
    },
}
NOTES = {"seccomp.security.alpha.kubernetes.io/pod": "unconfined"}
MINORS = (0, 7, 8, 18, 19, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 999)


async def labelled(pair: ServerPair, **labels: str) -> None:
    """Put labels on the namespace of a case, in which pods can be made."""
    await run_case(pair, [Request("PATCH", NS, {"metadata": {"labels": named(**labels)}}, MERGE, quiet=True), *ACCOUNT])


def named(**labels: str) -> dict[str, str]:
    return {PREFIX + name.replace("_", "-"): value for name, value in labels.items()}


MERGE = "application/merge-patch+json"
ACCOUNT = (get(f"{NS}/serviceaccounts/default", until=lambda tree: tree.get("kind") == "ServiceAccount", quiet=True),)


@pytest.fixture(scope="module")
async def homes(both_servers: tuple[ServerClient, ServerClient]) -> AsyncIterator[dict[str, ServerPair]]:
    """Namespaces that enforce, and one that does but warn and note."""
    shared = f"security-{uuid4().hex[:8]}"
    homes = {level: ServerPair(*both_servers, f"{shared}-{level}") for level in ("baseline", "restricted", "warned")}
    for level, pair in homes.items():
        labels = {"warn": "restricted", "audit": "baseline"} if level == "warned" else {"enforce": level}
        meta = {"name": pair.namespace, "labels": named(**labels)}
        await pair.both("POST", "/api/v1/namespaces", {"metadata": meta})
        await run_case(pair, ACCOUNT)
    yield homes
    for pair in homes.values():
        await pair.both("DELETE", NS)


def said(answer: Response) -> JSON:
    """What a server has to say about a write."""
    tree = answer.tree
    failed = {name: tree.get(name) for name in ("message", "reason", "details")} if answer.code >= 400 else None
    return {"code": answer.code, "warnings": answer.warnings, "failed": failed}


async def compared(pair: ServerPair, path: str, body: JSON) -> Response:
    """Ask both until they agree: the real server hears of changed labels a moment after they were written."""
    deadline = asyncio.get_running_loop().time() + PATIENCE * slowness()
    while True:
        real, embedded = await pair.both("POST", path, body)
        if said(embedded) == said(real) or asyncio.get_running_loop().time() > deadline:
            break
        await asyncio.sleep(0.02)
    assert said(embedded) == said(real)
    return embedded


@pytest.mark.parametrize("name", PODS)
async def test_pods_are_refused_and_warned_of_alike(name: str, homes: dict[str, ServerPair]) -> None:
    for pair in homes.values():
        await compared(pair, f"{NS}/pods{DRY}", PODS[name])


async def test_each_version_has_rules_of_its_own(both_servers: tuple[ServerClient, ServerClient]) -> None:
    shared = f"security-{uuid4().hex[:8]}"
    cases = [("restricted", f"v1.{minor}") for minor in MINORS] + [("baseline", f"v1.{minor}") for minor in (0, 30, 34)]
    found: list[str] = []

    async def compare(level: str, version: str) -> None:
        pair = ServerPair(*both_servers, f"{shared}-{level}-{version}".replace(".", "-"))
        labels = named(warn=level, warn_version=version)
        await pair.both("POST", "/api/v1/namespaces", {"metadata": {"name": pair.namespace, "labels": labels}})
        for name, spec in TEMPLATES.items():
            body = {"metadata": {"name": "t"}, "template": {"metadata": {"annotations": NOTES}, "spec": spec}}
            real, embedded = await pair.both("POST", f"{NS}/podtemplates{DRY}", body)
            if said(real) != said(embedded) or real.code != 201:
                found.append(f"{level} {version} {name}:\n  {said(real)}\n  {said(embedded)}")
        await pair.both("DELETE", NS)

    await asyncio.gather(*(compare(*case) for case in cases))
    assert not found, "\n".join(found)


SELECTOR = {"matchLabels": {"app": "w"}}
LABELLED: JSON = {"metadata": {"labels": {"app": "w"}}, "spec": PLAIN["spec"]}
ONCE = {**LABELLED, "spec": {**LABELLED["spec"], "restartPolicy": "Never"}}
WORKLOADS: dict[str, tuple[str, JSON]] = {
    "deployments": ("apis/apps/v1", {"selector": SELECTOR, "template": LABELLED}),
    "replicasets": ("apis/apps/v1", {"selector": SELECTOR, "template": LABELLED}),
    "daemonsets": ("apis/apps/v1", {"selector": SELECTOR, "template": LABELLED}),
    "statefulsets": ("apis/apps/v1", {"selector": SELECTOR, "template": LABELLED, "serviceName": "s"}),
    "replicationcontrollers": ("api/v1", {"selector": {"app": "w"}, "template": LABELLED}),
    "jobs": ("apis/batch/v1", {"template": ONCE}),
    "cronjobs": ("apis/batch/v1", {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": ONCE}}}),
}


@pytest.mark.parametrize("kind", WORKLOADS)
@pytest.mark.parametrize("level", ["baseline", "restricted", "warned"])
async def test_whoever_writes_a_template_is_warned(kind: str, level: str, homes: dict[str, ServerPair]) -> None:
    group, spec = WORKLOADS[kind]
    path = f"/{group}/namespaces/{{ns}}/{kind}"
    answer = await compared(homes[level], f"{path}{DRY}", {"metadata": {"name": "w"}, "spec": spec})

    assert answer.code == 201
    assert bool(answer.warnings) is (level != "baseline")


async def test_a_change_of_a_workload_is_warned_of_but_not_its_scale_or_status(homes: dict[str, ServerPair]) -> None:
    path = "/apis/apps/v1/namespaces/{ns}/deployments"
    body = {
        "metadata": {"name": "w"},
        "spec": {"selector": SELECTOR, "template": LABELLED, "replicas": 0, "paused": True},
    }
    pair = homes["warned"]
    await compared(pair, path, body)
    for change, where in (
        ({"metadata": {"labels": {"x": "y"}}}, "w"),
        ({"metadata": {"labels": {"x": "y"}}}, "w"),
        ({"spec": {"replicas": 0}}, "w/scale"),
        ({"status": {"replicas": 1}}, "w/status"),
    ):
        answers = [
            await apiserver.send("PATCH", f"{path}/{where}".replace("{ns}", pair.namespace), *patched(change))
            for apiserver in (pair.real, pair.embedded)
        ]
        assert said(answers[1]) == said(answers[0])
        assert bool(answers[0].warnings) is (where == "w")
    await pair.both("DELETE", f"{path}/w")


def patched(change: JSON) -> tuple[bytes, Mapping[str, str], float]:
    return json.dumps(change).encode(), {"Content-Type": MERGE}, 30.0


async def test_what_a_pod_is_called_is_said_even_when_the_server_names_it(homes: dict[str, ServerPair]) -> None:
    body = {**PLAIN, "metadata": {"generateName": "made-"}}
    real, embedded = await homes["restricted"].both("POST", f"{NS}/pods{DRY}", body)

    assert real.code == embedded.code == 403
    for answer in (real, embedded):
        name = answer.tree["details"]["name"]
        assert re.fullmatch("made-[a-z0-9]{5}", name)
        assert answer.tree["message"].startswith(
            f'pods "{name}" is forbidden: violates PodSecurity "restricted:latest": '
        )


LABELS: dict[str, dict[str, str]] = {
    "level": {"enforce": "strict"},
    "empty": {"enforce": ""},
    "case": {"enforce": "Baseline"},
    "version": {"enforce_version": "1.24"},
    "version-long": {"enforce_version": "v1.24.1"},
    "version-zero": {"enforce_version": "v1.01"},
    "version-large": {"enforce_version": "v1.99999999999999999999"},
    "version-latest": {"enforce_version": "Latest"},
    "major": {"warn_version": "v2.0"},
    "all": {
        "enforce": "a",
        "enforce_version": "b",
        "audit": "c",
        "audit_version": "d",
        "warn": "e",
        "warn_version": "f",
    },
    "fine": {"enforce": "baseline", "enforce_version": "v1.24", "audit": "restricted", "warn": "privileged"},
    "unknown": {"enforced": "x"},
}


@pytest.mark.parametrize("name", LABELS)
async def test_labels_that_make_no_sense_are_refused(name: str, pair: ServerPair) -> None:
    labels = named(**LABELS[name])
    await run_case(
        pair,
        [
            post(f"/api/v1/namespaces{DRY}", {"metadata": {"name": "labels", "labels": labels}}),
            merge(f"{NS}{DRY}", {"metadata": {"labels": labels}}),
            apply(
                f"{NS}{DRY}", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "{ns}", "labels": labels}}
            ),
            merge(f"{NS}/status{DRY}", {"metadata": {"labels": labels}}, ignore=("metadata.managedFields",)),
        ],
    )


async def test_whoever_makes_a_namespace_stricter_is_told_of_the_pods_it_has(pair: ServerPair) -> None:
    sharing = {"spec": {**PLAIN["spec"], "hostNetwork": True}}
    pods = {"b": PLAIN, "a": PLAIN, "d": PODS["fine"], "c": sharing, "e": sharing, "f": sharing, "g": PODS["sysctl"],
            "h": pod(security={"sysctls": [{"name": "kernel.msgmax", "value": "1"}]})}  # fmt: skip
    made = [post(f"{NS}/pods", {**tree, "metadata": {"name": name}}, quiet=True) for name, tree in pods.items()]
    await run_case(pair, [*ACCOUNT, *made])
    steps = (
        {"enforce": "baseline"},
        {"enforce": "baseline"},
        {"enforce": "restricted"},
        {"enforce": "restricted", "enforce_version": "v1.18"},
        {"enforce": "baseline", "enforce_version": "v1.18"},
        {"enforce": "baseline", "enforce_version": "v1.0"},
        {"enforce": "privileged"},
        {"warn": "restricted", "audit": "restricted"},
        {"enforce": "restricted", "enforce_version": "latest", "warn": "restricted"},
    )
    for labels in steps:
        change = {"metadata": {"labels": {PREFIX + "enforce-version": None, **named(**labels)}}}
        # Pods come to the real plugin by a watch, a moment after they were written.
        deadline = asyncio.get_running_loop().time() + PATIENCE * slowness()
        while True:
            answers = [
                await apiserver.send("PATCH", NS.replace("{ns}", pair.namespace) + DRY, *patched(change))
                for apiserver in (pair.real, pair.embedded)
            ]
            if answers[0].warnings == answers[1].warnings or asyncio.get_running_loop().time() > deadline:
                break
            await asyncio.sleep(0.02)
        assert said(answers[1]) == said(answers[0])
        await run_case(pair, [merge(NS, change, ignore=("metadata.managedFields",))])


async def test_a_pod_that_was_there_before_may_stay_but_not_run_anything_else(pair: ServerPair) -> None:
    added = {"name": "debug", "image": "b", "targetContainerName": "a"}
    fine = {**added, "name": "fine", "securityContext": TIGHT}
    made = {"metadata": {"name": "p"}, "spec": {**PLAIN["spec"], "securityContext": CALM}}
    await run_case(pair, [*ACCOUNT, post(f"{NS}/pods", made, quiet=True)])
    await labelled(pair, enforce="restricted", audit="restricted", audit_version="v1.20")
    await compared(pair, f"{NS}/pods{DRY}", {**PLAIN, "metadata": {"name": "other"}})
    await run_case(
        pair,
        [
            merge(f"{POD}{DRY}", {"metadata": {"labels": {"a": "b"}}}, ignore=UNCHANGED),
            strategic(f"{POD}{DRY}", {"spec": {"containers": [{"name": "a", "image": "other"}]}}, ignore=UNCHANGED),
            merge(f"{POD}{DRY}", {"spec": {"tolerations": [{"operator": "Exists"}]}}, ignore=UNCHANGED),
            strategic(f"{POD}/status{DRY}", {"status": {"message": "x"}}, ignore=UNCHANGED),
            strategic(f"{POD}/resize{DRY}", {"spec": {"containers": [{"name": "a", "image": "b"}]}}, ignore=UNCHANGED),
            strategic(f"{POD}/ephemeralcontainers{DRY}", {"spec": {"ephemeralContainers": [added]}}, ignore=UNCHANGED),
            strategic(f"{POD}/ephemeralcontainers{DRY}", {"spec": {"ephemeralContainers": [fine]}}, ignore=UNCHANGED),
            strategic(f"{POD}/ephemeralcontainers{DRY}", {"spec": {"ephemeralContainers": []}}, ignore=UNCHANGED),
            post(f"{POD}/eviction{DRY}", {"metadata": {"name": "p"}}, quiet=True),
        ],
    )


UNCHANGED = (
    "metadata.managedFields",
    "metadata.resourceVersion",  # how far the pod has come where pods run is chance
    "spec.nodeName",
    "status",
    "spec.volumes",
    "spec.containers.volumeMounts",
)


async def test_a_namespace_that_opens_again_takes_pods_again(pair: ServerPair) -> None:
    await labelled(pair, enforce="baseline")
    await compared(pair, f"{NS}/pods{DRY}", PODS["host-network"])
    await labelled(pair, enforce="privileged", warn="baseline")
    await compared(pair, f"{NS}/pods{DRY}", PODS["host-network"])
    unlabelled = {"metadata": {"labels": {PREFIX + "enforce": None, PREFIX + "warn": None}}}
    await run_case(pair, [merge(NS, unlabelled, ignore=("metadata.managedFields",))])
    answer = await compared(pair, f"{NS}/pods{DRY}", PODS["host-network"])

    assert answer.code == 201
    assert not answer.warnings


@pytest.mark.parametrize("profile", ["unconfined", "runtime/default", "localhost/x", "localhost/", "localhost/ x", ""])
async def test_a_new_pod_has_the_profile_that_its_annotation_means(profile: str, pair: ServerPair) -> None:
    whole = pod(notes={f"{ARMOR}a": profile}, security={"appArmorProfile": {"type": "RuntimeDefault"}})
    single = pod(*TWO, notes={f"{ARMOR}two": profile}, initContainers=[contained("i")])
    bodies = [post(f"{NS}/pods{DRY}", body, ignore=UNCHANGED) for body in (whole, single)]
    template = {"metadata": {"name": "t"}, "template": {**whole, "metadata": {"annotations": {f"{ARMOR}a": profile}}}}
    await run_case(pair, [*ACCOUNT, *bodies, post(f"{NS}/podtemplates{DRY}", template)])
