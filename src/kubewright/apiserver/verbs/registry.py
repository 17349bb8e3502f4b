"""The generic registry: how objects of every resource are created, updated and removed in the store.

The order of steps is that of kube-apiserver's registry, because clients rely on it (staging/src/k8s.io/apiserver/pkg/
registry/generic/registry/store.go): system metadata, the strategy's preparation and validation, the right to create if
an update or an apply creates, admission plugins that validate, then the store. The handlers (`create`, `update`,
`patch`, `apply`) have decoded the object and let admission mutate it. Other requests may run while this one waits for a
webhook, so the last step compares the object in the store with the one the request began with, and does not wait for
anything before it writes.
"""

from __future__ import annotations

from typing import Final, final

from msgspec import structs

from kubewright._base.clock import Clock
from kubewright.api.field_errors import limited
from kubewright.api.patches import json_equal
from kubewright.apiserver.builtin.strategy import WITHOUT_METADATA_VALIDATION
from kubewright.apiserver.builtin.validation import error_kind
from kubewright.apiserver.kinds.access import Access, forbidden_to
from kubewright.apiserver.kinds.admission import Attributes, Chain
from kubewright.apiserver.kinds.calls import Call
from kubewright.apiserver.kinds.large_requests import off_loop
from kubewright.apiserver.kinds.resources import Resource, Tree, key_of
from kubewright.apiserver.kinds.system_metadata import (
    fill_system_fields,
    finalizers_of,
    generated_name,
    keep_deletion_timestamp,
    keep_system_fields,
    meta_of,
    parse_version,
)
from kubewright.apiserver.managedfields.field_manager import only_times_differ
from kubewright.apiserver.storage.store import Entry, Store
from kubewright.apiserver.verbs.decode_errors import as_sent, kind_errors, metadata_errors
from kubewright.apiserver.verbs.field_tracking import track_own_update
from kubewright.apiserver.verbs.transform import respond_object
from kubewright.apiserver.wire.decoding import decode_json
from kubewright.apiserver.wire.options import WriteOptions
from kubewright.apiserver.wire.responses import Response, encode_json
from kubewright.apiserver.wire.status_errors import (
    StatusError,
    already_exists,
    conflict,
    invalid,
    not_found,
    status_error,
)

__all__ = ("OPTIMISTIC_LOCK_ERROR", "Registry")

OPTIMISTIC_LOCK_ERROR: Final = (
    "the object has been modified; please apply your changes to the latest version and try again"
)
_MAX_CUSTOM: Final = 1536 * 1024
_MAX_BUILT_IN: Final = 2 * _MAX_CUSTOM
_NAME_TRIES: Final = 8  # maxNameGenerationCreateAttempts


