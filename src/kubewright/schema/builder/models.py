"""The fields, markers and JSON names of a model class.

A thin layer over msgspec, with errors that name the class. Generic classes come with their arguments, as in
`Box[int]`. `builder.builder` and `builder.defaults` call it.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import FieldInfo

from kubewright.api.fields import Field
from kubewright.errors import SchemaError
from kubewright.schema.builder.annotations import TypeHint, merge, parse_annotation
from kubewright.schema.builder.compound import items_of

__all__ = ("class_of", "fields_of", "is_model", "marker_of", "wire_names")


def is_model(arm: Any) -> bool:
    """Whether a type is a struct."""
    cls = getattr(arm, "__origin__", arm)
    return isinstance(cls, type) and issubclass(cls, msgspec.Struct)


def class_of(model: Any) -> type[msgspec.Struct]:
    """The class of a model, without its type arguments."""
    if not is_model(model):
        raise SchemaError(f"{getattr(model, '__name__', model)} is no model; make it a subclass of Model")
    cls: type[msgspec.Struct] = getattr(model, "__origin__", model)
    if cls.__struct_config__.array_like or cls.__struct_config__.tag is not None:
        raise SchemaError(f"{cls.__name__}: array_like and tagged structs have no structural schema; drop the option")
    return cls


def fields_of(model: Any) -> tuple[FieldInfo, ...]:
    """The fields of a model, annotations resolved."""
    try:
        return msgspec.structs.fields(model)
    except NameError as exc:
        raise SchemaError(
            f"{class_of(model).__name__}: an annotation names {exc.name}, which its module does not define; "
            "define or import it at the top of the module, not inside a function or under TYPE_CHECKING"
        ) from exc


def marker_of(cls: type[msgspec.Struct]) -> Field:
    """The markers of a class and its bases, merged."""
    markers = (base.__dict__.get("__marker__") for base in reversed(cls.__mro__))
    return merge(marker for marker in markers if isinstance(marker, Field))


def wire_names(hint: TypeHint, *, subject: str) -> dict[str, str]:
    """Attribute to JSON name, of the model that a marker is about: the value itself, or the items of the list."""
    if len(hint.arms) != 1:
        return {}
    (arm,) = hint.arms
    if is_model(arm):
        cls = class_of(arm)
        return dict(zip(cls.__struct_fields__, cls.__struct_encode_fields__, strict=True))
    items = items_of(arm, subject=subject)
    return wire_names(parse_annotation(items.annotation, subject=subject), subject=subject) if items is not None else {}
