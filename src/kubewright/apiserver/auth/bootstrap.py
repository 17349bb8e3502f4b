"""The bootstrap objects of a server: default roles and bindings, namespaces, priority classes, flow schemas and more.

They are those of a new kube-apiserver, recorded as package data with their managedFields, and put into the store
directly: 200 creates through the handlers would take longer than the rest of the start-up. Existing objects are left
alone.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from datetime import datetime
from importlib import resources
from typing import Any, Final

import msgspec

from kubewright.api.times import format_time
from kubewright.apiserver.builtin.service_allocator import ServiceAllocator
from kubewright.apiserver.catalog import Catalog
from kubewright.apiserver.kinds.resources import Resource, Tree, key_of
from kubewright.apiserver.kinds.system_metadata import new_uid
from kubewright.apiserver.storage.store import Store

__all__ = ("bootstrap_objects", "write_bootstrap")

_FILE: Final = "bootstrap.json.gz"
_AUTHENTICATION: Final = "extension-apiserver-authentication"
_TRACKING: Final = "kube-apiserver-legacy-service-account-token-tracking"


def bootstrap_objects() -> list[Tree]:
    """The objects of a new server, without what differs on each: uids, versions, times, certificates, ports."""
    packed = resources.files(__package__).joinpath(_FILE).read_bytes()
    trees: list[Tree] = msgspec.json.decode(gzip.decompress(packed))
    return trees


def write_bootstrap(
    store: Store,
    catalog: Catalog,
    services: ServiceAllocator,
    *,
    now: datetime,
    port: int,
    client_ca: bytes = b"",
    proxy_ca: bytes = b"",
) -> int:
    """Put the missing objects into the store; returns their number.

    `port` is the server's, for the Service kubernetes; the CAs are those of clients and of the front proxy, which
    aggregated API servers read from the ConfigMap extension-apiserver-authentication.
    """
    written = 0
    time = format_time(now)
    by_kind: dict[tuple[str, str], Resource] = {
        (item.kind.api_version, item.kind.kind): item for item in catalog if not item.custom
    }
    for tree in bootstrap_objects():
        resource = by_kind[tree["apiVersion"], tree["kind"]]
        meta = tree["metadata"]
        key = key_of(meta.get("namespace", ""), meta["name"])
        table = store.table(resource.table)
        if table.get(key) is not None:
            continue
        _fill_in(tree, now=now, port=port, client_ca=client_ca, proxy_ca=proxy_ca)
        if tree["kind"] == "Service":
            services.assign(tree).keep()
        version = store.next_version()
        tree["metadata"] = _with_system_metadata(meta, time, version)
        _date_conditions(tree, time)
        table.put(key, resource.encode(tree), version, schema_id=resource.storage_schema)
        written += 1
    return written


def _fill_in(tree: Tree, *, now: datetime, port: int, client_ca: bytes, proxy_ca: bytes) -> None:
    name = tree["metadata"]["name"]
    if tree["kind"] == "Service":
        tree["spec"]["ports"][0]["targetPort"] = port
    elif name == _TRACKING:
        tree["data"] = {"since": now.date().isoformat()}
    elif name == _AUTHENTICATION:
        given = {"client-ca-file": client_ca, "requestheader-client-ca-file": proxy_ca}
        data = {**tree["data"], **{file: pem.decode() for file, pem in given.items() if pem}}
        tree["data"] = dict(sorted(data.items()))


def _with_system_metadata(meta: Mapping[str, Any], time: str, version: int) -> dict[str, Any]:
    first = {name: meta[name] for name in ("name", "namespace") if name in meta}
    own = {
        "uid": new_uid(),
        "resourceVersion": str(version),
        "creationTimestamp": time,
    }
    rest = {name: value for name, value in meta.items() if name not in first}
    rest["managedFields"] = [
        {**entry, "time": time} if entry.get("fieldsType") else entry for entry in meta.get("managedFields", ())
    ]
    return {**first, **own, **rest}


def _date_conditions(tree: Tree, time: str) -> None:
    for condition in (tree.get("status") or {}).get("conditions") or ():
        if condition.get("lastTransitionTime", "") is None:
            condition["lastTransitionTime"] = time
