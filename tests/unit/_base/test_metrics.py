"""Metrics: registries of their own, children bound once, text that Prometheus reads."""

from __future__ import annotations

import sys

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kubewright._base.metrics import Metrics


def test_counters_gauges_and_histograms_are_shown_in_text() -> None:
    metrics = Metrics()
    metrics.counter("adds_total", "Adds.", labels=("name",)).child("web").inc(2)
    metrics.gauge("depth", "Depth.").child().set(3)
    metrics.histogram("took_seconds", "Time.", buckets=(0.1, 1)).child().observe(0.5)

    text = metrics.exposition().decode()

    assert 'adds_total{name="web"} 2.0' in text
    assert "depth 3.0" in text
    assert 'took_seconds_bucket{le="1.0"} 1.0' in text
    assert "# TYPE adds_total counter" in text
    assert "_created" not in text


def test_two_registries_do_not_clash() -> None:
    one, two = Metrics(), Metrics()
    one.counter("adds_total", "Adds.").child().inc()
    two.counter("adds_total", "Adds.").child().inc(5)

    assert b"adds_total 1.0" in one.exposition()
    assert b"adds_total 5.0" in two.exposition()


def test_a_family_and_its_children_are_made_once() -> None:
    metrics = Metrics()
    first = metrics.counter("adds_total", "Adds.", labels=("name",))

    assert metrics.counter("adds_total", "Adds.", labels=("name",)) is first
    assert first.child("web") is first.child("web")


def test_a_removed_child_is_not_shown() -> None:
    metrics = Metrics()
    family = metrics.gauge("depth", "Depth.", labels=("name",))
    family.child("web").set(1)

    family.remove("web")
    family.remove("never-there")

    assert b"web" not in metrics.exposition()


def test_values_are_looked_up_when_shown_and_a_failing_one_hurts_no_other() -> None:
    metrics = Metrics()
    depth = metrics.gauge("depth", "Depth.").child()

    def fail() -> None:
        raise ValueError("broken")

    metrics.before_exposition(fail)
    metrics.before_exposition(lambda: depth.set(7))

    assert b"depth 7.0" in metrics.exposition()


def test_the_process_is_shown_if_wanted() -> None:
    assert b"process_cpu_seconds_total" in Metrics(process=True).exposition()
    assert b"process_cpu_seconds_total" not in Metrics().exposition()


def test_only_the_process_is_missing_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    metrics = Metrics(process=True)
    metrics.counter("adds_total", "Adds.", labels=("name",)).child("web").inc()

    assert metrics.exposition() == b'# HELP adds_total Adds.\n# TYPE adds_total counter\nadds_total{name="web"} 1.0\n'


def test_histograms_are_cumulative() -> None:
    metrics = Metrics()
    took = metrics.histogram("took_seconds", "Time.", labels=("of",), buckets=(0.1, 1)).child("x")
    for seconds in (0.05, 0.1, 0.5, 3):
        took.observe(seconds)

    assert [line for line in metrics.exposition().decode().splitlines() if not line.startswith("#")] == [
        'took_seconds_bucket{of="x",le="0.1"} 2.0',
        'took_seconds_bucket{of="x",le="1.0"} 3.0',
        'took_seconds_bucket{of="x",le="+Inf"} 4.0',
        'took_seconds_count{of="x"} 4.0',
        'took_seconds_sum{of="x"} 3.65',
    ]


def test_the_text_is_what_prometheus_reads() -> None:
    metrics = Metrics()
    metrics.counter("odd_total", 'A "quoted" \\ text.', labels=("what",)).child('a"b\\c\nd').inc()

    (family,) = text_string_to_metric_families(metrics.exposition().decode())

    assert family.samples[0].labels == {"what": 'a"b\\c\nd'}
