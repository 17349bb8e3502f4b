"""Ports: names, node ports, and where they lead."""

from kubewright import FieldErrors
from kubewright.api import qualified_name_errors

from modelbox.api.v1.modelbox import ModelBoxSpec
from modelbox.children.container_ports import declared_ports, is_container_port_name
from modelbox.defaults import service_type_of

__all__ = ("check_ports",)


def check_ports(spec: ModelBoxSpec, errors: FieldErrors) -> None:
    """That every port can be told from the others, may have its node port, and leads somewhere."""
    _check_names(spec, errors)
    _check_node_ports(spec, errors)
    _check_targets(spec, errors)
    for place, port in enumerate(spec.ports):
        for problem in qualified_name_errors(port.app_protocol) if port.app_protocol is not None else ():
            errors.add(f"spec.ports[{place}].appProtocol", problem)


def _check_names(spec: ModelBoxSpec, errors: FieldErrors) -> None:
    seen: set[str] = set()
    for place, port in enumerate(spec.ports):
        if port.name is None:
            if len(spec.ports) > 1:
                errors.required(f"spec.ports[{place}].name", "every port needs a name when there are several")
        elif port.name in seen:
            errors.duplicate(f"spec.ports[{place}].name", port.name)
        else:
            seen.add(port.name)


def _check_node_ports(spec: ModelBoxSpec, errors: FieldErrors) -> None:
    service_type = service_type_of(spec)
    seen: set[tuple[int, str]] = set()
    for place, port in enumerate(spec.ports):
        if port.node_port is None:
            continue
        path = f"spec.ports[{place}].nodePort"
        if service_type not in ("NodePort", "LoadBalancer"):
            errors.forbidden(path, f"may not be used with serviceType {service_type}; use NodePort or LoadBalancer")
        if (port.node_port, port.protocol) in seen:
            errors.duplicate(path, port.node_port)
        seen.add((port.node_port, port.protocol))


def _check_targets(spec: ModelBoxSpec, errors: FieldErrors) -> None:
    declared = declared_ports(spec)
    for place, port in enumerate(spec.ports):
        if not isinstance(port.target_port, str):
            continue
        path = f"spec.ports[{place}].targetPort"
        if not is_container_port_name(port.target_port):
            errors.add(
                path, "must be a port's number, or its name: at most 15 characters, a letter among them, no '--'"
            )
        elif (port.target_port, port.protocol) not in declared:
            errors.add(path, f"no container declares a {port.protocol} port of that name")
