"""Metrics: registries of their own, children bound once, text that Prometheus reads."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kubewright._base.metrics import Metrics
from kubewright.errors import ConfigError


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


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ((), "the metric orders_total has the labels region, size; give child() a value for each"),
        (("north",), "give child() a value for each"),
        (("north", "small", "more"), "give child() a value for each"),
        (("north", None), "the label size of the metric orders_total is None; give text"),
        (("north", 3), "the label size of the metric orders_total is 3; give text"),
    ],
)
def test_a_wrong_label_raises_where_it_is_given_and_hides_no_other_metric(
    given: tuple[str, ...], sentence: str
) -> None:
    metrics = Metrics()
    orders = metrics.counter("orders_total", "Orders.", labels=("region", "size"))
    orders.child("south", "large").inc()

    with pytest.raises(ConfigError) as caught:
        orders.child(*given)

    assert sentence in str(caught.value)
    assert b'orders_total{region="south",size="large"} 1.0' in metrics.exposition()


@pytest.mark.parametrize("value", ["many", None, [1]])
def test_what_is_no_number_raises_where_it_is_given(value: Any) -> None:
    metrics = Metrics()
    depth = metrics.gauge("depth", "Depth.").child()
    took = metrics.histogram("took_seconds", "Time.", buckets=(1,)).child()
    adds = metrics.counter("adds_total", "Adds.").child()
    depth.set(2)

    for give in (depth.set, depth.inc, took.observe, adds.inc):
        with pytest.raises((TypeError, ValueError)):
            give(value)

    assert b"depth 2.0" in metrics.exposition()


@pytest.mark.parametrize(
    ("name", "labels", "sentence"),
    [
        ("shop orders", (), "'shop orders' is no name for a metric"),
        ("orders", ("re-gion",), "'re-gion' is no name for a label of the metric orders"),
        ("orders", ("__region",), "is no name for a label"),
        ("orders", ("a", "a"), "has a label twice"),
        ("orders", "region", "give a tuple, as in labels=('region',)"),
    ],
)
def test_a_name_that_prometheus_does_not_take_is_refused(name: str, labels: Any, sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Metrics().counter(name, "Orders.", labels=labels)

    assert sentence in str(caught.value)


def test_a_histogram_has_a_label_of_its_own() -> None:
    with pytest.raises(ConfigError, match="'le' is no name for a label of the metric took_seconds"):
        Metrics().histogram("took_seconds", "Time.", labels=("le",), buckets=(1,))


def test_a_name_has_one_type_and_one_set_of_labels() -> None:
    metrics = Metrics()
    metrics.counter("orders_total", "Orders.", labels=("region",))

    with pytest.raises(ConfigError, match="orders_total is a counter with the labels region already, and not a gauge"):
        metrics.gauge("orders_total", "Orders.", labels=("region",))
    with pytest.raises(ConfigError, match="and not a counter with no labels; give this one another name"):
        metrics.counter("orders_total", "Orders.")


def test_numbers_and_labels_that_are_odd_can_be_read() -> None:
    metrics = Metrics()
    odd = metrics.gauge("odd", "Odd.", labels=("what",))
    for value in (float("inf"), float("-inf"), float("nan")):
        odd.child(str(value)).set(value)
    odd.child("half \ud800").set(1)

    text = metrics.exposition().decode()

    assert [line.split()[-1] for line in text.splitlines()[2:]] == ["+Inf", "-Inf", "NaN", "1.0"]
    assert len(list(text_string_to_metric_families(text))) == 1
