"""KubeObject and Resource: a Kubernetes kind as a Python class.

    class CacheSpec(Spec):
        size: int = 1

    class CacheStatus(Status):
        ready: int = 0

    class Cache(Resource[CacheSpec, CacheStatus], group="cache.example.io", version="v1alpha1", short_names=("mc",)):
        \"\"\"A memcached cluster.\"\"\"

The class statement declares everything about the kind: its keywords become the `Definition`, which the client needs for
paths and the generators for manifests. A class without `version=` is abstract: a base for others.
`KubeObject` is for kinds that have no spec and status, such as a ConfigMap.

`apiVersion` and `kind` belong to the class, not to an object: they cannot be wrong, cost nothing per object, and
`api.codec` writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import (
    Any,
    ClassVar,
    Generic,
    Literal,
    Self,
    TypeVar,
    cast,
    get_args,
    get_origin,
)

import msgspec

from kubewright.api.conditions import Condition
from kubewright.api.fields import Field
from kubewright.api.kinds import GroupVersionKind, GroupVersionResource, pluralize
from kubewright.api.metadata import ObjectMeta
from kubewright.api.model import Model, ModelMeta, field
from kubewright.api.names import ObjectKey, dns1035_label_errors, dns1123_subdomain_errors
from kubewright.errors import SchemaError

__all__ = ("Column", "Definition", "KubeObject", "Resource", "Scale", "Spec", "Status", "definition_of")

Scope = Literal["Namespaced", "Cluster"]


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """A column of `kubectl get`."""

    path: str
    """A JSONPath into the object, such as `.status.ready`."""
    type: str | None = None
    """string, integer, number, boolean or date; from the schema if not given."""
    description: str | None = None
    format: str | None = None
    priority: int = 0
    """Above 0 the column is shown only with `-o wide`."""


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """The JSON paths of the scale subresource."""

    spec_path: str
    status_path: str
    selector_path: str | None = None


class Definition(msgspec.Struct, frozen=True, kw_only=True):
    """What a class statement declares about its kind."""

    gvk: GroupVersionKind
    plural: str
    singular: str
    list_kind: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    columns: Mapping[str, Column] = {}
    scale: Scale | None = None
    status: bool = False
    """The status is a subresource: writes to the object do not change it, and vice versa."""
    selectable_fields: tuple[str, ...] = ()
    served: bool = True
    storage: bool = True
    deprecated: str | bool = False
    """True, or the warning clients get."""
    object_names: Field | None = None
    """Constraints of the names of all objects of the kind, such as a length that leaves room for suffixes."""
    crd_labels: Mapping[str, str] = {}
    """Labels of the kind's CustomResourceDefinition itself."""
    crd_annotations: Mapping[str, str] = {}
    partial: bool = False
    """The class has only some of the kind's fields, so `update` refuses it."""
    metadata_only: bool = False
    """Requests ask the server for metadata alone."""
    needs_discovery: bool = False
    """The class does not know plural name and scope; the client gets them from the server's discovery."""

    @property
    def api_version(self) -> str:
        return self.gvk.api_version

    @property
    def kind(self) -> str:
        return self.gvk.kind

    @property
    def gvr(self) -> GroupVersionResource:
        return GroupVersionResource(self.gvk.group, self.gvk.version, self.plural)


def _spec_and_status(namespace: dict[str, Any]) -> tuple[Any, Any] | None:
    for base in namespace.get("__orig_bases__", ()):
        if get_origin(base) is not None and getattr(get_origin(base), "__name__", "") == "Resource":
            spec, status = get_args(base)
            return spec, status
    return None


def _bind_spec_and_status(name: str, namespace: dict[str, Any], spec: Any, status: Any) -> None:
    """Give the class its own spec and status fields, present even if the JSON has none."""
    annotations = namespace.setdefault("__annotations__", {})
    for attribute, bound in (("spec", spec), ("status", status)):
        if attribute in annotations or isinstance(bound, TypeVar):
            continue
        if bound is type(None) or bound is None:
            annotations[attribute] = None
            namespace[attribute] = None
            continue
        annotations[attribute] = bound
        if not _has_required_fields(bound):
            namespace[attribute] = field(default_factory=cast("Callable[[], Any]", bound))
        elif attribute == "status":
            raise SchemaError(
                f"{name}: every attribute of {bound.__name__} needs a default, since a new object has no status yet"
            )
        else:
            # Shadows the inherited default, so that msgspec asks for it.
            namespace[attribute] = field()


