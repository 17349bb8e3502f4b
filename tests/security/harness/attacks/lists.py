"""Lists: large ones, ones with odd selectors, ones in pages."""

from __future__ import annotations

import asyncio

from tests.security.harness.attack import CONFIG_MAPS, Target, attack
from tests.security.harness.exchange import Answer


async def _large_maps(on: Target) -> None:
    present = await on.get(f"{CONFIG_MAPS}/large-29?x=1")
    if present.code == 200:
        return
    for number in range(30):
        await on.post(CONFIG_MAPS, {"metadata": {"name": f"large-{number}"}, "data": {"a": "x" * 1_000_000}})


async def _small_maps(on: Target) -> None:
    if (await on.get(f"{CONFIG_MAPS}/small-2999")).code == 200:
        return

    async def some(start: int) -> None:
        for number in range(start, start + 100):
            await on.post(
                CONFIG_MAPS, {"metadata": {"name": f"small-{number}", "labels": {"a": "b"}}, "data": {"a": "b"}}
            )

    for start in range(0, 3000, 100):
        await some(start)


@attack(by="editor", prepare=_large_maps)
async def of_thirty_megabytes(on: Target) -> Answer:
    """A list of thirty megabytes."""
    return await on.get(CONFIG_MAPS)


@attack(by="editor", prepare=_large_maps)
async def of_thirty_megabytes_compressed(on: Target) -> Answer:
    """The same, compressed."""
    return await on.get(CONFIG_MAPS, **{"Accept-Encoding": "gzip"})


@attack(by="editor", prepare=_large_maps)
async def of_thirty_megabytes_in_protobuf(on: Target) -> Answer:
    """The same in protobuf."""
    return await on.get(CONFIG_MAPS, Accept="application/vnd.kubernetes.protobuf")


@attack(by="editor", prepare=_large_maps)
async def of_thirty_megabytes_in_yaml(on: Target) -> Answer:
    """The same in YAML."""
    return await on.get(CONFIG_MAPS, Accept="application/yaml")


@attack(by="editor", prepare=_large_maps)
async def pretty(on: Target) -> Answer:
    """The same for people to read."""
    return await on.get(f"{CONFIG_MAPS}?pretty=true")


@attack(by="editor", prepare=_large_maps)
async def ten_at_a_time(on: Target) -> Answer:
    """Ten lists of thirty megabytes at once, which nobody reads."""
    from tests.security.harness.exchange import request_bytes

    for _ in range(10):
        connection = await on.connect()
        connection.reader._transport.pause_reading()  # type: ignore[attr-defined]
        connection.writer.write(request_bytes("GET", CONFIG_MAPS))
    await asyncio.sleep(2)
    return await on.get("/version")


@attack(by="editor", prepare=_small_maps)
async def three_thousand(on: Target) -> Answer:
    """A list of three thousand small objects."""
    return await on.get(CONFIG_MAPS + "?labelSelector=a")


@attack(by="editor", prepare=_small_maps)
async def three_thousand_as_table(on: Target) -> Answer:
    """The same as a table."""
    return await on.get(CONFIG_MAPS + "?labelSelector=a", Accept="application/json;as=Table;g=meta.k8s.io;v=v1")


@attack(by="editor", prepare=_small_maps)
async def three_thousand_in_protobuf(on: Target) -> Answer:
    """The same in protobuf."""
    return await on.get(CONFIG_MAPS + "?labelSelector=a", Accept="application/vnd.kubernetes.protobuf")


@attack(by="editor", prepare=_small_maps)
async def three_thousand_in_yaml(on: Target) -> Answer:
    """The same in YAML."""
    return await on.get(CONFIG_MAPS + "?labelSelector=a", Accept="application/yaml")


@attack(by="editor", prepare=_small_maps)
async def three_thousand_pretty(on: Target) -> Answer:
    """The same for people to read."""
    return await on.get(CONFIG_MAPS + "?labelSelector=a&pretty=true")


@attack(by="editor", prepare=_small_maps)
async def three_thousand_with_a_long_selector(on: Target) -> Answer:
    """A selector with values without end, over three thousand objects."""
    values = ",".join(f"v{n}" for n in range(8_000))
    return await on.get(CONFIG_MAPS + f"?labelSelector=a+notin+({values})")


@attack(by="editor", prepare=_small_maps)
async def deleted_as_a_collection(on: Target) -> Answer:
    """Three thousand objects deleted by one request."""
    return await on.ask("DELETE", f"{CONFIG_MAPS}?labelSelector=a")


@attack(by="editor")
async def odd_continuations(on: Target) -> Answer:
    """Tokens of pages that the server did not give."""
    answer = Answer(0)
    for token in (
        "x",
        "e30",
        "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiLi4vIn0",
        "A" * 30_000,
        "W1tbW1tbW1s",
        "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MTAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMCwic3RhcnQiOiIifQ",
    ):
        answer = await on.get(f"{CONFIG_MAPS}?limit=1&continue={token}")
        if answer.is_internal_error:
            return answer
    return answer
