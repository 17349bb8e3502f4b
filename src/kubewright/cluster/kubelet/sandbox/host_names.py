"""The name that a pod's containers take their machine to have, and the file `/etc/hosts` that says so.

As a kubelet works it out: the node's own name for a pod in the node's network, otherwise what the pod asks for.
`machines` calls it for everything inside a container.
"""

from __future__ import annotations

from typing import Final

from kubewright.k8s.core.v1 import Pod

__all__ = ("host_name", "hosts_file")

_LONGEST: Final = 63
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
    """What `hostname` prints in a container of the pod."""
    if pod.spec.host_network:
        return pod.spec.node_name or pod.metadata.name
    if pod.spec.hostname_override:
        return pod.spec.hostname_override
    return _whole(pod) if pod.spec.set_hostname_as_fqdn else _short(pod)


def hosts_file(pod: Pod, address: str) -> str:
    """The file a kubelet mounts into every container, with the pod's own aliases."""
    name = host_name(pod) if pod.spec.host_network or pod.spec.hostname_override else _short(pod)
    whole = _whole(pod)
    names = f"{whole}\t{name}" if whole.partition(".")[0] == name and whole != name else name
    lines = [f"{alias.ip}\t" + "\t".join(alias.hostnames or ()) for alias in pod.spec.host_aliases or ()]
    aliases = "\n".join(("", "# Entries added by HostAliases.", *lines, "")) if lines else ""
    return f"{_HEAD}{address}\t{names}\n{aliases}"


def _short(pod: Pod) -> str:
    name = pod.spec.hostname or pod.metadata.name
    # Linux has no room for more; what is cut off must not leave a name that ends in a sign.
    return name if len(name) <= _LONGEST else name[:_LONGEST].rstrip("-.")


def _whole(pod: Pod) -> str:
    """The name with its domain, if the pod belongs to a subdomain."""
    domain = f".{pod.spec.subdomain}.{pod.metadata.namespace}.svc.cluster.local" if pod.spec.subdomain else ""
    return f"{_short(pod)}{domain}"
