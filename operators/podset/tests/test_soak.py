"""Many random changes and losses, then exactly what was asked for; PODSET_SOAK_ROUNDS makes it as long as one likes."""

import os
import tracemalloc
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from kubewright import NotFound
from kubewright.k8s.core.v1 import Pod

import podset
from tests.home import Home, owner_of

ROUNDS = int(os.environ.get("PODSET_SOAK_ROUNDS", "30"))
LARGEST = 12


@pytest.mark.timeout(120 + ROUNDS)
async def test_after_random_changes_and_losses_the_set_is_exactly_as_asked_for(home: Home) -> None:
    random = Random(2030)
    seen = await home.podset(3)
    size = 3
    tracemalloc.start()
    try:
        before = own_bytes()
        async with home.counting() as counts:
            for _ in range(ROUNDS):
                if random.random() < 0.5:
                    size = random.randint(0, LARGEST)
                    await home.resize(size)
                elif pods := await home.pods():
                    with suppress(NotFound):  # the operator was faster
                        await home.client.delete(Pod, random.choice(pods).key)
                if random.random() < 0.2:
                    await home.settled(size)

            await home.pods_until(
                lambda pods: (
                    [owner_of(pod) for pod in pods.values()] == [seen.metadata.uid] * size
                    and all(pod.metadata.deletion_timestamp is None for pod in pods.values())
                )
            )
            await home.settled(size)
        after = own_bytes()
    finally:
        tracemalloc.stop()
    assert max(counts) <= LARGEST
    assert after - before < 64 * 1024


def own_bytes() -> int:
    """What the operator's own code holds."""
    folder = Path(podset.__file__).parent
    mine = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, f"{folder}/*")])
    return sum(trace.size for trace in mine.statistics("filename"))
