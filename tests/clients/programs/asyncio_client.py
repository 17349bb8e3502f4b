"""kubernetes_asyncio: a life of an object and a watch of it; says `done` at the end."""

# The packages these programs are about are untyped, or typed more narrowly than their documentation.
# mypy: ignore-errors

from __future__ import annotations

import asyncio
import sys

from kubernetes_asyncio import client, config, watch


async def main(namespace: str) -> None:
    """Everything in one namespace."""
    await config.load_kube_config()
    async with client.ApiClient() as api:
        core = client.CoreV1Api(api)
        # From what is there now on: whatever comes first, the watch or the changes, it tells of each.
        version = (await core.list_namespaced_config_map(namespace)).metadata.resource_version
        seen = asyncio.create_task(_events(core, namespace, version))
        body = client.V1ConfigMap(metadata=client.V1ObjectMeta(name="a", labels={"x": "y"}), data={"n": "0"})
        made = await core.create_namespaced_config_map(namespace, body)
        for number in (1, 2, 3):
            await core.patch_namespaced_config_map("a", namespace, {"data": {"n": str(number)}})
        await core.delete_namespaced_config_map("a", namespace)
        events = await asyncio.wait_for(seen, 60)
        assert events == [("ADDED", "0"), ("MODIFIED", "1"), ("MODIFIED", "2"), ("MODIFIED", "3"), ("DELETED", "3")]
        assert made.metadata.uid
    print("done")


async def _events(core: client.CoreV1Api, namespace: str, version: str) -> list[tuple[str, str]]:
    found = []
    async with watch.Watch() as watching:
        async for event in watching.stream(
            core.list_namespaced_config_map, namespace, label_selector="x=y", resource_version=version
        ):
            found.append((event["type"], event["object"].data["n"]))
            if event["type"] == "DELETED":
                return found
    raise AssertionError("the watch ended")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
