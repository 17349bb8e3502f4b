"""The custom resource of the operator benchmarks, and Widgets to fill a cluster with.

`peers/controller_runtime/widget.go` and `peers/floor.py` declare the same kind.
"""

from __future__ import annotations

from kubewright import Model, Resource, Spec, Status

__all__ = ("NAMESPACE", "SENTINEL", "Widget", "heavy_widget", "light_widget", "sentinel")

NAMESPACE = "bench"
SENTINEL = "zz-sentinel"
"""Listed after all others: when its status is written, an operator has read the whole list."""


class Part(Model):
    """There to give a Widget some weight."""

    name: str
    image: str = ""
    arguments: list[str] = []
    settings: dict[str, str] = {}


class WidgetSpec(Spec):
    size: int = 0
    note: str = ""
    paused: bool = False
    """An operator leaves a paused Widget alone: it costs memory and no writes."""
    parts: list[Part] = []


class WidgetStatus(Status):
    ready: bool = False


class Widget(Resource[WidgetSpec, WidgetStatus], group="bench.example.io", version="v1"):
    """For each an operator keeps one ConfigMap and writes a status."""


def light_widget(number: int) -> Widget:
    """A Widget to be reconciled."""
    spec = WidgetSpec(size=number % 100, note=f"widget number {number} of the benchmark")
    return Widget.named(f"widget-{number:06}", NAMESPACE, spec=spec)


def sentinel() -> Widget:
    """A Widget to be reconciled, last in the list."""
    return Widget.named(SENTINEL, NAMESPACE, spec=WidgetSpec(size=1))


def heavy_widget(number: int) -> Widget:
    """A paused Widget, about 2.5 KB as stored and without managed fields, with lists and maps as real ones have."""
    widget = Widget.named(
        f"heavy-{number:06}",
        NAMESPACE,
        spec=WidgetSpec(size=number, paused=True, parts=[_part(number, place) for place in range(7)]),
    )
    widget.metadata.labels = {"app.kubernetes.io/name": f"app-{number % 97}", "team": f"team-{number % 20}"}
    widget.metadata.annotations = {"checksum/config": f"{number:064x}"}
    return widget


def _part(number: int, place: int) -> Part:
    return Part(
        name=f"part-{place}",
        image=f"registry.example.io/shop/part-{place}:1.{number % 40}.{place}",
        arguments=[f"--shard={number}", "--log-format=json", f"--listen=:80{place:02}"],
        settings={
            "endpoint": f"https://part-{place}.team-{number % 20}.svc.cluster.local:8443/v1",
            "checksum": f"{number * 7 + place:040x}",
            "level": "info",
        },
    )
