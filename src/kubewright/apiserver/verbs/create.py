"""The verb create: from a body to a new object.

kube-apiserver: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/create.go. An update and an apply of an object that
is not there end here too.
"""

from __future__ import annotations

from typing import final

from kubewright.apiserver.kinds.admission import write_attributes
from kubewright.apiserver.kinds.calls import Call
from kubewright.apiserver.kinds.resources import Tree
from kubewright.apiserver.kinds.system_metadata import meta_of, wipe_system_fields
from kubewright.apiserver.verbs.decode import decode_object, ensure_namespace
from kubewright.apiserver.verbs.field_tracking import track_update
from kubewright.apiserver.verbs.registry import Registry
from kubewright.apiserver.wire.options import WriteOptions, write_options
from kubewright.apiserver.wire.responses import Response

__all__ = ("CreateHandler",)


@final
class CreateHandler:
    """Creates objects in a registry."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def create(self, call: Call) -> Response:
        """Create the object in the body."""
        options = write_options("CreateOptions", call.request.query)
        return await self.create_object(call, await decode_object(call, options), options)

    async def create_object(
        self, call: Call, tree: Tree, options: WriteOptions, *, is_tracked: bool = False
    ) -> Response:
        """Create a decoded object. `is_tracked` says that its managed fields are noted already."""
        registry = self._registry
        meta = meta_of(tree)
        ensure_namespace(call, meta)
        wipe_system_fields(meta)
        if not is_tracked:
            await track_update(call, None, tree, options, registry.clock.now())
        attributes = write_attributes(call, "CREATE", tree, None, options)
        await registry.admission.mutate(attributes)
        return await registry.create(call, attributes, options)
