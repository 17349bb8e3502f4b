"""Which children are this Application's, and how it lets go of them."""

from typing import TypeVar

from kubewright import Context, controller_of
from kubewright.api import KubeObject

from application.api.v1alpha1.application import Application

__all__ = ("find_child", "is_ours", "release")

K = TypeVar("K", bound=KubeObject)


def is_ours(child: KubeObject, application: Application) -> bool:
    """Whether this very Application manages it, not just one of the same name."""
    owner = controller_of(child)
    return owner is not None and owner.uid == application.metadata.uid


async def find_child(kind: type[K], application: Application, ctx: Context) -> K | None:
    """The child of that kind, if it is there and ours."""
    child = await ctx.client.find(kind, application.key)
    return child if child is not None and is_ours(child, application) else None


async def release(child: KubeObject, application: Application, ctx: Context) -> None:
    """Take our owner reference off a child, so that garbage collection leaves it alone. Others stay on it."""
    child.metadata.owner_references = [
        owner for owner in child.metadata.owner_references if owner.uid != application.metadata.uid
    ]
    # The list is replaced as a whole, so it must be the one that was read.
    await ctx.patch(child, optimistic_lock=True)
