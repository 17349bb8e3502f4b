"""The verbs that write: create, update and patch, server-side apply included.

The order of steps is kube-apiserver's, because others rely on it: decode, normalize, default, note who manages which
fields, let admission change the object, prepare, validate, let admission refuse, store. Between reading an object and
storing it other requests may run (admission waits for webhooks), so the version is compared again in the step that
stores; a patch that lost the race is applied again to what is there now.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, final

from kubewright._base.clock import Clock
from kubewright.api.field_errors import FieldError
from kubewright.api.kinds import GroupVersionKind
from kubewright.api.patches import json_equal
from kubewright.api.times import format_time
from kubewright.apiserver.builtin.strategy import UNTOLD
from kubewright.apiserver.builtin.validation import refusal_kind
from kubewright.apiserver.kinds.admission import Attributes, Chain, Operation
from kubewright.apiserver.kinds.calls import Call
from kubewright.apiserver.kinds.resources import Resource, Tree, key_of
from kubewright.apiserver.kinds.system_metadata import (
    fill_new,
    finalizers_of,
    generated_name,
    keep_deletion_mark,
    keep_system_fields,
    manager_of,
    meta_of,
    stated_version,
    wipe,
)
from kubewright.apiserver.managedfields.conflicts import ApplyConflict, conflict_error
from kubewright.apiserver.managedfields.field_manager import Convert, apply, record_update
from kubewright.apiserver.storage.store import Entry, Store
from kubewright.apiserver.verbs.apply_body import read_apply
from kubewright.apiserver.verbs.decode_errors import (
    check_custom_type,
    check_patched_type,
    general_errors,
    ill_named,
    nulls_of,
    own_errors,
    put_back_nulls,
    strict_error,
    wrong_type,
)
from kubewright.apiserver.verbs.patch import APPLY_TYPES, patch_type, patched, said_twice, unfit
from kubewright.apiserver.verbs.transform import of_bytes
from kubewright.apiserver.verbs.webhook_conversions import decided
from kubewright.apiserver.wire.decoding import decode_json, read_object
from kubewright.apiserver.wire.options import WriteOptions, write_options
from kubewright.apiserver.wire.responses import Response
from kubewright.apiserver.wire.status_errors import (
    StatusError,
    already_exists,
    bad_request,
    conflict,
    invalid,
    not_found,
    status_error,
)

__all__ = ("WriteHandler",)

_MODIFIED: Final = "the object has been modified; please apply your changes to the latest version and try again"
_NAME_TRIES: Final = 8
_PATCH_TRIES: Final = 5

Edit = Callable[[Tree], Tree]
"""From the live object to what it shall be."""


@final
class WriteHandler:
    """Create, update and patch on a store."""

    def __init__(self, store: Store, admission: Chain, clock: Clock) -> None:
        self._store = store
        self._admission = admission
        self._clock = clock

    # create

    async def create(self, call: Call) -> Response:
        """A new object from the body."""
        options = write_options("CreateOptions", call.request.query)
        tree = self.read(call, options)
        return await self.create_tree(call, tree, options)

    def read(self, call: Call, options: WriteOptions) -> Tree:
        """The body as an object of the call's kind, in form and with defaults."""
        tree, repeated = read_object(call.request, kind=call.resource.kind)
        if call.resource.custom:
            check_custom_type(call, tree)
        self._check_type(call.resource, tree)
        self._normalize(call, tree, options, repeated)
        return tree

    def _check_type(self, resource: Resource, tree: Tree) -> None:
        kind = resource.kind
        said_version, said_kind = tree.get("apiVersion") or kind.api_version, tree.get("kind") or kind.kind
        if said_version != kind.api_version or said_kind != kind.kind:
            raise bad_request(wrong_type(resource, str(said_version), str(said_kind)))
        tree["apiVersion"], tree["kind"] = kind.api_version, kind.kind

    def _normalize(
        self, call: Call, tree: Tree, options: WriteOptions, repeated: list[str], *, in_order: bool = False
    ) -> None:
        rules = call.resource.strategy
        unknown = rules.normalize(tree)
        if in_order:
            unknown.sort()  # what a patch makes is read in the order of its names
        if (unknown or repeated) and options.validation != "Ignore":
            said = ill_named(call, repeated, unknown, patched=in_order)
            if options.validation == "Strict":
                raise bad_request(strict_error(call.resource, said))
            for text in said:
                call.warn(text)
        rules.default(tree)

    async def create_tree(self, call: Call, tree: Tree, options: WriteOptions, *, tracked: bool = False) -> Response:
        """Store a new object. `tracked` says that its managed fields are already noted."""
        resource = call.resource
        meta = meta_of(tree)
        self._check_placed(call, meta)
        wipe(meta)
        if not tracked:
            await self._record(call, None, tree, options)
        attributes = self._operation(call, "CREATE", tree, None, options, "CreateOptions")
        await self._admission.mutate(attributes)
        tree = attributes.object or tree
        # Whoever changes a new object sees it as it was sent: only now it becomes one of the server's.
        meta = meta_of(tree)
        fill_new(meta, now=self._clock.now())
        generated = not meta.get("name") and bool(meta.get("generateName"))
        if generated:
            meta["name"] = attributes.name = generated_name(str(meta["generateName"]))
        for text in resource.strategy.prepare_create(tree, call.user.tree()):
            call.warn(text)
        errors = resource.strategy.check_create(tree)
        if errors:
            raise invalid(refusal_kind(resource.kind), str(meta.get("name", "")), errors)
        for text in resource.strategy.warnings(tree, None):
            call.warn(text)
        await self._admission.validate(attributes)
        return await self._insert(call, tree, options, generated=generated)

    def _check_named(self, call: Call, meta: dict[str, Any]) -> None:
        """The object must have the name the URL says."""
        name = meta.get("name")
        if not name:
            raise bad_request(
                f"the name of the object ({call.target.name} based on URL) was undeterminable: name must be provided"
            )
        if name != call.target.name:
            raise bad_request(
                f"the name of the object ({name}) does not match the name on the URL ({call.target.name})"
            )

    def _check_placed(self, call: Call, meta: dict[str, Any]) -> None:
        """The object must be where the URL says."""
        namespace = call.namespace
        said = meta.get("namespace") or ""
        if said and namespace and said != namespace:
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        if namespace:
            meta["namespace"] = namespace
        else:
            meta.pop("namespace", None)
        if call.target.name and not meta.get("name"):
            meta["name"] = call.target.name

    async def _insert(self, call: Call, tree: Tree, options: WriteOptions, *, generated: bool) -> Response:
        resource = call.resource
        table = self._store.table(resource.table)
        meta = meta_of(tree)
        if stated_version(meta) and not options.dry_run:
            raise status_error(500, "", "resourceVersion should not be set on objects to be created")
        for _ in range(_NAME_TRIES if generated else 1):
            key = key_of(call.namespace, str(meta["name"]))
            if table.get(key) is None:
                break
            if generated:
                meta["name"] = generated_name(str(meta["generateName"]))
        else:
            raise self._taken(resource, key)
        stored = await self._for_storage(resource, tree)
        if table.get(key) is not None:
            raise self._taken(resource, key)
        errors = resource.strategy.reserve(tree, None, dry_run=options.dry_run)
        if errors:
            raise invalid(refusal_kind(resource.kind), str(meta["name"]), errors)
        value = self._commit(resource, key, tree, stored, dry_run=options.dry_run)
        answer = of_bytes(call, value, code=201)
        answer.object_name = str(meta["name"])
        return answer

    def _taken(self, resource: Resource, key: str) -> StatusError:
        entry = self._store.table(resource.table).get(key)
        error = already_exists(resource.group_resource, key.rpartition("/")[2])
        if entry is not None and b'"deletionTimestamp"' in entry.value:
            tree = decode_json(entry.value)
            if tree["metadata"].get("deletionTimestamp"):
                error.status = {**error.status, "message": f"object is being deleted: {error}"}
        return error

    async def _for_storage(self, resource: Resource, tree: Tree) -> Tree | None:
        """The object in the version it is stored in; None when that is its own."""
        if resource.storage_version == resource.kind.api_version:
            return None
        return (await resource.strategy.to_storage([decode_json(resource.encode(tree))]))[0]

    def _commit(self, resource: Resource, key: str, tree: Tree, stored: Tree | None, *, dry_run: bool) -> bytes:
        """Write now; returns the object as the client sees it. Nothing may be awaited around this."""
        if dry_run:
            return resource.encode(tree)
        version = self._store.next_version()
        tree["metadata"]["resourceVersion"] = str(version)
        value = resource.encode(tree)
        kept = value
        if stored is not None:
            stored["metadata"]["resourceVersion"] = str(version)
            stored["apiVersion"] = resource.storage_version
            kept = resource.encode_stored(stored)
        self._store.table(resource.table).put(key, kept, version, schema_id=resource.storage_schema)
        return value

    # update

    async def update(self, call: Call) -> Response:
        """Replace an object, or the part a subresource is about."""
        options = write_options("UpdateOptions", call.request.query)
        tree = self.read(call, options)
        meta = meta_of(tree)
        self._check_named(call, meta)
        self._check_placed(call, meta)
        entry = self._store.table(call.resource.table).get(call.key)
        if entry is None:
            if call.resource.strategy.create_on_update and not call.target.subresource:
                self._unversion(meta, options)
                return await self.create_tree(call, tree, options)
            raise not_found(call.resource.group_resource, call.target.name)
        for _ in range(_PATCH_TRIES):
            old = await call.resource.tree_of(entry)
            answer = await self.replace(call, entry, old, tree, options, kind="UpdateOptions")
            if answer is not None:
                return answer
            if meta.get("resourceVersion"):
                break
            entry = self._live(call)
            tree = self.read(call, options)
            self._check_placed(call, meta_of(tree))
        raise conflict(call.resource.group_resource, call.target.name, _MODIFIED)

    def _unversion(self, meta: dict[str, Any], options: WriteOptions) -> None:
        """Whoever creates by an update may say any version; a dry run shows it as it was said."""
        if stated_version(meta) is None:
            raise status_error(500, "", f'strconv.ParseUint: parsing "{meta["resourceVersion"]}": invalid syntax')
        if not options.dry_run:
            meta.pop("resourceVersion", None)

    def _live(self, call: Call) -> Entry:
        entry = self._store.table(call.resource.table).get(call.key)
        if entry is None:
            raise not_found(call.resource.group_resource, call.target.name)
        return entry

    async def replace(
        self,
        call: Call,
        entry: Entry,
        old: Tree,
        tree: Tree,
        options: WriteOptions,
        *,
        kind: str,
        tracked: bool = False,
    ) -> Response | None:
        """Store a changed object; None when somebody else wrote in between and the caller may try again."""
        resource, subresource = call.resource, call.target.subresource
        if kind == "UpdateOptions":
            self._check_uid(call, old, meta_of(tree))
        self._check_version(call, entry, meta_of(tree))
        if not tracked:
            await self._record(call, old, tree, options)
        attributes = self._operation(call, "UPDATE", tree, old, options, kind)
        await self._admission.mutate(attributes)
        tree = attributes.object or tree
        keep_system_fields(meta_of(tree), old["metadata"])
        if not meta_of(tree).get("resourceVersion"):
            meta_of(tree)["resourceVersion"] = old["metadata"]["resourceVersion"]
        resource.strategy.prepare_update(tree, old, subresource)
        keep_deletion_mark(meta_of(tree), old["metadata"])
        errors = resource.strategy.check_update(tree, old, subresource)
        if errors or resource.kind.kind in UNTOLD:
            errors = [*general_errors(resource, tree, old), *own_errors(resource, errors)]
        if errors:
            raise invalid(refusal_kind(resource.kind), call.target.name, errors)
        for text in resource.strategy.warnings(tree, old):
            call.warn(text)
        await self._admission.validate(attributes)
        tree["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
        table = self._store.table(resource.table)
        if _may_go(tree, old):
            if table.get(call.key) is not entry:
                return None
            return of_bytes(call, self.remove(resource, call.key, tree, dry_run=options.dry_run, by_update=True))
        stored = await self._for_storage(resource, tree)
        if json_equal(tree, old) and _is_stored_so(resource, entry, stored or tree):
            return of_bytes(call, await resource.bytes_of(entry))
        if table.get(call.key) is not entry:
            return None
        errors = resource.strategy.reserve(tree, old, dry_run=options.dry_run)
        if errors:
            raise invalid(refusal_kind(resource.kind), call.target.name, errors)
        return of_bytes(call, self._commit(resource, call.key, tree, stored, dry_run=options.dry_run))

    def _check_uid(self, call: Call, old: Tree, meta: dict[str, Any]) -> None:
        resource = call.resource
        uid = meta.get("uid")
        if uid and uid != old["metadata"]["uid"]:
            stored_at = f"{resource.kind.group}/{resource.plural}" if resource.custom else resource.plural
            raise conflict(
                resource.group_resource,
                call.target.name,
                f"StorageError: invalid object, Code: 4, Key: /registry/{stored_at}/{call.key},"
                " ResourceVersion: 0, AdditionalErrorMsg: Precondition failed:"
                f" UID in precondition: {uid}, UID in object meta: {old['metadata']['uid']}",
            )

    def _check_version(self, call: Call, entry: Entry, meta: dict[str, Any]) -> None:
        resource = call.resource
        version = meta.get("resourceVersion")
        if version in (None, "", "0"):
            if not resource.strategy.unconditional_update:
                error = FieldError("metadata.resourceVersion", "Invalid", "must be specified for an update", 0)
                about = GroupVersionKind(resource.kind.group, "", resource.plural)
                raise invalid(about, call.target.name, [error])
        elif not str(version).isdecimal():
            raise status_error(500, "", f'strconv.ParseUint: parsing "{version}": invalid syntax')
        elif version != str(entry.version):
            raise conflict(resource.group_resource, call.target.name, _MODIFIED)

    def remove(
        self, resource: Resource, key: str, tree: Tree, *, dry_run: bool = False, by_update: bool = False
    ) -> bytes:
        """Take an object out of the store for good; returns its last state.

        Watchers are shown what was stored, at the version of the removal; whoever took the last finalizer away gets
        what they wrote, at the version it had before.
        """
        if dry_run:
            return resource.encode(tree)
        table = self._store.table(resource.table)
        entry = table.get(key)
        assert entry is not None
        version = self._store.next_version()
        stored = decode_json(entry.value)
        stored["metadata"]["resourceVersion"] = str(version)
        table.delete(key, resource.encode_stored(stored), version, schema_id=entry.schema_id)
        resource.strategy.released(tree)
        if not by_update:
            tree["metadata"]["resourceVersion"] = str(version)
        return resource.encode(tree)

    async def put_back(self, resource: Resource, entry: Entry, tree: Tree, *, dry_run: bool = False) -> bytes:
        """Store a change the server itself made, such as a deletion mark; the caller has checked everything."""
        stored = await self._for_storage(resource, tree)
        if self._store.table(resource.table).get(entry.key) is not entry:
            raise conflict(resource.group_resource, str(tree["metadata"]["name"]), _MODIFIED)
        return self._commit(resource, entry.key, tree, stored, dry_run=dry_run)

    # patch and apply

    async def patch(self, call: Call) -> Response:
        """Change an object by a patch of any kind."""
        kind = patch_type(call)
        is_apply = kind in APPLY_TYPES
        options = write_options("PatchOptions", call.request.query, is_apply=is_apply, is_patch=True)
        if is_apply:
            return await self._apply(call, options)
        body = call.request.body
        return await self.edit(call, options, lambda live: patched(call.resource, kind, body, live), kind=kind)

    async def edit(self, call: Call, options: WriteOptions, change: Edit, *, kind: str = "") -> Response:
        """Read, change, store; again if somebody else was faster. `kind` is that of the patch, if it is one."""
        for _ in range(_PATCH_TRIES):
            entry = self._live(call)
            old = await call.resource.tree_of(entry)
            # What a patch gives shares parts with what it was given, and is changed in place from here on.
            tree = change(await call.resource.tree_of(entry))
            body = call.request.body
            try:
                if kind and call.resource.custom:
                    check_patched_type(call, tree)
                self._check_type(call.resource, tree)
                self._normalize(call, tree, options, said_twice(kind, body) if kind else [], in_order=True)
            except StatusError as exc:
                if kind:  # what is shown is what the patch made, before anything was left out of it
                    tree = change(await call.resource.tree_of(entry))
                    raise unfit(call.resource, kind, body, tree, exc) from None
                raise
            meta = meta_of(tree)
            self._check_named(call, meta)
            said = meta.get("resourceVersion")
            self._check_placed(call, meta)
            meta["resourceVersion"] = said or old["metadata"]["resourceVersion"]
            answer = await self.replace(call, entry, old, tree, options, kind="PatchOptions")
            if answer is not None:
                return answer
        raise conflict(call.resource.group_resource, call.target.name, _MODIFIED)

    async def _apply(self, call: Call, options: WriteOptions) -> Response:
        resource = call.resource
        for _ in range(_PATCH_TRIES):
            intent = read_apply(call, options)
            entry = self._store.table(resource.table).get(call.key)
            if entry is None and call.target.subresource:
                raise not_found(resource.group_resource, call.target.name)
            old = None if entry is None else await resource.tree_of(entry)
            live = None if entry is None else await resource.tree_of(entry)  # the result shares parts with it
            tree = await self._applied(call, live, intent, options)
            # A map or a list that an apply has emptied is null, and of a custom resource it stays so.
            nulls = list(nulls_of(tree)) if resource.custom else []
            self._normalize(call, tree, options, [])
            put_back_nulls(tree, nulls)
            if old is None or entry is None:
                meta = meta_of(tree)
                self._check_named(call, meta)
                if meta.get("uid"):
                    why = f"the provided object specified uid {meta['uid']}, and no existing object was found"
                    raise conflict(resource.group_resource, call.target.name, f"uid mismatch: {why}")
                self._unversion(meta, options)
                return await self.create_tree(call, tree, options, tracked=True)
            meta = meta_of(tree)
            said = meta_of(intent).get("resourceVersion")
            meta["resourceVersion"] = said or old["metadata"]["resourceVersion"]
            answer = await self.replace(call, entry, old, tree, options, kind="PatchOptions", tracked=True)
            if answer is not None:
                return answer
        raise conflict(resource.group_resource, call.target.name, _MODIFIED)

    async def _applied(self, call: Call, live: Tree | None, intent: Tree, options: WriteOptions) -> Tree:
        resource, subresource = call.resource, call.target.subresource
        time = self._time_of(subresource)

        def decide(convert: Convert) -> Any:
            return apply(
                live,
                intent,
                manager=options.manager,
                force=bool(options.force),
                api_version=resource.kind.api_version,
                subresource=subresource,
                time=time,
                type=resource.strategy.field_type,
                reset=resource.strategy.reset_fields(subresource),
                convert=convert,
            )

        try:
            tree = await decided(resource.strategy, decide)
        except ApplyConflict as exc:
            raise conflict_error(exc) from None
        assert isinstance(tree, dict)
        return tree

    async def admit_new(
        self, call: Call, tree: Tree, options: WriteOptions, *, check: Callable[[Tree], None] | None = None
    ) -> Tree:
        """Ask admission about an object that is sent to a subresource and kept nowhere, such as a Binding.

        `check` refuses what is wrong with it, after those who may change it and before those who only judge it.
        """
        tree.setdefault("metadata", {}).setdefault("name", call.target.name)
        tree["metadata"].setdefault("namespace", call.namespace)
        attributes = self._operation(call, "CREATE", tree, None, options, "CreateOptions")
        await self._admission.mutate(attributes)
        if check is not None:
            check(attributes.object or tree)
        await self._admission.validate(attributes)
        return attributes.object or tree

    # shared

    async def _record(self, call: Call, old: Tree | None, tree: Tree, options: WriteOptions) -> None:
        resource, subresource = call.resource, call.target.subresource
        time = self._time_of(subresource)
        metadata = tree["metadata"]

        def decide(convert: Convert) -> Any:
            # Who owns what is noted on a copy: the decision may have to be begun again.
            noted = {**tree, "metadata": dict(metadata)}
            record_update(
                old,
                noted,
                manager=manager_of(options.manager, call.request.header("user-agent")),
                api_version=resource.kind.api_version,
                subresource=subresource,
                time=time,
                type=resource.strategy.field_type,
                reset=resource.strategy.reset_fields(subresource),
                convert=convert,
            )
            return noted["metadata"].get("managedFields")

        try:
            entries = await decided(resource.strategy, decide)
        except StatusError:
            entries = None  # as for all else that cannot be tracked
        metadata.pop("managedFields", None)
        if entries is not None:
            metadata["managedFields"] = entries

    async def record(self, call: Call, old: Tree, tree: Tree, options: WriteOptions) -> None:
        """Note who manages what a subresource with ways of its own has changed."""
        await self._record(call, old, tree, options)

    def record_own(self, resource: Resource, old: Tree, tree: Tree, subresource: str) -> None:
        """Note that the server itself has changed an object."""
        record_update(
            old,
            tree,
            manager="kube-apiserver",
            api_version=resource.kind.api_version,
            subresource=subresource,
            time=self._time_of(subresource),
            type=resource.strategy.field_type,
            reset=resource.strategy.reset_fields(subresource),
        )

    def _time_of(self, subresource: str) -> str:
        """When a write is noted; of scaling the real server does not say."""
        return "" if subresource == "scale" else format_time(self._clock.now())

    def _operation(
        self, call: Call, operation: Operation, tree: Tree, old: Tree | None, options: WriteOptions, kind: str
    ) -> Attributes:
        # A patch is an update to admission, whatever made it.
        known_as = "UpdateOptions" if kind == "PatchOptions" else kind
        said: dict[str, Any] = {"kind": known_as, "apiVersion": "meta.k8s.io/v1"}
        if options.dry_run:
            said["dryRun"] = ["All"]
        if options.manager:
            said["fieldManager"] = options.manager
        if "fieldValidation" in call.request.query:
            said["fieldValidation"] = options.validation
        return Attributes(
            operation=operation,
            resource=call.resource,
            namespace=call.namespace,
            name=str(tree["metadata"].get("name", "")),
            object=tree,
            old=old,
            user=call.user,
            subresource=call.target.subresource,
            dry_run=options.dry_run,
            options=said,
            warnings=call.warnings,
            annotations=call.request.annotations,
        )


def _is_stored_so(resource: Resource, entry: Entry, tree: Tree) -> bool:
    """Whether the bytes in the store would not change: they do where another version is stored by now."""
    return entry.schema_id == resource.storage_schema or json_equal(decode_json(entry.value), tree)


def _may_go(tree: Tree, old: Tree) -> bool:
    """Whether this change takes the last finalizer from an object that waits to be deleted."""
    meta = tree["metadata"]
    return bool(
        meta.get("deletionTimestamp")
        and not meta.get("deletionGracePeriodSeconds")
        and finalizers_of(old)
        and not finalizers_of(tree)
    )
