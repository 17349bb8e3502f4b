"""Dynamic: objects of a kind that has no class (client-go: unstructured.Unstructured).

    certificate = await client.get(Dynamic("cert-manager.io/v1", "Certificate"), "web", namespace="shop")
    certificate["spec"]["dnsNames"].append("shop.example.io")

`Dynamic(...)` makes a class, so it can be used wherever a class can; the same arguments return the same class. Metadata
is typed; everything else is plain data as in JSON. `metadata_of(Pod)` makes a class for the metadata of a kind alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, TypeVar, cast

from kubewright.api.kinds import GroupVersion
from kubewright.api.model import field
from kubewright.api.resource import KubeObject, definition_of

__all__ = ("Dynamic", "DynamicObject", "PartialObjectMetadata", "metadata_of")

K = TypeVar("K", bound=KubeObject)


class DynamicObject(KubeObject):
    """An object as plain data, with typed metadata. Behaves like a dict of its other top-level fields."""

    content: dict[str, Any] = field(default_factory=dict)
    """Everything but apiVersion, kind and metadata."""

    def __getitem__(self, name: str) -> Any:
        return self.content[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self.content[name] = value

    def __delitem__(self, name: str) -> None:
        del self.content[name]

    def __contains__(self, name: str) -> bool:
        return name in self.content

    def __iter__(self) -> Iterator[str]:
        return iter(self.content)

    def get(self, path: str, default: Any = None) -> Any:
        """The value at a dotted path, such as `spec.template.metadata`; the default where any part is missing."""
        value: Any = self.content
        for name in path.split("."):
            if not isinstance(value, dict) or name not in value:
                return default
            value = value[name]
        return value


class PartialObjectMetadata(KubeObject):
    """The metadata of an object, without the rest."""


@cache
def Dynamic(  # noqa: N802 - it is used like a class
    api_version: str, kind: str, *, plural: str | None = None, namespaced: bool | None = None
) -> type[DynamicObject]:
    """The class for objects of a kind known only by name.

    Its plural name and scope come from the server's discovery when first needed, unless both are given here.
    """
    version = GroupVersion.parse(api_version)
    return _subclass(
        DynamicObject,
        kind,
        group=version.group,
        version=version.version,
        kind=kind,
        plural=plural or "",
        scope="Cluster" if namespaced is False else "Namespaced",
        needs_discovery=plural is None or namespaced is None,
    )


@cache
def metadata_of(kind: type[KubeObject]) -> type[PartialObjectMetadata]:
    """The class for the metadata of a kind: the server then sends PartialObjectMetadata."""
    definition = definition_of(kind)
    return _subclass(
        PartialObjectMetadata,
        f"{kind.__name__}Metadata",
        group=definition.gvk.group,
        version=definition.gvk.version,
        kind=definition.kind,
        plural=definition.plural,
        scope="Namespaced" if definition.namespaced else "Cluster",
        metadata_only=True,
        partial=True,
        needs_discovery=definition.needs_discovery,
    )


def _subclass(base: type[K], name: str, **facts: Any) -> type[K]:
    make: Any = type(base)  # the metaclass: what a class statement calls
    return cast("type[K]", make(name, (base,), {"__module__": __name__, "__qualname__": name}, **facts))
