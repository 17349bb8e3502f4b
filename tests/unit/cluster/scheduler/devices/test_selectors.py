"""CEL selectors of devices."""

from __future__ import annotations

import pytest

from kubewright.api.codec import from_tree
from kubewright.cluster.scheduler.devices.selectors import cel_device, matches_selector
from kubewright.errors import DecodeError
from kubewright.k8s.resource.v1 import Device

DEVICE = cel_device(
    from_tree(
        Device,
        {
            "name": "gpu-0",
            "attributes": {
                "model": {"string": "h100"},
                "cores": {"int": 8},
                "shared": {"bool": False},
                "firmware": {"version": "1.10.0"},
                "resource.kubernetes.io/pcieRoot": {"string": "pci0000:00"},
            },
            "capacity": {"memory": {"value": "80Gi"}, "vendor.example.com/slots": {"value": "7"}},
        },
    ),
    "gpu.example.com",
)


@pytest.mark.parametrize(
    "expression",
    [
        'device.driver == "gpu.example.com"',
        'device.attributes["gpu.example.com"].model == "h100"',
        'device.attributes["gpu.example.com"].cores >= 8',
        '!device.attributes["gpu.example.com"].shared',
        'device.attributes["gpu.example.com"].firmware.isGreaterThan(semver("1.9.0"))',
        'device.attributes["resource.kubernetes.io"].pcieRoot.startsWith("pci")',
        'device.capacity["gpu.example.com"].memory == quantity("80Gi")',
        'device.capacity["vendor.example.com"].slots.asInteger() == 7',
        'cel.bind(gpu, device.attributes["gpu.example.com"], gpu.model == "h100" && gpu.cores == 8)',
        '"gpu.example.com" in device.attributes',
        '"cores" in device.attributes["gpu.example.com"]',
    ],
)
def test_an_expression_reads_driver_attributes_and_capacity(expression: str) -> None:
    assert matches_selector(expression, DEVICE)


@pytest.mark.parametrize(
    "expression",
    [
        '"other.example.com" in device.attributes',
        'has(device.attributes["other.example.com"].model)',
        '"model" in device.attributes["other.example.com"]',
        'has(device.capacity["gpu.example.com"].bandwidth)',
    ],
)
def test_an_unknown_domain_is_empty(expression: str) -> None:
    assert not matches_selector(expression, DEVICE)


def test_a_missing_attribute_is_an_error() -> None:
    with pytest.raises(DecodeError, match="no such key: colour"):
        matches_selector('device.attributes["gpu.example.com"].colour == "red"', DEVICE)
