"""The host name and /etc/hosts of a pod."""

from __future__ import annotations

from typing import Any

import pytest
from tests.builders.pods import pod

from kubewright.cluster.kubelet.sandbox.host_names import host_name, hosts_file


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
def test_the_host_name_follows_the_spec(spec: dict[str, Any], expected: str) -> None:
    assert host_name(pod("web-0", nodeName="node-1", **spec)) == expected


def test_a_long_name_is_truncated_and_does_not_end_in_punctuation() -> None:
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
def test_the_hosts_file_ends_with_the_names_of_the_pod(spec: dict[str, Any], expected: str) -> None:
    text = hosts_file(pod("web-0", nodeName="node-1", **spec), "10.0.0.1")

    assert text.startswith("# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n")
    assert text.endswith(f"ip6-allrouters\n{expected}")
