"""Breaking changes between two structural schemas.

The old schema says what may be stored and what clients may send; whatever the new one no longer keeps, accepts or
returns is a breaking change, with the path of the field. Widening is not. `crds.compatibility` calls this for each
version.

| affects | because |
| --- | --- |
| stored objects | the next write is rejected, or a stored field is dropped when it is read |
| clients | a request is rejected, or a field they read no longer exists |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal, final

import msgspec

from kubewright.schema.check.defaulting import compile_defaults

__all__ = ("Affects", "BreakingChange", "breaking_schema_changes")

Affects = Literal["stored objects", "clients"]
Schema = Mapping[str, Any]

_UNKNOWN: Final = "x-kubernetes-preserve-unknown-fields"
_EITHER: Final = "x-kubernetes-int-or-string"
_EMBEDDED: Final = "x-kubernetes-embedded-resource"
_LIST: Final = "x-kubernetes-list-type"
_KEYS: Final = "x-kubernetes-list-map-keys"
_MAP: Final = "x-kubernetes-map-type"
_RULES: Final = "x-kubernetes-validations"

_OF_METADATA: Final[Schema] = {"type": "string"}
"""A schema may constrain only `name` and `generateName` of the metadata; the server keeps all of it."""
_AT_LEAST: Final = ("minimum", "minLength", "minItems", "minProperties")
_AT_MOST: Final = ("maximum", "maxLength", "maxItems", "maxProperties")
_COMBINED: Final = ("allOf", "anyOf", "oneOf", "not")


@final
class BreakingChange(msgspec.Struct, frozen=True, order=True):
    """One change, and whom it breaks."""

    path: str
    change: str
    """A few words, the same for the same kind of change."""
    detail: str
    affects: Affects = "stored objects"

    def __str__(self) -> str:
        return f"{self.path}: {self.change}: {self.detail} (breaks {self.affects})"


def breaking_schema_changes(old: Schema, new: Schema, path: str = "") -> Iterator[BreakingChange]:
    """Every breaking change below a path, from the outside in."""
    for check in _CHECKS:
        for change, detail, affects in check(old, new):
            yield BreakingChange(path or ".", change, detail, affects)
    if _types_of(old).isdisjoint(_types_of(new)):
        return  # another type: its parts cannot be compared
    yield from _properties(old, new, path)
    if isinstance(old.get("items"), Mapping) and isinstance(new.get("items"), Mapping):
        yield from breaking_schema_changes(old["items"], new["items"], f"{path}[]")
    yield from _entries(old, new, path)


Change = tuple[str, str, Affects]
Check = Callable[[Schema, Schema], Iterator[Change]]


def _properties(old: Schema, new: Schema, path: str) -> Iterator[BreakingChange]:
    before, after = old.get("properties") or {}, new.get("properties") or {}
    for name, schema in before.items():
        field_path = f"{path}.{name}"
        if name in after:
            yield from breaking_schema_changes(schema, after[name], field_path)
        elif path == ".metadata":
            continue
        elif isinstance(new.get("additionalProperties"), Mapping):
            yield from breaking_schema_changes(schema, new["additionalProperties"], field_path)
        elif not (new.get(_UNKNOWN) or new.get("additionalProperties") is True):
            yield BreakingChange(field_path, "field removed", "what is stored there is dropped", "stored objects")
    for name in after.keys() - before.keys():
        if (known := _unnamed(old, path)) is not None:
            yield from breaking_schema_changes(known, after[name], f"{path}.{name}")
    needed = set(new.get("required") or ()) - set(old.get("required") or ())
    for name in sorted(needed):
        if "default" not in after.get(name, {}):
            word = "required now" if name in before else "new required field"
            yield BreakingChange(f"{path}.{name}", word, "objects without it are refused; give it a default")


def _unnamed(schema: Schema, path: str) -> Schema | None:
    """The schema of fields that have no property; None if such fields are dropped."""
    others = schema.get("additionalProperties")
    if isinstance(others, Mapping):
        return others
    if path == ".metadata":
        return _OF_METADATA
    return {} if others or schema.get(_UNKNOWN) else None


def _entries(old: Schema, new: Schema, path: str) -> Iterator[BreakingChange]:
    """Maps, and objects that preserve unknown fields."""
    before, after = old.get("additionalProperties"), new.get("additionalProperties")
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        yield from breaking_schema_changes(before, after, f"{path}.*")
    elif before and not after and not new.get(_UNKNOWN):
        yield BreakingChange(path or ".", "map closed", "keys that are no fields are dropped", "stored objects")
    elif isinstance(after, Mapping) and old.get(_UNKNOWN) and not new.get(_UNKNOWN) and not before:
        yield BreakingChange(path or ".", "unknown fields typed", "values of another type are refused")
    if old.get(_UNKNOWN) and new.get("type") == "object" and not (new.get(_UNKNOWN) or after):
        yield BreakingChange(path or ".", "unknown fields dropped", "fields that are not in the schema are lost")


def _types_of(schema: Schema) -> frozenset[str]:
    """The JSON types a schema takes."""
    if schema.get(_EITHER):
        return frozenset(("integer", "string"))
    kind = schema.get("type")
    if kind == "number":
        return frozenset(("integer", "number"))
    if not kind:
        return frozenset(("array", "boolean", "integer", "number", "object", "string"))
    return frozenset((kind,))


def _type(old: Schema, new: Schema) -> Iterator[Change]:
    before, after = _types_of(old), _types_of(new)
    detail = f"{_type_names(old)} became {_type_names(new)}"
    if before.isdisjoint(after):
        yield "type changed", detail, "stored objects"
    elif not before <= after:
        yield "type narrowed", detail, "stored objects"
    elif not after <= before:
        yield "type widened", f"{detail}, which clients with types do not expect", "clients"
    if old.get("nullable") and not new.get("nullable"):
        yield "null refused", "null was allowed", "stored objects"
    if new.get(_EMBEDDED) and not old.get(_EMBEDDED):
        yield "embedded object required", "it must have apiVersion and kind", "stored objects"


def _type_names(schema: Schema) -> str:
    return "int-or-string" if schema.get(_EITHER) else str(schema.get("type") or "anything")


def _bounds(old: Schema, new: Schema) -> Iterator[Change]:
    for name in (*_AT_LEAST, *_AT_MOST):
        before, after = old.get(name), new.get(name)
        if after is None or (after == 0 and name in _AT_LEAST[1:]):
            continue
        if before is None:
            yield f"{name} added", f"{after}; there was none", "stored objects"
        elif (after > before) if name in _AT_LEAST else (after < before):
            yield f"{name} tightened", f"{before} became {after}", "stored objects"
    for name, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if new.get(name) and not old.get(name) and new.get(bound) == old.get(bound):
            yield f"{name} added", f"{new.get(bound)} itself is refused", "stored objects"
    before, after = old.get("multipleOf"), new.get("multipleOf")
    if after is not None and (before is None or before % after):
        yield "multipleOf tightened", f"{before or 'none'} became {after}", "stored objects"
    if new.get("uniqueItems") and not old.get("uniqueItems"):
        yield "uniqueItems added", "lists with equal items are refused", "stored objects"


def _text(old: Schema, new: Schema) -> Iterator[Change]:
    for name in ("pattern", "format"):
        before, after = old.get(name), new.get(name)
        if after is None or after == before or (before, after) == ("int32", "int64"):
            continue
        yield f"{name} {'changed' if before else 'added'}", f"{before or 'none'} became {after}", "stored objects"


def _values(old: Schema, new: Schema) -> Iterator[Change]:
    before, after = old.get("enum"), new.get("enum")
    if after is not None and before is None:
        yield "enum added", f"only {_join(after)} from now on", "stored objects"
    elif after is not None and before is not None:
        gone = [value for value in before if value not in after]
        if gone:
            yield "enum value removed", _join(gone), "stored objects"
    if "default" in old and "default" not in new:
        yield "default removed", f"clients that rely on {old['default']!r} find nothing", "clients"
    elif "default" in old and not _default_is_kept(old["default"], _with_defaults(new)):
        yield "default changed", f"{old['default']!r} became {new['default']!r}", "clients"


def _with_defaults(schema: Schema) -> Any:
    """The default of a value with the defaults inside it."""
    holder: dict[str, Any] = {}
    compile_defaults({"properties": {"value": schema}}).apply(holder)
    return holder.get("value")


def _default_is_kept(old: Any, new: Any) -> bool:
    """Whether a default still has every old value; additional values are no change."""
    if isinstance(old, dict) and isinstance(new, dict):
        return all(name in new and _default_is_kept(value, new[name]) for name, value in old.items())
    return bool(old == new)


def _combinations(old: Schema, new: Schema) -> Iterator[Change]:
    for name in _COMBINED:
        if name in new and new[name] != old.get(name) and not (new.get(_EITHER) and name in ("anyOf", "allOf")):
            word = "changed" if name in old else "added"
            yield f"{name} {word}", "what is stored may not fit", "stored objects"


def _rules(old: Schema, new: Schema) -> Iterator[Change]:
    known = {rule.get("rule") for rule in old.get(_RULES) or ()}
    for rule in new.get(_RULES) or ():
        if rule.get("rule") not in known:
            yield "rule added", str(rule.get("rule")), "stored objects"


def _topology(old: Schema, new: Schema) -> Iterator[Change]:
    if new.get("type") == "array":
        before, after = old.get(_LIST, "atomic"), new.get(_LIST, "atomic")
        if before != after:
            strict = after != "atomic"
            detail = f"{before} became {after}" + (", and equal items are refused" if strict else "")
            yield "list type changed", detail, "stored objects" if strict else "clients"
        elif after == "map" and sorted(old.get(_KEYS) or ()) != sorted(new.get(_KEYS) or ()):
            yield "list keys changed", f"{old.get(_KEYS)} became {new.get(_KEYS)}", "stored objects"
    if new.get("type") == "object" and old.get(_MAP, "granular") != new.get(_MAP, "granular"):
        before, after = old.get(_MAP, "granular"), new.get(_MAP, "granular")
        yield "map type changed", f"{before} became {after}: appliers own other fields than before", "clients"


def _join(values: list[Any]) -> str:
    return ", ".join(map(str, values))


_CHECKS: Final[tuple[Check, ...]] = (_type, _bounds, _text, _values, _combinations, _rules, _topology)
