"""From ports of the Service to ports of the main container. Pure."""

import re
from collections.abc import Iterator

from kubewright.k8s.core.v1 import ContainerPort

from modelbox.api.v1.modelbox import ModelBoxSpec
from modelbox.defaults import target_port_of

__all__ = ("container_ports", "declared_ports", "is_container_port_name")

_WORDS = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def is_container_port_name(name: str) -> bool:
    """Whether a container may call a port so: at most 15 characters, a letter among them, no two hyphens in a row."""
    return len(name) <= 15 and _WORDS.fullmatch(name) is not None and any(letter.isalpha() for letter in name)


def container_ports(spec: ModelBoxSpec) -> list[ContainerPort]:
    """One for each number and protocol that the Service leads to; a target given by name is declared elsewhere."""
    found: dict[tuple[int, str], ContainerPort] = {}
    for port in spec.ports:
        target = target_port_of(port)
        if isinstance(target, int) and (target, port.protocol) not in found:
            name = port.name if port.name is not None and is_container_port_name(port.name) else None
            found[target, port.protocol] = ContainerPort(container_port=target, protocol=port.protocol, name=name)
    return list(found.values())


def declared_ports(spec: ModelBoxSpec) -> dict[tuple[str, str], int]:
    """The numbers of all ports of the pod that have a name, by name and protocol; the main container's come first."""
    numbers: dict[tuple[str, str], int] = {}
    for port in (*container_ports(spec), *_ports_of_others(spec)):
        if port.name is not None:
            numbers.setdefault((port.name, port.protocol or "TCP"), port.container_port)
    return numbers


def _ports_of_others(spec: ModelBoxSpec) -> Iterator[ContainerPort]:
    for container in (*spec.containers, *spec.init_containers):
        yield from container.ports or ()
