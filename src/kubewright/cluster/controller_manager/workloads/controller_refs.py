"""ControllerRefManager: adoption and release of children by selector and controller reference.

A child that matches an owner's selector and has no controller is adopted; a controlled child that does not match any
more is released. A new orphan must requeue the owners that select it, though it does not name them: so the manager
keeps the selectors of all owners, as their watch shows them. After pkg/controller/controller_ref_manager.go. One
instance per controller and child kind; its `watches` go into the declaration.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar, final

from kubewright.api.metadata import ObjectMeta
from kubewright.api.names import ObjectKey
from kubewright.api.owners import controller_of, is_controlled_by
from kubewright.api.resource import KubeObject, definition_of
from kubewright.api.selectors import Selector
from kubewright.cache.changes import Change
from kubewright.controllers.context import Context
from kubewright.controllers.declaration import Watch
from kubewright.controllers.mapping import to_owner
from kubewright.controllers.predicates import any_change
from kubewright.errors import Invalid, NotFound

__all__ = ("ControllerRefManager",)

O = TypeVar("O", bound=KubeObject)  # noqa: E741 - an owner
C = TypeVar("C", bound=KubeObject)


@final
class ControllerRefManager(Generic[O, C]):
    """Adopts and releases the children of the owners of one kind."""

    def __init__(
        self,
        owner: type[O],
        child: type[C],
        selector_of: Callable[[O], Selector],
        *,
        finalizers: tuple[str, ...] = (),
    ) -> None:
        """Adopted children get the `finalizers`, released children lose them."""
        self._owner = owner
        self._finalizers = list(finalizers)
        self._child = child
        self._selector_of = selector_of
        self._controller_owners = to_owner(owner)
        # Namespace -> owner -> (uid, generation, selector).
        self._selectors: dict[str, dict[ObjectKey, tuple[str, int, Selector]]] = defaultdict(dict)
        self._mismatched: dict[ObjectKey, set[ObjectKey]] = defaultdict(set)

    @property
    def watches(self) -> tuple[Watch, Watch]:
        """Watches of owners, for their selectors, and of children, which requeue their owners."""
        return Watch(self._owner, self._owner_changed, any_change), Watch(self._child, self.owners_for_change)

    def owners(self, namespace: str | None = None) -> list[ObjectKey]:
        """All owners, or those of one namespace."""
        namespaces = self._selectors if namespace is None else (namespace,)
        return [key for selectors in namespaces for key in self._selectors.get(selectors, ())]

    def owners_for_change(self, change: Change[Any]) -> Iterable[ObjectKey]:
        """The owners to requeue for a change of a child: its controllers, and those that may adopt it."""
        found = set(self._controller_owners(change))
        self._track_mismatched(change)
        old, new = change.old_metadata, change.new_metadata
        if new is None or _has_controller(new):
            return found
        if old is not None and old.labels == new.labels and not _has_controller(old):
            return found
        found.update(self._matching(new))
        return found

    async def claim(self, owner: O, ctx: Context, *, include: Callable[[C], bool] = lambda child: True) -> list[C]:
        """The children of an owner, after adoptions and releases. Only those `include` are adopted or released."""
        selector = self._selector_of(owner)
        await self._release(owner, selector, ctx, include)
        claimed: list[C] = []
        confirmed = False
        for child in await ctx.client.list(self._child, namespace=owner.metadata.namespace, labels=selector):
            if is_controlled_by(child, owner):
                claimed.append(child)
            elif controller_of(child) is None and child.metadata.deletion_timestamp is None and include(child):
                if not confirmed:
                    await ctx.confirm()
                    confirmed = True
                adopted = await self._adopt(owner, child, ctx)
                if adopted is not None:
                    claimed.append(adopted)
        return claimed

    # --- event handlers ---

    def _owner_changed(self, change: Change[Any]) -> Iterable[ObjectKey]:
        """Update the selector of an owner; requeues nothing, the controller's own watch does."""
        metadata, owner, selectors = change.new_metadata, change.after, self._selectors[change.key.namespace]
        if metadata is None or owner is None:
            selectors.pop(change.key, None)
            self._mismatched.pop(change.key, None)
            return ()
        known = selectors.get(change.key)
        if known is None or known[:2] != (metadata.uid, metadata.generation):
            selectors[change.key] = (metadata.uid, metadata.generation, self._selector_of(owner.object))
        return ()

    def _matching(self, metadata: ObjectMeta) -> Iterable[ObjectKey]:
        for key, (_, _, selector) in self._selectors.get(metadata.namespace, {}).items():
            # An empty selector is a mistake: it must not adopt the whole namespace.
            if not selector.selects_everything and selector.matches(metadata.labels):
                yield key

    def _track_mismatched(self, change: Change[Any]) -> None:
        metadata = change.new_metadata
        for key in self._controller_owners(change):
            known = self._selectors.get(key.namespace, {}).get(key)
            if metadata is not None and not (known is not None and known[2].matches(metadata.labels)):
                self._mismatched[key].add(change.key)
            elif key in self._mismatched:
                self._mismatched[key].discard(change.key)
                if not self._mismatched[key]:
                    del self._mismatched[key]

    async def _release(self, owner: O, selector: Selector, ctx: Context, include: Callable[[C], bool]) -> None:
        for key in self._mismatched.pop(owner.key, ()):
            child = await ctx.client.find(self._child, key)
            if child is None or not is_controlled_by(child, owner) or selector.matches(child.metadata.labels):
                continue
            if not include(child):
                continue
            reference = {"$patch": "delete", "uid": owner.metadata.uid}
            patch: dict[str, Any] = {"metadata": {"uid": child.metadata.uid, "ownerReferences": [reference]}}
            if self._finalizers:
                patch["metadata"]["$deleteFromPrimitiveList/finalizers"] = self._finalizers
            try:
                await ctx.client.patch_by_name(self._child, key, patch, patch_type="strategic")
            except (NotFound, Invalid):  # deleted, or replaced by another object of that name
                continue
            except Exception:
                self._mismatched[owner.key].add(key)
                raise

    async def _adopt(self, owner: O, child: C, ctx: Context) -> C | None:
        reference = {
            "apiVersion": definition_of(self._owner).api_version,
            "kind": definition_of(self._owner).kind,
            "name": owner.metadata.name,
            "uid": owner.metadata.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
        patch: dict[str, Any] = {"metadata": {"uid": child.metadata.uid, "ownerReferences": [reference]}}
        if self._finalizers:
            patch["metadata"]["finalizers"] = self._finalizers
        try:
            return await ctx.client.patch_by_name(self._child, child.key, patch, patch_type="strategic")
        except NotFound:
            return None


def _has_controller(metadata: ObjectMeta) -> bool:
    return any(reference.controller for reference in metadata.owner_references)
