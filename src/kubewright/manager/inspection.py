"""The inside of a running process as plain data, for the debug pages: tasks, queues, caches, recent runs, leadership.

Everything is looked up when asked for, so it costs nothing otherwise. Controllers are known by what they may have: a
`queue`, and `recent` runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from kubewright._base.log_formats import plain
from kubewright.manager.checks import CacheLike
from kubewright.manager.runnables import Group, Runnables

if TYPE_CHECKING:
    from kubewright.manager.leadership import Leadership

__all__ = ("Provider", "pages_of")

Provider = Callable[[], Any]
"""Returns something that can be shown as JSON."""


def pages_of(
    runnables: Runnables, caches: Callable[[], Iterable[CacheLike]], leadership: Leadership | None
) -> dict[str, Provider]:
    """The pages by name."""
    return {
        "runnables": lambda: {name: round(seconds, 3) for name, seconds in runnables.running().items()},
        "queues": lambda: _queues(runnables),
        "runs": lambda: _runs(runnables),
        "caches": lambda: [_cache(cache) for cache in caches()],
        "leadership": lambda: _leadership(leadership),
        "tasks": _tasks,
    }


def _members(runnables: Runnables) -> Iterable[Any]:
    for group in Group:
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


def _runs(runnables: Runnables) -> dict[str, Any]:
    return {
        member.name: [_attributes(run) for run in reversed(member.recent)]
        for member in _members(runnables)
        if hasattr(member, "recent")
    }


def _attributes(run: Any) -> dict[str, Any]:
    return {name: plain(getattr(run, name)) for name in getattr(run, "__struct_fields__", ())}


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


def _leadership(leadership: Leadership | None) -> dict[str, Any]:
    if leadership is None:
        return {"election": False}
    return {
        "election": True,
        "leading": leadership.is_leader,
        "identity": leadership.identity,
        "holder": leadership.holder,
        "lease": f"{leadership.namespace}/{leadership.lease}",
    }


def _tasks() -> list[dict[str, str]]:
    shown = []
    for task in asyncio.all_tasks():
        frames = task.get_stack(limit=1)
        place = f"{frames[0].f_code.co_filename}:{frames[0].f_lineno}" if frames else ""
        shown.append({"name": task.get_name(), "at": place})
    return sorted(shown, key=lambda entry: entry["name"])
