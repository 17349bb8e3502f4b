"""Decodes the body of a review and makes its response: a review is a create that is never stored.

`reviews` and `token_requests` call it.
"""

from __future__ import annotations

from typing import Any, final

from kubewright._base.clock import Clock
from kubewright.api.kinds import GroupVersionKind
from kubewright.api.times import format_time
from kubewright.apiserver.kinds.admission import Attributes, Chain
from kubewright.apiserver.kinds.calls import Call
from kubewright.apiserver.kinds.large_requests import off_loop
from kubewright.apiserver.kinds.resources import Resource, Tree
from kubewright.apiserver.kinds.system_metadata import manager_or_user_agent, meta_of
from kubewright.apiserver.managedfields.field_manager import record_update
from kubewright.apiserver.verbs.decode import decode_object
from kubewright.apiserver.verbs.transform import metadata_only
from kubewright.apiserver.wire.options import WriteOptions, write_options
from kubewright.apiserver.wire.responses import Response, object_response
from kubewright.apiserver.wire.status_errors import bad_request, method_not_allowed, no_such_resource

__all__ = ("ReviewBodies",)


@final
class ReviewBodies:
    """Decodes reviews and makes their responses."""

    def __init__(self, admission: Chain, clock: Clock) -> None:
        self._admission = admission
        self._clock = clock

    @property
    def now(self) -> str:
        """The time, as in objects."""
        return format_time(self._clock.now())

    async def read(self, call: Call, *, resource: Resource | None = None, admit: bool = True) -> Tree:
        """The body of a create, with defaults and managedFields, after admission unless `admit` is false.

        `resource` is the resource of the body, if it is not that of the URL.
        """
        if call.info.name and not call.info.subresource:
            raise no_such_resource()
        if call.info.verb != "create":
            raise method_not_allowed()
        if call.resource.namespaced and not call.info.namespace:
            raise no_such_resource()
        options = write_options("CreateOptions", call.request.query)
        body_call = Call(call.request, call.info, resource or call.resource, call.user, call.output, call.warnings)
        tree = await decode_object(body_call, options)
        self._set_namespace(call, meta_of(tree))
        await off_loop(call.size, lambda: self._record_manager(body_call, tree, options))
        if admit:
            attributes = self._attributes(call, tree, options)
            await self._admission.mutate(attributes)
            tree = attributes.object or tree
            await self._admission.validate(attributes)
            call.warnings.extend(attributes.warnings)
        return tree

    def _set_namespace(self, call: Call, meta: dict[str, Any]) -> None:
        namespace = call.namespace
        if meta.get("namespace") and meta["namespace"] != namespace:
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        if namespace:
            meta["namespace"] = namespace

    def _record_manager(self, call: Call, tree: Tree, options: WriteOptions) -> None:
        strategy = call.resource.strategy
        # No manager owns empty fields, nor the status, which is the server's.
        spec = {name: value for name, value in (tree.get("spec") or {}).items() if value is not None}
        record_update(
            None,
            {"metadata": tree["metadata"], "spec": spec},
            manager=manager_or_user_agent(options.manager, call.request.header("user-agent")),
            api_version=call.resource.kind.api_version,
            subresource=call.info.subresource,
            time=self.now,
            type=strategy.field_type,
            reset=strategy.reset_fields(call.info.subresource),
        )

    def _attributes(self, call: Call, tree: Tree, options: WriteOptions) -> Attributes:
        return Attributes(
            operation="CREATE",
            resource=call.resource,
            namespace=call.namespace,
            name=call.info.name,
            object=tree,
            old=None,
            user=call.user,
            subresource=call.info.subresource,
            dry_run=options.dry_run,
            options={"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
            annotations=call.request.annotations,
        )

    def respond(self, call: Call, kind: GroupVersionKind, tree: Tree) -> Response:
        """The response with the review."""
        ordered = {"kind": kind.kind, "apiVersion": kind.api_version, **tree}
        if call.output.as_kind:
            ordered = metadata_only(ordered, call.output.version)
        return object_response(ordered, call.output, code=201, headers=call.headers())