def _has_required_fields(model: Any) -> bool:
    return (
        isinstance(model, type)
        and issubclass(model, msgspec.Struct)
        and any(f.required for f in msgspec.structs.fields(model))
    )


def _column(column: str | Column) -> Column:
    return column if isinstance(column, Column) else Column(path=column)


def _scale(name: str, scale: Sequence[str] | Scale | None) -> Scale | None:
    if scale is None or isinstance(scale, Scale):
        return scale
    if len(scale) not in (2, 3):
        raise SchemaError(f'{name}: scale takes two or three paths, as in scale=("spec.size", "status.ready")')
    return Scale(spec_path=scale[0], status_path=scale[1], selector_path=scale[2] if len(scale) == 3 else None)


class KindMeta(ModelMeta):
    """Makes the Definition from the keywords of the class statement."""

    def __new__(
        mcls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        version: str | None = None,
        group: str = "",
        kind: str | None = None,
        plural: str | None = None,
        singular: str | None = None,
        list_kind: str | None = None,
        scope: Scope = "Namespaced",
        short_names: Sequence[str] = (),
        categories: Sequence[str] = (),
        columns: Mapping[str, str | Column] | None = None,
        scale: Sequence[str] | Scale | None = None,
        status: bool | None = None,
        selectable_fields: Sequence[str] = (),
        served: bool = True,
        storage: bool = True,
        deprecated: str | bool = False,
        object_names: Field | None = None,
        crd_labels: Mapping[str, str] | None = None,
        crd_annotations: Mapping[str, str] | None = None,
        partial: bool = False,
        metadata_only: bool = False,
        needs_discovery: bool = False,
        **options: Any,
    ) -> KindMeta:
        arguments = _spec_and_status(namespace)
        if arguments is not None and version is not None:
            _bind_spec_and_status(name, namespace, *arguments)
        cls = cast("KindMeta", super().__new__(mcls, name, bases, namespace, **options))
        if version is None:
            if group or plural:
                raise SchemaError(f"{name} has a group and no version; write version='v1alpha1' beside it")
            return cls
        kind = kind or name
        _check_options(
            name,
            {
                "version": version,
                "group": group,
                "kind": kind,
                "plural": plural or "",
                "scope": scope,
                "short_names": short_names,
                "categories": categories,
                "selectable_fields": selectable_fields,
            },
        )
        has_status = arguments is not None and arguments[1] is not type(None)
        definition = Definition(
            gvk=GroupVersionKind(group, version, kind),
            plural=plural or pluralize(kind),
            singular=singular or kind.lower(),
            list_kind=list_kind or f"{kind}List",
            namespaced=scope == "Namespaced",
            short_names=tuple(short_names),
            categories=tuple(categories),
            columns={title: _column(column) for title, column in (columns or {}).items()},
            scale=_scale(name, scale),
            status=has_status if status is None else status,
            selectable_fields=tuple(selectable_fields),
            served=served,
            storage=storage,
            deprecated=deprecated,
            object_names=object_names,
            crd_labels=dict(crd_labels or {}),
            crd_annotations=dict(crd_annotations or {}),
            partial=partial,
            metadata_only=metadata_only,
            needs_discovery=needs_discovery,
        )
        kind_class = cast("type[KubeObject]", cls)
        kind_class.__definition__ = definition
        kind_class.api_version = definition.api_version
        kind_class.kind = kind
        return cls


