"""The kind that other people's operators look after in these tests, and a way to wait for a state of the server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from kubewright import Resource, Spec, Status
from kubewright.api.resource import KubeObject

__all__ = ("Present", "Widget", "WidgetSpec", "widget")

K = TypeVar("K", bound=KubeObject)


class WidgetSpec(Spec):
    size: int = 1


class WidgetStatus(Status):
    ready: int = 0


class Widget(Resource[WidgetSpec, WidgetStatus], group="clients.example.io", version="v1"):
    """What the operators look after."""


def widget(number: int, namespace: str) -> Widget:
    """One of them; its size is its number."""
    return Widget.named(f"w{number:03}", namespace, spec=WidgetSpec(size=number))


class Present(Protocol):
    """Waits until the objects of a kind in a namespace, by name, satisfy a condition."""

    def __call__(
        self, kind: type[K], namespace: str, holds: Callable[[dict[str, K]], bool], *, seconds: float = 60
    ) -> Awaitable[dict[str, K]]: ...
