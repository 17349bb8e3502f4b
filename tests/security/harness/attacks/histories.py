"""What the server remembers: old versions of objects, events, revisions."""

from __future__ import annotations

from tests.security.harness.attack import CONFIG_MAPS, NAMESPACE, Target, attack
from tests.security.harness.exchange import Answer


async def _one_map(on: Target) -> None:
    await on.post(CONFIG_MAPS, {"metadata": {"name": "changing"}, "data": {"a": "b"}})


@attack(by="editor", prepare=_one_map, spoils=True)
async def versions_of_an_object(on: Target) -> Answer:
    """Five hundred versions of an object of a megabyte."""
    answer = Answer(0)
    for number in range(500):
        answer = await on.patch(f"{CONFIG_MAPS}/changing", {"data": {"a": f"{number}" + "x" * 1_000_000}})
    return answer


@attack(by="editor", spoils=True)
async def created_and_deleted(on: Target) -> Answer:
    """Two hundred objects of a megabyte, each deleted at once."""
    answer = Answer(0)
    for number in range(200):
        await on.post(CONFIG_MAPS, {"metadata": {"name": f"gone-{number}"}, "data": {"a": "x" * 1_000_000}})
        answer = await on.ask("DELETE", f"{CONFIG_MAPS}/gone-{number}")
    return answer


@attack(by="editor", spoils=True)
async def events(on: Target) -> Answer:
    """A hundred events with a note of a megabyte."""
    answer = Answer(0)
    for number in range(100):
        answer = await on.post(
            f"{NAMESPACE}/events",
            {
                "metadata": {"name": f"e{number}", "namespace": "edited", "annotations": {"a": "x" * 200_000}},
                "involvedObject": {"namespace": "edited"},
                "reason": "R",
                "message": "x",
            },
        )
    return answer
