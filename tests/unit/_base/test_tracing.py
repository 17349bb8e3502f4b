"""Spans: free without a provider, nested and honest with one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from opentelemetry import trace

from kubewright._base import tracing
from kubewright._base.tracing import span


class RecordingTracer(trace.NoOpTracer):
    def __init__(self) -> None:
        self.spans: list[tuple[str, dict[str, Any]]] = []

    @contextmanager
    def start_as_current_span(self, name: str, *arguments: Any, **options: Any) -> Iterator[trace.Span]:  # type: ignore[override]  # the library wraps it in a class of its own
        attributes = dict(options["attributes"])
        self.spans.append((name, attributes))

        class RecordingSpan(trace.NonRecordingSpan):
            def set_attribute(self, key: str, value: Any) -> None:
                attributes[key] = value

        yield RecordingSpan(trace.INVALID_SPAN_CONTEXT)


def test_without_a_provider_a_span_is_one_shared_nothing() -> None:
    with span("reconcile", key="a") as one, span("child") as two:
        one.set("outcome", "success")

    assert one is two


def test_the_library_is_not_imported_for_it() -> None:
    script = (
        "import sys\nfrom kubewright._base.tracing import span\n"
        "with span('x') as s: s.set('a', 1)\nprint('opentelemetry' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "False"


def test_with_a_provider_spans_carry_their_attributes(monkeypatch: pytest.MonkeyPatch) -> None:
    tracer = RecordingTracer()

    class Provider(trace.TracerProvider):
        def get_tracer(self, *arguments: Any, **options: Any) -> trace.Tracer:
            return tracer

    monkeypatch.setattr(trace, "get_tracer_provider", Provider)

    with span("reconcile", controller="web") as current:
        current.set("outcome", "success")

    assert tracer.spans == [("reconcile", {"controller": "web", "outcome": "success"})]


def test_an_error_inside_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "_tracer", RecordingTracer)

    with pytest.raises(ValueError, match="broken"), span("reconcile"):
        raise ValueError("broken")
