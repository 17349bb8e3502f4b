"""How a pod's machine is called."""

from __future__ import annotations

from typing import Any

import pytest

from kubewright.api.codec import from_tree
from kubewright.cluster.kubelet.sandbox.host_names import host_name, hosts_file
from kubewright.k8s.core.v1 import Pod


def pod(name: str = "web-0", **spec: Any) -> Pod:
    tree = {"metadata": {"name": name, "namespace": "shop"}, "spec": {"containers": [], "nodeName": "node-1", **spec}}
    return from_tree(Pod, {"apiVersion": "v1", "kind": "Pod", **tree})


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, "web-0"),
        ({"hostname": "db"}, "db"),
        ({"hostname": "db", "subdomain": "all"}, "db"),
        ({"hostname": "db", "subdomain": "all", "setHostnameAsFQDN": True}, "db.all.shop.svc.cluster.local"),
        ({"setHostnameAsFQDN": True}, "web-0"),
        ({"hostname": "db", "hostnameOverride": "db.example.com"}, "db.example.com"),
        ({"hostname": "db", "hostNetwork": True}, "node-1"),
    ],
)
def test_a_machine_is_called_what_the_pod_asks_for(spec: dict[str, Any], expected: str) -> None:
    assert host_name(pod(**spec)) == expected


def test_a_name_that_is_too_long_is_cut_and_does_not_end_in_a_sign() -> None:
    assert host_name(pod("a" * 61 + "-.bcd")) == "a" * 61


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, "10.0.0.1\tweb-0\n"),
        ({"subdomain": "all"}, "10.0.0.1\tweb-0.all.shop.svc.cluster.local\tweb-0\n"),
        ({"subdomain": "all", "hostnameOverride": "db.example.com"}, "10.0.0.1\tdb.example.com\n"),
        (
            {"hostAliases": [{"ip": "1.2.3.4", "hostnames": ["a", "b"]}]},
            "10.0.0.1\tweb-0\n\n# Entries added by HostAliases.\n1.2.3.4\ta\tb\n",
        ),
    ],
)
def test_the_hosts_of_a_machine_end_with_its_own_names(spec: dict[str, Any], expected: str) -> None:
    text = hosts_file(pod(**spec), "10.0.0.1")

    assert text.startswith("# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n")
    assert text.endswith(f"ip6-allrouters\n{expected}")
