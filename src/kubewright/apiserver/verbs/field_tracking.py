"""Notes in `managedFields` who manages which fields, for the verbs that write.

`managedfields.field_manager` makes the decisions and is pure; this module calls it with what a request says, and
converts objects between versions for it where a webhook has to do that (`webhook_conversions`).
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from kubewright.api.times import format_time
from kubewright.apiserver.kinds.calls import Call
from kubewright.apiserver.kinds.resources import Resource, Tree
from kubewright.apiserver.kinds.system_metadata import manager_or_user_agent
from kubewright.apiserver.managedfields.conflicts import ApplyConflict, conflict_error
from kubewright.apiserver.managedfields.field_manager import Convert, apply, record_update
from kubewright.apiserver.verbs.webhook_conversions import with_conversions
from kubewright.apiserver.wire.options import WriteOptions
from kubewright.apiserver.wire.status_errors import StatusError

__all__ = ("track_apply", "track_own_update", "track_update")


async def track_update(call: Call, old: Tree | None, tree: Tree, options: WriteOptions, now: datetime) -> None:
    """Note who manages what a create or an update changes (`FieldManager.UpdateNoErrors`).

    Objects that cannot be tracked, such as those of a webhook that does not convert, lose their managed fields.
    """
    resource, subresource = call.resource, call.info.subresource
    metadata = tree["metadata"]

    def decide(convert: Convert) -> Any:
        # On a copy: `with_conversions` may have to begin again.
        copy = {**tree, "metadata": dict(metadata)}
        record_update(
            old,
            copy,
            manager=manager_or_user_agent(options.manager, call.request.header("user-agent")),
            api_version=resource.kind.api_version,
            subresource=subresource,
            time=_time(now, subresource),
            type=resource.strategy.field_type,
            reset=resource.strategy.reset_fields(subresource),
            convert=convert,
        )
        return copy["metadata"].get("managedFields")

    try:
        entries = await with_conversions(resource.strategy, decide, size=call.size)
    except StatusError:
        entries = None
    metadata.pop("managedFields", None)
    if entries is not None:
        metadata["managedFields"] = entries


async def track_apply(call: Call, live: Tree | None, applied: Tree, options: WriteOptions, now: datetime) -> Tree:
    """Merge an applied object into the live one (`FieldManager.Apply`); raises `StatusError` if managers conflict.

    The result shares parts with `live`.
    """
    resource, subresource = call.resource, call.info.subresource

    def decide(convert: Convert) -> Any:
        return apply(
            live,
            applied,
            manager=options.manager,
            force=bool(options.force),
            api_version=resource.kind.api_version,
            subresource=subresource,
            time=_time(now, subresource),
            type=resource.strategy.field_type,
            reset=resource.strategy.reset_fields(subresource),
            convert=convert,
        )

    try:
        tree = await with_conversions(resource.strategy, decide, size=call.size)
    except ApplyConflict as exc:
        raise conflict_error(exc) from None
    assert isinstance(tree, dict)
    return tree


def track_own_update(resource: Resource, old: Tree, tree: Tree, subresource: str, now: datetime) -> None:
    """Note that this server itself has changed an object."""
    record_update(
        old,
        tree,
        manager="kube-apiserver",
        api_version=resource.kind.api_version,
        subresource=subresource,
        time=_time(now, subresource),
        type=resource.strategy.field_type,
        reset=resource.strategy.reset_fields(subresource),
    )


def _time(now: datetime, subresource: str) -> str:
    """The time of an entry; kube-apiserver's entries of the scale subresource have none."""
    return "" if subresource == "scale" else format_time(now)
