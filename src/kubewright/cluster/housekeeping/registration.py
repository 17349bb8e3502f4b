"""Says of nodes that they have come, in an event, as the node lifecycle controller does.

People look for it when a node does not get pods. Registered by `housekeeping_controllers`.
"""

from __future__ import annotations

from kubewright.controllers.context import Context
from kubewright.controllers.declaration import Declaration, controller
from kubewright.controllers.predicates import on
from kubewright.k8s.core.v1 import Node

__all__ = ("node_registration",)


def node_registration() -> Declaration[Node]:
    """The controller that greets nodes."""

    async def greet(node: Node, ctx: Context) -> None:
        name = node.metadata.name
        ctx.event("RegisteredNode", f"Node {name} event: Registered Node {name} in Controller")

    return controller(Node, name="node-controller", when=on("added"))(greet)
