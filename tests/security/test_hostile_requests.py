"""The server answers hostile requests, lives on, and keeps its memory: a part of what `make hostile` measures.

The catalogue of attacks and some hundred requests at random of a fixed seed, against a server in a process of its own.
How long the loop was held is not asked here: that takes a quiet machine.

Covers: kubewright.apiserver
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.security.harness import attacks
from tests.security.harness.attack import ATTACKS, Attack
from tests.security.harness.catalogue import Outcome, measured, peers_of
from tests.security.harness.exchange import request_bytes
from tests.security.harness.fuzzing.generator import FuzzedRequest, RequestGenerator
from tests.security.harness.fuzzing.run import Failure, FuzzResult, documented_operations, send_all
from tests.security.harness.report import write_page
from tests.security.harness.watched_process import Cost, WatchedProcess

__all__ = ("attacks",)

SEED = 15
REQUESTS = 300
QUICK = (
    "json_bodies.a_large_body_without_login",
    "json_bodies.a_long_number",
    "json_bodies.a_large_exponent",
    "yaml_bodies.aliases_of_aliases",
    "protobuf_bodies.long_varints",
    "protobuf_bodies.nested_groups",
    "patches.malformed_directives",
    "definitions.deep_properties",
    "expressions.a_deep_expression",
    "heads.length_and_chunks",
    "nesting.closed_objects_of_a_thousand_levels",
    "nesting.an_object_that_is_kept",
    "queries.odd_numbers",
    "lists.odd_continuations",
    "reviews.rules_of_a_namespace",
)
"""Attacks that cost little where they are refused, of many topics."""


@pytest.fixture(scope="module")
async def watched() -> AsyncIterator[WatchedProcess]:
    async with WatchedProcess("served_cluster", "--alone", address_space=1_500_000_000) as watched:
        yield watched


def named(name: str) -> Attack:
    return next(each for each in ATTACKS if f"{each.topic}.{each.name}" == name)


@pytest.mark.parametrize("name", QUICK)
async def test_an_attack_is_answered_and_costs_little_memory(watched: WatchedProcess, name: str) -> None:
    outcome = await measured(watched, named(name))

    assert not set(outcome.faults) - {"held"}, outcome


async def test_no_request_at_random_is_an_internal_error_or_costs_much_memory(watched: WatchedProcess) -> None:
    operations = await documented_operations(peers_of(watched.ready, "apiserver")["admin"])
    generator, result = RequestGenerator(SEED, operations), FuzzResult()
    await send_all(watched, map(generator.request, range(REQUESTS)), result, alone=True)

    assert result.sent == REQUESTS
    assert [failure for failure in result.failures if failure.fault != "held"] == []
    assert result.codes["200"] + result.codes["201"] > REQUESTS // 20, "hardly anything came near the mark"


async def test_a_request_of_a_seed_and_a_number_is_always_the_same(watched: WatchedProcess) -> None:
    operations = await documented_operations(peers_of(watched.ready, "apiserver")["admin"])

    first = [RequestGenerator(SEED, operations).request(number) for number in range(50)]
    again = [RequestGenerator(SEED, operations).request(number) for number in range(49, -1, -1)][::-1]

    assert first == again
    assert first != [RequestGenerator(SEED + 1, operations).request(number) for number in range(50)]


async def test_the_harness_notices_what_is_held_and_what_is_allocated() -> None:
    async with WatchedProcess("served_sloth") as watched:
        await watched.begin()
        await watched.settle(seconds=0.1)
        quiet = watched.glance()
        await watched.restart()
        await watched.begin()
        cost = await _asked(watched)

    assert quiet.hold < 0.25
    assert quiet.memory < 50_000_000
    assert cost.hold > 0.3
    assert 150_000_000 < cost.memory < 400_000_000


async def _asked(watched: WatchedProcess) -> Cost:
    """The cost of a request on which the sloth spends much."""
    peer = peers_of(watched.ready, "probes")["anonymous"]
    await peer.ask(request_bytes("GET", "/", close=True))
    await watched.settle()
    return watched.glance()


def test_a_failure_is_read_as_it_was_written(tmp_path: Path) -> None:
    requests = (FuzzedRequest("admin", b"GET \xff\x00"), FuzzedRequest("nobody", b"", endless=True, broken=True))
    failure = Failure("held", "a.py:1 f", True, requests, "200", Cost(0, 0, 0, 0, 0))

    assert Failure.read(failure.write(tmp_path, "one")) == failure


def test_the_page_keeps_what_is_around_the_figures(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- figures: written by make hostile -->\nformer\n<!-- end of figures -->\nafter\n")
    outcome = Outcome(named("heads.noise"), "400", Cost(0.3, 0.4, 0, 1_000_000, 0))
    for _ in range(2):
        write_page([outcome], [], machine="here", page=page)

    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "former" not in text
    assert text.count("| Bytes that mean nothing | anonymous | 300 ms **(too much)** | 1 MB | 400 |") == 1
