"""The inside of a running process as plain data, for /debug: tasks, queues, caches, recent reconciles, leader election.

Each page looks up its data when it is asked for, so it costs nothing otherwise. A controller is any runnable with a
`queue` and `recent` reconciles.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from kubewright._base.log_formats import plain
from kubewright.manager.cache_protocols import CacheLike
from kubewright.manager.runnables import RunnableGroup, Runnables

if TYPE_CHECKING:
    from kubewright.manager.leader_election.elector import LeaderElector

__all__ = ("DebugProvider", "debug_pages")

DebugProvider = Callable[[], Any]
"""Returns something that can be shown as JSON."""


def debug_pages(
    runnables: Runnables, caches: Callable[[], Iterable[CacheLike]], elector: LeaderElector | None
) -> dict[str, DebugProvider]:
    """The pages by name."""
    return {
        "runnables": lambda: {name: round(seconds, 3) for name, seconds in runnables.running().items()},
        "queues": lambda: _queues(runnables),
        "reconciles": lambda: _reconciles(runnables),
        "caches": lambda: [_cache(cache) for cache in caches()],
        "leader_election": lambda: _leader_election(elector),
        "tasks": _tasks,
    }


def _members(runnables: Runnables) -> Iterable[Any]:
    for group in RunnableGroup:
        yield from runnables.members(group)


def _queues(runnables: Runnables) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for member in _members(runnables):
        queue = getattr(member, "queue", None)
        if queue is not None:
            shown[member.name] = {
                "ready": {str(priority): count for priority, count in queue.depths().items()},
                "processing": {str(key): round(seconds, 3) for key, seconds in queue.processing().items()},
                "delayed": {str(key): round(seconds, 3) for key, seconds in queue.delayed().items()},
            }
    return shown


def _reconciles(runnables: Runnables) -> dict[str, Any]:
    return {
        member.name: [_attributes(record) for record in reversed(member.recent)]
        for member in _members(runnables)
        if hasattr(member, "recent")
    }


def _attributes(record: Any) -> dict[str, Any]:
    return {name: plain(getattr(record, name)) for name in getattr(record, "__struct_fields__", ())}


def _cache(cache: CacheLike) -> list[dict[str, Any]]:
    return [
        {
            "kind": watched.kind.__name__,
            "scope": str(getattr(watched, "scope", "")),
            "synced": watched.synced,
            "last_heard_seconds": round(watched.watch_age(), 3),
            "past_deadline": watched.past_deadline(),
            "problem": watched.problem.sentence if watched.problem is not None else None,
        }
        for watched in cache.informers()
    ]


def _leader_election(elector: LeaderElector | None) -> dict[str, Any]:
    if elector is None:
        return {"election": False}
    return {
        "election": True,
        "leading": elector.is_leader,
        "identity": elector.identity,
        "holder": elector.holder,
        "lease": f"{elector.namespace}/{elector.lease}",
    }


def _tasks() -> list[dict[str, str]]:
    shown = []
    for task in asyncio.all_tasks():
        frames = task.get_stack(limit=1)
        place = f"{frames[0].f_code.co_filename}:{frames[0].f_lineno}" if frames else ""
        shown.append({"name": task.get_name(), "at": place})
    return sorted(shown, key=lambda entry: entry["name"])
