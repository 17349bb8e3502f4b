"""The host name of a pod's containers and their `/etc/hosts`.

As pkg/kubelet/kubelet_pods.go: the name of the node for a pod in the host network, otherwise what the pod's spec says.
Called by `sandboxes`.
"""

from __future__ import annotations

from typing import Final

from kubewright.k8s.core.v1 import Pod

__all__ = ("host_name", "hosts_file")

_MAX_LENGTH: Final = 63
_HEAD: Final = """\
# Kubernetes-managed hosts file.
127.0.0.1\tlocalhost
::1\tlocalhost ip6-localhost ip6-loopback
fe00::0\tip6-localnet
fe00::0\tip6-mcastprefix
fe00::1\tip6-allnodes
fe00::2\tip6-allrouters
"""


def host_name(pod: Pod) -> str:
    """The output of `hostname` in a container of the pod."""
    if pod.spec.host_network:
        return pod.spec.node_name or pod.metadata.name
    if pod.spec.hostname_override:
        return pod.spec.hostname_override
    return _fqdn(pod) if pod.spec.set_hostname_as_fqdn else _short_name(pod)


def hosts_file(pod: Pod, address: str) -> str:
    """The file `/etc/hosts` that the kubelet mounts into every container, with `hostAliases`."""
    name = host_name(pod) if pod.spec.host_network or pod.spec.hostname_override else _short_name(pod)
    recursive = _fqdn(pod)
    names = f"{recursive}\t{name}" if recursive.partition(".")[0] == name and recursive != name else name
    lines = [f"{alias.ip}\t" + "\t".join(alias.hostnames or ()) for alias in pod.spec.host_aliases or ()]
    aliases = "\n".join(("", "# Entries added by HostAliases.", *lines, "")) if lines else ""
    return f"{_HEAD}{address}\t{names}\n{aliases}"


def _short_name(pod: Pod) -> str:
    name = pod.spec.hostname or pod.metadata.name
    # The limit of Linux; a truncated name must not end in a punctuation mark.
    return name if len(name) <= _MAX_LENGTH else name[:_MAX_LENGTH].rstrip("-.")


def _fqdn(pod: Pod) -> str:
    """The name with its domain, if the pod has a subdomain."""
    domain = f".{pod.spec.subdomain}.{pod.metadata.namespace}.svc.cluster.local" if pod.spec.subdomain else ""
    return f"{_short_name(pod)}{domain}"
