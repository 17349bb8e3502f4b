"""`Widget`, a custom resource with one of everything, for tests of the API server and of the run time."""

from __future__ import annotations

from typing import Annotated

from kubewright import Field, Model, Resource, Spec, Status


class WidgetPart(Model):
    name: str
    weight: int | None = None


class WidgetSpec(Spec):
    size: Annotated[int, Field(ge=0, le=100)] = 1
    note: str | None = None
    parts: list[WidgetPart] | None = None


class WidgetStatus(Status):
    ready: int = 0


class Widget(
    Resource[WidgetSpec, WidgetStatus],
    group="contract.example.io",
    version="v1",
    short_names=("wd",),
    categories=("all",),
    scale=("spec.size", "status.ready"),
):
    """A custom resource with one of everything."""


def widget(name: str = "web", namespace: str = "shop", *, size: int = 1) -> Widget:
    """A Widget `web` in the namespace `shop`, of size 1."""
    return Widget.named(name, namespace, spec=WidgetSpec(size=size))
