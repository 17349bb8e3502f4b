"""Spans for those who trace: one per reconcile, children for API calls.

    with span("reconcile", controller="web", key="shop/web") as current:
        current.set("outcome", "success")

Free unless the program has set up an OpenTelemetry provider. Nothing is configured or exported here, and the library is
not even imported by us: a provider can only have been set by somebody who imported it. The only module that
knows OpenTelemetry.
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
    """What one may say about the work under way."""

    def set(self, name: str, value: Attribute) -> None:
        """Add an attribute."""
        ...


@final
class _Nothing:
    """The span of a program that does not trace: one for all, and its own context manager."""

    __slots__ = ()

    def __enter__(self) -> Span:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def set(self, name: str, value: Attribute) -> None:
        return None


_NOTHING = _Nothing()


@final
class _Recorded:
    __slots__ = ("_span",)

    def __init__(self, recorded: trace.Span) -> None:
        self._span = recorded

    def set(self, name: str, value: Attribute) -> None:
        self._span.set_attribute(name, value)


def span(name: str, /, **attributes: Attribute) -> AbstractContextManager[Span]:  # hot
    """Time what happens inside, as a child of the span around it. An error inside is noted and goes on."""
    if "opentelemetry.trace" not in sys.modules:
        return _NOTHING
    tracer = _tracer()
    return _NOTHING if tracer is None else _traced(tracer, name, attributes)


def _tracer() -> trace.Tracer | None:
    from opentelemetry import trace

    # Asked each time: a provider may be set, once, at any moment. Until then the library hands out a stand-in.
    provider = trace.get_tracer_provider()
    if isinstance(provider, trace.ProxyTracerProvider | trace.NoOpTracerProvider):
        return None
    return provider.get_tracer("kubewright", __version__)


@contextmanager
def _traced(tracer: trace.Tracer, name: str, attributes: dict[str, Attribute]) -> Iterator[Span]:
    with tracer.start_as_current_span(name, attributes=attributes) as recorded:
        yield _Recorded(recorded)
