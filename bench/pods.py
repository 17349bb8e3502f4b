"""Pods to measure with: about 5 KB of JSON each, as a server sends them, all different."""

from __future__ import annotations

import json
from typing import Any

__all__ = ("pod_bytes", "pod_tree")


def pod_tree(number: int) -> dict[str, Any]:
    """A pod of a web application with a sidecar, running and ready."""
    name = f"web-{number % 97:02}-{number:08x}"
    node = f"node-{number % 50}"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _metadata(name, number),
        "spec": {
            "nodeName": node,
            "containers": [_container("web", number), _container("proxy", number)],
            "volumes": [
                {"name": "config", "configMap": {"name": f"web-{number % 97:02}", "defaultMode": 420}},
                {
                    "name": f"kube-api-access-{number:05x}",
                    "projected": {
                        "defaultMode": 420,
                        "sources": [
                            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                            {"configMap": {"items": [{"key": "ca.crt", "path": "ca.crt"}], "name": "kube-root-ca.crt"}},
                        ],
                    },
                },
            ],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "web",
            "serviceAccount": "web",
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "schedulerName": "default-scheduler",
            "tolerations": [
                {
                    "key": f"node.kubernetes.io/{reason}",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                }
                for reason in ("not-ready", "unreachable")
            ],
            "priority": 0,
            "enableServiceLinks": True,
            "preemptionPolicy": "PreemptLowerPriority",
        },
        "status": _status(number),
    }


def pod_bytes(number: int) -> bytes:
    """The same as JSON."""
    return json.dumps(pod_tree(number), separators=(",", ":")).encode()


def _metadata(name: str, number: int) -> dict[str, Any]:
    app = f"web-{number % 97:02}"
    return {
        "name": name,
        "generateName": f"{app}-",
        "namespace": f"team-{number % 20}",
        "uid": f"{number:08x}-1111-4222-8333-{number:012x}",
        "resourceVersion": str(100_000 + number),
        "creationTimestamp": "2026-11-15T07:00:00Z",
        "labels": {
            "app.kubernetes.io/name": app,
            "app.kubernetes.io/instance": f"{app}-{number % 7}",
            "pod-template-hash": f"{number:010x}",
            "team": f"team-{number % 20}",
        },
        "annotations": {
            "prometheus.io/scrape": "true",
            "prometheus.io/port": "9090",
            "checksum/config": f"{number:064x}",
        },
        "ownerReferences": [
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": f"{app}-{number:010x}",
                "uid": f"{number:08x}-2222-4222-8333-{number:012x}",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }


def _container(name: str, number: int) -> dict[str, Any]:
    probe = {
        "httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"},
        "initialDelaySeconds": 5,
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    }
    return {
        "name": name,
        "image": f"registry.example.io/shop/{name}:1.{number % 40}.0",
        "args": ["--listen=:8080", f"--shard={number}", "--log-format=json"],
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "env": [
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}},
            {"name": "SHARD", "value": str(number)},
        ],
        "resources": {
            "limits": {"cpu": "500m", "memory": "512Mi"},
            "requests": {"cpu": "100m", "memory": "256Mi"},
        },
        "volumeMounts": [
            {"name": "config", "mountPath": "/etc/web", "readOnly": True},
            {
                "name": f"kube-api-access-{number:05x}",
                "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
                "readOnly": True,
            },
        ],
        "livenessProbe": probe,
        "readinessProbe": probe,
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }


def _status(number: int) -> dict[str, Any]:
    address = f"10.{number // 65_536 % 256}.{number // 256 % 256}.{number % 256}"
    return {
        "phase": "Running",
        "conditions": [
            {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": "2026-11-15T07:00:05Z"}
            for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
        ],
        "hostIP": f"192.168.0.{number % 50}",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": "2026-11-15T07:00:00Z",
        "containerStatuses": [
            {
                "name": name,
                "state": {"running": {"startedAt": "2026-11-15T07:00:04Z"}},
                "lastState": {},
                "ready": True,
                "restartCount": 0,
                "image": f"registry.example.io/shop/{name}:1.{number % 40}.0",
                "imageID": f"registry.example.io/shop/{name}@sha256:{number:064x}",
                "containerID": f"containerd://{number:064x}",
                "started": True,
            }
            for name in ("web", "proxy")
        ],
        "qosClass": "Burstable",
    }
