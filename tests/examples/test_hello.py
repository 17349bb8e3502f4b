"""hello: a class, a function, a status."""

from __future__ import annotations

import pytest
from examples.hello import Greeting, GreetingSpec
from tests.examples.conftest import ApplyManifest, RunExample

from kubewright import Client
from kubewright.errors import Invalid
from kubewright.testing import until


async def test_whoever_is_named_is_greeted(
    run_example: RunExample, apply_manifest: ApplyManifest, client: Client
) -> None:
    async with run_example("hello"):
        await apply_manifest("hello")
        greeting = await until(client, Greeting, "world", lambda it: it.status.message == "Hello, world!")
        greeting.spec.who = "moon"
        await client.patch(greeting)
        greeting = await until(client, Greeting, "world", lambda it: it.status.message == "Hello, moon!")

    assert greeting.status.observed_generation == greeting.metadata.generation == 2


async def test_an_empty_name_is_refused_by_the_schema(run_example: RunExample, client: Client, namespace: str) -> None:
    async with run_example("hello"):
        with pytest.raises(Invalid, match=r"spec\.who"):
            await client.create(Greeting.named("nobody", namespace, spec=GreetingSpec(who="")))
