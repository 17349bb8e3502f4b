"""until() and gone(): wait by watching until an object is as expected, and show what was seen if that does not happen.

    web = await until(client, Web, ObjectKey("shop", "web"), lambda web: web.status.ready == 3)
    await gone(client, Deployment, ObjectKey("shop", "web"))

No polling and no sleeping, so a test takes exactly as long as what it waits for.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from kubewright._base import yaml
from kubewright.api.codec import to_tree
from kubewright.api.names import ObjectKey
from kubewright.api.resource import KubeObject, definition_of
from kubewright.client.client import Client
from kubewright.client.watch import WatchEvent
from kubewright.errors import Expired
from kubewright.testing.operator_log import shown_logs
from kubewright.testing.time_limits import TimeLimit

__all__ = ("gone", "key_in", "until")

K = TypeVar("K", bound=KubeObject)


async def until(
    client: Client,
    kind: type[K],
    name: str | ObjectKey,
    predicate: Callable[[K], object] = lambda _: True,
    *,
    namespace: str | None = None,
    timeout: float = 30.0,
) -> K:
    """The object, as soon as it exists and `predicate` is true of it.

    After `timeout` seconds, more on a machine that is slow or busy, an AssertionError shows the object as last seen.
    """
    last: list[K] = []

    def met(event: WatchEvent[K]) -> bool:
        last[:] = [event.object] if event.type != "DELETED" else []
        return bool(last and predicate(event.object))

    key = key_in(client, kind, name, namespace)
    limit = TimeLimit(timeout)
    try:
        return await _first(client, kind, key, met, limit)
    except TimeoutError:
        seen = f"last seen as\n{_shown(last[0])}" if last else "and it does not exist"
        raise AssertionError(f"{kind.__name__} {key} is not as expected after {limit}; {seen}{shown_logs()}") from None


async def gone(
    client: Client,
    kind: type[K],
    name: str | ObjectKey,
    *,
    namespace: str | None = None,
    uid: str = "",
    timeout: float = 30.0,
) -> None:
    """Return as soon as there is no such object or, with a `uid`, as soon as the object with that uid is gone.

    After `timeout` seconds an AssertionError shows the object as it was last seen, with its finalizers.
    """
    key = key_in(client, kind, name, namespace)
    present: K | None = None
    limit = TimeLimit(timeout)
    try:
        async with limit:
            while True:
                present = await client.find(kind, key)
                if present is None or (uid and present.metadata.uid != uid):
                    return
                # 410: the server compacted that version, so read the object again.
                with suppress(Expired):
                    async with client.watch(
                        kind,
                        namespace=key.namespace or None,
                        fields={"metadata.name": key.name},
                        resource_version=present.metadata.resource_version,
                    ) as events:
                        async for event in events:
                            if event.type == "DELETED":
                                break
                            present = event.object
    except TimeoutError:
        seen = "and the server has not said whether" if present is None else f"last seen as\n{_shown(present)}"
        raise AssertionError(f"{kind.__name__} {key} is still there after {limit}; {seen}{shown_logs()}") from None


async def _first(
    client: Client, kind: type[K], key: ObjectKey, met: Callable[[WatchEvent[K]], bool], limit: TimeLimit
) -> K:
    fields = {"metadata.name": key.name}
    async with limit:
        while True:
            try:
                async with client.watch(
                    kind, namespace=key.namespace or None, fields=fields, initial_events=True
                ) as events:
                    async for event in events:
                        if met(event):
                            return event.object
            except Expired:
                continue  # 410: the next watch begins with the objects that exist


def _shown(obj: KubeObject) -> str:
    """An object for people: without its managed fields, which nobody reads."""
    tree = to_tree(obj)
    tree["metadata"].pop("managedFields", None)
    return yaml.dump(tree)


def key_in(client: Client, kind: type[KubeObject], name: str | ObjectKey, namespace: str | None) -> ObjectKey:
    """Namespace and name of an object; in the client's own namespace if none is named."""
    if isinstance(name, ObjectKey):
        return name
    return ObjectKey((namespace or client.namespace) if definition_of(kind).namespaced else "", name)