class KubeObject(
    Model,
    metaclass=KindMeta,
    dict=True,  # for the bytes an object was read from, see `api.changes`
    gc=True,  # msgspec requires this with dict=True; only the object itself is tracked, not its parts
):
    """Base class of everything that has apiVersion, kind and metadata."""

    __definition__: ClassVar[Definition]
    api_version: ClassVar[str]
    kind: ClassVar[str]

    metadata: ObjectMeta = field(default_factory=ObjectMeta)

    @property
    def key(self) -> ObjectKey:
        """Namespace and name."""
        return self.metadata.key

    @classmethod
    def named(
        cls,
        name: str,
        namespace: str = "",
        *,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        **fields: Any,
    ) -> Self:
        """A new object of that name: `ConfigMap.named("limits", "shop", labels={"app": "web"}, data={"cpu": "2"})`."""
        metadata = ObjectMeta(
            name=name, namespace=namespace, labels=dict(labels or {}), annotations=dict(annotations or {})
        )
        try:
            return cls(metadata=metadata, **fields)
        except TypeError:
            for unknown in [given for given in fields if given not in cls.__struct_fields__]:
                raise TypeError(_about_attribute(cls, unknown)) from None
            raise


def _about_attribute(kind: type[KubeObject], unknown: str) -> str:
    from difflib import get_close_matches  # only needed for the error message

    known = kind.__struct_fields__
    close = get_close_matches(unknown, known, n=1)
    advice = f"did you mean {close[0]}?" if close else f"it has {', '.join(known)}"
    return f"{kind.__name__} has no attribute {unknown}; {advice}"


class Spec(Model):
    """Base class for the desired state of a kind."""


class Status(Model, omit_empty=True):
    """Base class for the observed state of a kind, with the fields every status should have."""

    observed_generation: int | None = None
    """The generation of the spec this status is about."""
    conditions: list[Condition] = []
    """What is true of the object now, each with a reason."""


SpecT = TypeVar("SpecT")
StatusT = TypeVar("StatusT")


def _unbound() -> Any:
    raise TypeError("Resource is abstract: subclass it with a spec, a status, a group and a version")


class Resource(KubeObject, Generic[SpecT, StatusT]):
    """A kind with a spec and a status: `class Cache(Resource[CacheSpec, CacheStatus], group=..., version=...)`.

    `Resource[CacheSpec, None]` is a kind without a status.
    """

    spec: SpecT = field(default_factory=_unbound)
    status: StatusT = field(default_factory=_unbound)


def definition_of(kind: type[KubeObject]) -> Definition:
    """The Definition of a class; a SchemaError if it is abstract."""
    definition = getattr(kind, "__definition__", None)
    if not isinstance(definition, Definition):
        _check_is_kind(kind)
        raise SchemaError(
            f"{kind.__name__} is abstract: give it a version, as in class {kind.__name__}(..., group=..., version=...)"
        )
    return definition


def _check_is_kind(given: object) -> None:
    if isinstance(given, type) and issubclass(given, KubeObject):
        return
    shown = given.__name__ if isinstance(given, type) else f"{given!r:.100}"
    raise SchemaError(f"the class of a kind is needed, such as ConfigMap, and {shown} is none; import the class")


def _check_options(name: str, options: Mapping[str, object]) -> None:
    """What a class statement says of a kind: refused where it is written, not when a server sees the CRD."""
    for option, example in (("version", "v1alpha1"), ("group", "cache.example.io"), ("plural", "caches")):
        if not isinstance(options[option], str):
            raise SchemaError(f"{name}: {option} is {options[option]!r}; write it like {option}={example!r}")
    version, group, plural = (str(options[option]) for option in ("version", "group", "plural"))
    if problems := dns1035_label_errors(version):
        raise SchemaError(
            f"{name}: the version {version!r} cannot be used; write it like v1 or v1alpha1: {problems[0]}"
        )
    if group and dns1123_subdomain_errors(group):
        raise SchemaError(
            f"{name}: the group {group!r} is no domain; give a custom resource one of your own, as in "
            'group="cache.example.io"'
        )
    if plural and (problems := dns1035_label_errors(plural)):
        raise SchemaError(f"{name}: the plural {plural!r} cannot be used; write it like caches: {problems[0]}")
    kind = options["kind"]
    if not isinstance(kind, str) or dns1035_label_errors(kind.lower()):
        raise SchemaError(f"{name}: kind is {kind!r}; write it like a class, kind='Cache'")
    if options["scope"] not in ("Namespaced", "Cluster"):
        raise SchemaError(f"{name}: scope is {options['scope']!r}; it is 'Namespaced' or 'Cluster'")
    for option in ("short_names", "categories", "selectable_fields"):
        if isinstance(options[option], str):
            raise SchemaError(f"{name}: {option} takes several; write {option}=({options[option]!r},)")