@final
class Registry:
    """Writes objects to a store, once admission and validation have agreed."""

    def __init__(self, store: Store, admission: Chain, clock: Clock, *, access: Access) -> None:
        """`access` authorizes the creation of an object by an update or an apply."""
        self._access = access
        self.store = store
        self.admission = admission
        self.clock = clock

    def find(self, call: Call) -> Entry | None:
        """The object a request is for, if it is there."""
        entry = self.store.table(call.resource.table).get(call.key)
        call.stored_size = 0 if entry is None else len(entry.value)
        return entry

    def get(self, call: Call) -> Entry:
        """The object a request is for; raises `StatusError` (404) without one."""
        entry = self.find(call)
        if entry is None:
            raise not_found(call.resource.group_resource, call.info.name)
        return entry

    # create

    async def create(self, call: Call, attributes: Attributes, options: WriteOptions) -> Response:
        """Store a new object, after admission has mutated it."""
        resource = call.resource
        assert attributes.object is not None
        tree = attributes.object
        # Plugins that mutate see the object as it was sent, without uid and generated name: they are set only now.
        meta = meta_of(tree)
        fill_system_fields(meta, now=self.clock.now())
        is_generated = not meta.get("name") and bool(meta.get("generateName"))
        if is_generated:
            meta["name"] = attributes.name = generated_name(str(meta["generateName"]))
        with resource.strategy.reserve(tree, None, call.info.subresource) as reservation:
            await off_loop(call.size, lambda: _prepare_new(call, tree))
            if call.info.verb != "create":
                self._authorize_create(call)
            await self.admission.validate(attributes)
            if parse_version(meta_of(tree)) and not options.dry_run:
                raise status_error(500, "", "resourceVersion should not be set on objects to be created")
            stored = await _for_storage(resource, tree)
            await off_loop(call.size, lambda: _check_size(call, stored or tree, options))
            # From here on nothing waits: quotas and the name hold until the object is written.
            self.admission.check_commit(attributes)
            key = self._free_key(call, tree, is_generated=is_generated)
            name = str(meta_of(tree)["name"])
            if stored is not None:
                stored["metadata"]["name"] = name
            value = self._commit(resource, key, tree, stored, dry_run=options.dry_run)
            if not options.dry_run:
                reservation.keep()
        response = await respond_object(call, value, code=201)
        response.object_name = name
        return response

    def _authorize_create(self, call: Call) -> None:
        """Refuse an update or an apply that creates, unless the user may create the object of this name, too.

        kube-apiserver: `withAuthorization` in staging/src/k8s.io/apiserver/pkg/endpoints/handlers/update.go. The router
        has authorized the verb of the request only.
        """
        info = structs.replace(call.info, verb="create")
        decision = self._access.decide(call.user, info)
        if not decision.allowed:
            # Without the headers that the router's refusal has: kube-apiserver's handlers do not set them.
            raise StatusError(forbidden_to(call.user, info, decision.reason).status)

    def _free_key(self, call: Call, tree: Tree, *, is_generated: bool) -> str:
        """The key of a new object. A generated name that is taken is generated anew: no client has seen it yet."""
        table, meta = self.store.table(call.resource.table), tree["metadata"]
        for _ in range(_NAME_TRIES if is_generated else 1):
            key = key_of(call.namespace, str(meta["name"]))
            entry = table.get(key)
            if entry is None:
                return key
            if is_generated:
                meta["name"] = generated_name(str(meta["generateName"]))
        raise self._name_taken(call.resource, key, entry)

    def _name_taken(self, resource: Resource, key: str, entry: Entry | None) -> StatusError:
        error = already_exists(resource.group_resource, key.rpartition("/")[2])
        if entry is not None and b'"deletionTimestamp"' in entry.value:
            tree = decode_json(entry.value)
            if tree["metadata"].get("deletionTimestamp"):
                error.status = {**error.status, "message": f"object is being deleted: {error}"}
        return error

    # update

    async def update(self, call: Call, attributes: Attributes, entry: Entry, options: WriteOptions) -> Response | None:
        """Store a changed object, after admission has mutated it.

        None when somebody else wrote the object since `entry` was read; the handler decides whether it tries again.
        """
        resource = call.resource
        assert attributes.object is not None
        assert attributes.old is not None
        tree, old = attributes.object, attributes.old
        meta = meta_of(tree)
        keep_system_fields(meta, old["metadata"])
        if not meta.get("resourceVersion"):
            meta["resourceVersion"] = old["metadata"]["resourceVersion"]
        with resource.strategy.reserve(tree, old, call.info.subresource) as reservation:
            await off_loop(call.size, lambda: _prepare_changed(call, tree, old))
            await self.admission.validate(attributes)
            tree["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
            table = self.store.table(resource.table)
            if _is_delete_during_update(tree, old):
                if table.get(call.key) is not entry:
                    return None
                value = self.remove(resource, call.key, tree, dry_run=options.dry_run, by_update=True)
                return await respond_object(call, value)
            stored = await _for_storage(resource, tree)
            await off_loop(call.size, lambda: _check_size(call, stored or tree, options))
            if await off_loop(call.size, lambda: json_equal(tree, old) and _is_stored(resource, entry, stored or tree)):
                # Nothing to write: no new version, no event. It has the version of the object that is there.
                return await respond_object(call, await resource.bytes_of(entry))
            # From here on nothing waits.
            if table.get(call.key) is not entry:
                return None
            self.admission.check_commit(attributes)
            value = self._commit(resource, call.key, tree, stored, dry_run=options.dry_run)
            if not options.dry_run:
                reservation.keep()
        return await respond_object(call, value)

    # without admission and validation

    async def put_if_unchanged(self, resource: Resource, entry: Entry, tree: Tree, *, dry_run: bool = False) -> bytes:
        """Store a change this server itself made to an object, such as a deletion timestamp.

        Raises `StatusError` (409) if somebody else wrote the object since `entry` was read.
        """
        stored = await _for_storage(resource, tree)
        if self.store.table(resource.table).get(entry.key) is not entry:
            raise conflict(resource.group_resource, str(tree["metadata"]["name"]), OPTIMISTIC_LOCK_ERROR)
        return self._commit(resource, entry.key, tree, stored, dry_run=dry_run)

    async def put_own_status(self, resource: Resource, entry: Entry, tree: Tree, *, dry_run: bool = False) -> None:
        """As `put_if_unchanged`, for a status this server has worked out, with kube-apiserver as its field manager."""
        old, now = decode_json(entry.value), self.clock.now()
        await off_loop(len(entry.value), lambda: track_own_update(resource, old, tree, "status", now))
        await self.put_if_unchanged(resource, entry, tree, dry_run=dry_run)

    def remove(
        self, resource: Resource, key: str, tree: Tree, *, dry_run: bool = False, by_update: bool = False
    ) -> bytes:
        """Remove an object from the store; returns its last state.

        Watchers see what was stored, at the version of the removal. A client that removed the last finalizer by an
        update gets the object it wrote, at the version it had before.
        """
        if dry_run:
            return resource.encode(tree)
        table = self.store.table(resource.table)
        entry = table.get(key)
        assert entry is not None
        version = self.store.next_version()
        stored = decode_json(entry.value)
        stored["metadata"]["resourceVersion"] = str(version)
        table.delete(key, resource.encode_stored(stored), version, schema_id=entry.schema_id)
        resource.strategy.release(tree)
        if not by_update:
            tree["metadata"]["resourceVersion"] = str(version)
        return resource.encode(tree)

    def _commit(self, resource: Resource, key: str, tree: Tree, stored: Tree | None, *, dry_run: bool) -> bytes:
        """Write now; returns the object as the client sees it. `stored` is the object in its storage version.

        Not async: the caller has compared the object in the store with the one it knows, and nothing may run between
        that and the write.
        """
        if dry_run:
            return resource.encode(tree)
        version = self.store.next_version()
        tree["metadata"]["resourceVersion"] = str(version)
        value = resource.encode(tree)
        kept = value
        if stored is not None:
            stored["metadata"]["resourceVersion"] = str(version)
            stored["apiVersion"] = resource.storage_version
            kept = resource.encode_stored(stored)
        self.store.table(resource.table).put(key, kept, version, schema_id=resource.storage_schema)
        return value


def _prepare_new(call: Call, tree: Tree) -> None:
    """Let the strategy prepare a new object and check it; raises `StatusError` if it is invalid."""
    resource = call.resource
    for text in resource.strategy.prepare_for_create(tree, call.user.tree()):
        call.warn(text)
    errors = limited(lambda: resource.strategy.validate(tree))
    if errors:
        raise invalid(error_kind(resource.kind), str(meta_of(tree).get("name", "")), as_sent(call, tree, errors))
    for text in resource.strategy.warnings(tree, None):
        call.warn(text)


def _prepare_changed(call: Call, tree: Tree, old: Tree) -> None:
    """The same for a changed object."""
    resource, subresource = call.resource, call.info.subresource
    resource.strategy.prepare_for_update(tree, old, subresource)
    keep_deletion_timestamp(meta_of(tree), old["metadata"])
    # Ratcheting: the strategy compares with the old object and forgives what was invalid there and has not changed.
    errors = limited(lambda: resource.strategy.validate_update(tree, old, subresource))
    if errors or resource.kind.kind in WITHOUT_METADATA_VALIDATION:
        errors = [*limited(lambda: metadata_errors(resource, tree, old)), *kind_errors(resource, errors)]
    if errors:
        raise invalid(error_kind(resource.kind), call.info.name, as_sent(call, tree, errors))
    for text in resource.strategy.warnings(tree, old):
        call.warn(text)
    if only_times_differ(old, tree):
        # The field manager has noted this write before defaults, conversions and plugins made it one that changes
        # nothing (IgnoreManagedFieldsTimestampsTransformer).
        tree["metadata"]["managedFields"] = old["metadata"]["managedFields"]


def _check_size(call: Call, stored: Tree, options: WriteOptions) -> None:
    """Refuse an object that etcd would not take, in its words.

    etcd stores built-in kinds as protobuf, which is up to half as long as the JSON here.
    """
    limit = _MAX_CUSTOM if call.resource.custom else _MAX_BUILT_IN
    if call.size > limit // 4 and not options.dry_run and len(encode_json(stored)) > limit:
        raise status_error(500, "", "etcdserver: request is too large")


async def _for_storage(resource: Resource, tree: Tree) -> Tree | None:
    """The object in its storage version; None when that is the version of the resource."""
    if resource.storage_version == resource.kind.api_version:
        return None
    return (await resource.strategy.to_storage([decode_json(resource.encode(tree))]))[0]


def _is_stored(resource: Resource, entry: Entry, tree: Tree) -> bool:
    """Whether a write would not change the stored bytes; it does when the storage version or its schema has changed."""
    return entry.schema_id == resource.storage_schema or json_equal(decode_json(entry.value), tree)


def _is_delete_during_update(tree: Tree, old: Tree) -> bool:
    """Whether an update removes the last finalizer of a terminating object (`ShouldDeleteDuringUpdate`)."""
    meta = tree["metadata"]
    return bool(
        meta.get("deletionTimestamp")
        and not meta.get("deletionGracePeriodSeconds")
        and finalizers_of(old)
        and not finalizers_of(tree)
    )
