"""Specs made up by hypothesis: what the schema lets through, sensible or not."""

from hypothesis import strategies as st
from kubewright import Quantity
from kubewright.k8s.core.v1 import ResourceRequirements

from modelbox.api.v1.modelbox import ModelBox, ModelBoxSpec
from modelbox.api.v1.ports import ModelBoxPort

__all__ = ("modelboxes",)

_names = st.sampled_from(["web", "a", "model-1", "http", "a-rather-long-name-of-a-port"])
_numbers = st.integers(1, 65535)
_ports = st.builds(
    ModelBoxPort,
    port=_numbers,
    protocol=st.sampled_from(["TCP", "UDP", "SCTP"]),
    name=st.none() | _names,
    target_port=st.none() | _numbers | _names,
    node_port=st.none() | _numbers,
)
_resources = st.builds(
    ResourceRequirements,
    requests=st.none() | st.just({"cpu": Quantity("1")}),
    limits=st.none() | st.just({"cpu": Quantity("2")}),
)
_specs = st.builds(
    ModelBoxSpec,
    image=st.just("nginx:1.27"),
    ports=st.lists(_ports, min_size=1, max_size=5, unique_by=lambda port: (port.port, port.protocol)),
    name=st.none() | _names,
    replicas=st.integers(0, 5),
    service_type=st.none() | st.sampled_from(["ClusterIP", "NodePort", "LoadBalancer", "Headless"]),
    resource_type=st.none() | st.sampled_from(["small", "medium", "large", "custom"]),
    resources=st.none() | _resources,
    default_probes=st.booleans(),
    health_path=st.none() | st.just("/healthz"),
)
modelboxes = st.builds(lambda name, spec: ModelBox.named(name, "default", spec=spec), _names, _specs)
