"""Model: the base of every typed piece of an object, from a whole Deployment down to one port.

A model is a msgspec struct with three more rules:

- snake_case in Python, camelCase on the wire;
- unset, zero, empty and null are four different things. A field that is `None` (or `UNSET`) is not sent. Any
  other value is sent, also one that equals its default: `ready: 0` in a status is sent.
  A field that must be able to send an explicit null is declared `T | None | Unset = UNSET`;
- a mutable default (a list, a dict, another model) is copied for each instance.

`api.resource` uses it for kinds, and so do the generated kinds and every user's spec and status. It knows nothing of
Kubernetes.
"""

from __future__ import annotations

import copy
import re
import sys
from collections.abc import Callable
from importlib import import_module
from types import NoneType
from typing import Any, ClassVar, dataclass_transform, get_origin

import msgspec
from msgspec import UNSET, field
from msgspec import UnsetType as Unset

from kubewright.api.fields import Field
from kubewright.errors import SchemaError

__all__ = ("UNSET", "Model", "ModelMeta", "Unset", "field", "is_constant")

_UNKNOWN_OPTION = re.compile(r"unexpected keyword argument '(\w+)'|'(\w+)' is an invalid keyword argument")
_DATA = (bool, int, float, str, bytes, tuple, list, dict, set, frozenset, NoneType, msgspec.Struct, Unset)
_IMMUTABLE = (bool, int, float, str, bytes, tuple, frozenset)


class ModelMeta(msgspec.StructMeta):
    """Applies these rules to each class statement below `Model` before msgspec sees it."""

    def __new__(
        mcls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        omit_empty: bool = False,
        marker: Field | None = None,
        **options: Any,
    ) -> ModelMeta:
        """`marker` holds for the class as a whole, such as rules between its attributes.

        `omit_empty=True` leaves defaults as msgspec has them: a value equal to its default is not sent.
        That is right for metadata, where an empty name or label map never means anything.
        """
        _check_attributes(name, namespace)
        if not omit_empty:
            _send_defaults(namespace)
        options.setdefault("kw_only", True)
        try:
            cls = super().__new__(mcls, name, bases, namespace, **options)
        except TypeError as error:
            if unknown := _UNKNOWN_OPTION.search(str(error)):
                raise SchemaError(_about_option(name, unknown[1] or unknown[2], mcls)) from None
            raise
        # Always set, so that a subclass does not inherit it from its base.
        cls.__marker__ = marker
        return cls

    __marker__: Field | None


def _check_attributes(name: str, namespace: dict[str, Any]) -> None:
    """Reject `size = 1`: without a type it is no field to msgspec but a value that all instances share."""
    typed = _annotations(namespace)
    for attribute, value in namespace.items():
        if isinstance(value, Field) and attribute in typed:  # pydantic and dataclasses write it that way
            raise SchemaError(
                f"{name}.{attribute}: Field(...) goes beside the type and is no default; write "
                f"{attribute}: Annotated[..., Field(...)], and a default after it if there is one"
            )
        if attribute in typed or attribute.startswith("_") or attribute.isupper() or not isinstance(value, _DATA):
            continue
        shown = repr(value) if isinstance(value, _IMMUTABLE) else "..."
        raise SchemaError(
            f"{name}.{attribute} has no type; write {attribute}: {type(value).__name__} = {shown}, or ClassVar[...] if "
            "all objects share it"
        )


def _about_option(name: str, option: str, metaclass: type) -> str:
    from difflib import get_close_matches  # only needed for the error message

    known = getattr(metaclass.__new__, "__kwdefaults__", None) or {}
    close = get_close_matches(option, known, n=1)
    return f"{name}: a class statement has no option {option}" + (
        f"; did you mean {close[0]}?" if close else f"; it has {', '.join(known)}"
    )


def _send_defaults(namespace: dict[str, Any]) -> None:
    """Turn each constant default into a factory.

    msgspec's `omit_defaults` skips a field whose value *is* its default. We want that for None alone: with a factory
    msgspec fills the field in when decoding and sends it when encoding.
    """
    for name, annotation in _annotations(namespace).items():
        if name not in namespace or _is_class_variable(annotation):
            continue
        default = namespace[name]
        wire_name = None
        if isinstance(default, _FieldType):
            if default.default is msgspec.NODEFAULT:
                continue
            wire_name, default = default.name, default.default
        if default is None or default is UNSET:
            continue
        namespace[name] = field(default_factory=_factory(default), name=wire_name)


# msgspec has no public name for what `field()` returns.
_FieldType: Any = type(field(default=None))


def _factory(value: Any) -> Callable[[], Any]:
    # A struct has a __hash__ even where hashing it raises.
    if isinstance(value, _IMMUTABLE) or (value.__hash__ is not None and not isinstance(value, msgspec.Struct)):
        return lambda: value
    return lambda: copy.deepcopy(value)


def is_constant(factory: object) -> bool:
    """Whether a field's default factory was made from a default value, and is not a user's function."""
    return getattr(factory, "__module__", None) == __name__


def _annotations(namespace: dict[str, Any]) -> dict[str, Any]:
    if "__annotations__" in namespace:
        return dict(namespace["__annotations__"])
    if sys.version_info < (3, 14):
        return {}
    annotationlib = import_module("annotationlib")  # Python 3.14 evaluates annotations lazily
    annotate = annotationlib.get_annotate_from_class_namespace(namespace)
    if annotate is None:
        return {}
    return dict(annotationlib.call_annotate_function(annotate, annotationlib.Format.FORWARDREF))


def _is_class_variable(annotation: Any) -> bool:
    if isinstance(annotation, str):
        return annotation.startswith(("ClassVar", "typing.ClassVar"))
    return annotation is ClassVar or get_origin(annotation) is ClassVar


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
class Model(
    msgspec.Struct,
    metaclass=ModelMeta,
    rename="camel",
    omit_defaults=True,
    kw_only=True,
    gc=False,  # plain trees of data: no cycles to collect, and a full collection stays short with many objects
):
    """Base class for typed data: `class Port(Model): number: int`."""
