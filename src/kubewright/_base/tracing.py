"""Spans for OpenTelemetry: one per reconcile, children for API calls.

    with span("reconcile", controller="web", key="shop/web") as current:
        current.set("outcome", "success")

Costs nothing unless the program has set an OpenTelemetry provider. Nothing is configured or exported here, and the
library is not imported before the program has imported it: only then can a provider be set. No other module uses
OpenTelemetry.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, final

from kubewright._base.version import __version__

if TYPE_CHECKING:
    from opentelemetry import trace

__all__ = ("Span", "span")

Attribute = str | bool | int | float


class Span(Protocol):
    """A span in progress."""

    def set(self, name: str, value: Attribute) -> None:
        """Add an attribute."""
        ...


@final
class _NoSpan:
    """The span of a program that does not trace: one instance for all, and its own context manager."""

    __slots__ = ()

    def __enter__(self) -> Span:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def set(self, name: str, value: Attribute) -> None:
        return None


_NO_SPAN = _NoSpan()


@final
class _OpenTelemetrySpan:
    __slots__ = ("_span",)

    def __init__(self, otel_span: trace.Span) -> None:
        self._span = otel_span

    def set(self, name: str, value: Attribute) -> None:
        self._span.set_attribute(name, value)


def span(name: str, /, **attributes: Attribute) -> AbstractContextManager[Span]:  # hot
    """Measure the code inside, as a child of the current span. An error inside is recorded and propagates."""
    if "opentelemetry.trace" not in sys.modules:
        return _NO_SPAN
    tracer = _tracer()
    return _NO_SPAN if tracer is None else _start_span(tracer, name, attributes)


def _tracer() -> trace.Tracer | None:
    from opentelemetry import trace

    # Checked each time: the program may set a provider, once, at any moment. Until then the library returns a proxy.
    provider = trace.get_tracer_provider()
    if isinstance(provider, trace.ProxyTracerProvider | trace.NoOpTracerProvider):
        return None
    return provider.get_tracer("kubewright", __version__)


@contextmanager
def _start_span(tracer: trace.Tracer, name: str, attributes: dict[str, Attribute]) -> Iterator[Span]:
    with tracer.start_as_current_span(name, attributes=attributes) as otel_span:
        yield _OpenTelemetrySpan(otel_span)
