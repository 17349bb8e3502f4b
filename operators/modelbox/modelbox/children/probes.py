"""The probes of the main container: those that were given, else some made up from the ports. Pure.

Made-up ones ask for nothing that an image might not have: they connect to the first TCP port, or fetch `healthPath`
where there is one.
"""

from kubewright.k8s.core.v1 import HTTPGetAction, Probe, TCPSocketAction

from modelbox.api.v1.modelbox import ModelBoxSpec
from modelbox.children.container_ports import declared_ports
from modelbox.defaults import target_port_of

__all__ = ("lacks_default_probes", "liveness_of", "readiness_of")


def liveness_of(spec: ModelBoxSpec) -> Probe | None:
    """When the container is to be restarted; patient, since a restart makes a slow start only slower."""
    return spec.liveness_probe or _made_up(spec, delay=10, period=10, timeout=5)


def readiness_of(spec: ModelBoxSpec) -> Probe | None:
    """When the container is to get requests; quick, since nothing is lost by asking."""
    return spec.readiness_probe or _made_up(spec, delay=5, period=5, timeout=3)


def lacks_default_probes(spec: ModelBoxSpec) -> bool:
    """Whether a probe was to be made up, and could not be: nothing can connect to UDP."""
    given = spec.liveness_probe is not None and spec.readiness_probe is not None
    return spec.default_probes and not given and _first_tcp_port(spec) is None


def _made_up(spec: ModelBoxSpec, *, delay: int, period: int, timeout: int) -> Probe | None:
    port = _first_tcp_port(spec) if spec.default_probes else None
    if port is None:
        return None
    probe = Probe(initial_delay_seconds=delay, period_seconds=period, timeout_seconds=timeout, failure_threshold=3)
    if spec.health_path is not None:
        probe.http_get = HTTPGetAction(path=spec.health_path, port=port)
    else:
        probe.tcp_socket = TCPSocketAction(port=port)
    return probe


def _first_tcp_port(spec: ModelBoxSpec) -> int | None:
    """As a number: a probe looks up names in its own container only, and the port may be declared by another."""
    for port in spec.ports:
        if port.protocol == "TCP":
            target = target_port_of(port)
            return target if isinstance(target, int) else declared_ports(spec).get((target, "TCP"))
    return None
