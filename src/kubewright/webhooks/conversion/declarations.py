"""@convert: an object of one version as an object of another.

    @convert(CacheV1alpha1, CacheV1)
    def up(old: CacheV1alpha1) -> CacheV1:
        return CacheV1(spec=CacheV1Spec(replicas=old.spec.size))

    @convert(CacheV1, CacheV1alpha1)
    def down(new: CacheV1) -> CacheV1alpha1: ...

Each pair is declared once in each direction; between versions without a pair the shortest way over others is taken, so
with a hub every other version needs two functions. A converter is a plain function without side effects. It need not
copy metadata: the object keeps its own, and what the converter sets of labels and annotations is added to it.
`kubewright.testing.assert_round_trip` shows that nothing is lost on the way there and back.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Generic, TypeVar, cast, final

from kubewright.api.codec import copy_of, decode, encode, encode_tree, to_tree
from kubewright.api.kinds import GroupVersion
from kubewright.api.resource import KubeObject, definition_of
from kubewright.errors import ConfigError, DecodeError
from kubewright.webhooks.conversion.partial_objects import completed

__all__ = ("ConversionDeclaration", "ConversionFailed", "Converters", "convert", "converters_from", "group_kind_of")

Old = TypeVar("Old", bound=KubeObject)
New = TypeVar("New", bound=KubeObject)

_DECLARED = "__converters__"


@final
class ConversionFailed(Exception):
    """An object could not be converted; the text says which and why."""


@final
class ConversionDeclaration(Generic[Old, New]):
    """A converter as declared. Calling it calls the function."""

    declares_webhook: ClassVar[bool] = True
    """How a manager tells it from other runnables without importing this module."""

    def __init__(self, old: type[Old], new: type[New], handler: Callable[[Old], New]) -> None:
        before, after = definition_of(old).gvk, definition_of(new).gvk
        if before.group_kind != after.group_kind or before == after:
            raise ConfigError(
                f"@convert({old.__name__}, {new.__name__}): give two versions of one kind, not {before} and {after}"
            )
        if inspect.iscoroutinefunction(handler):
            raise ConfigError(
                f"@convert({old.__name__}, {new.__name__}): a converter is a plain function; leave async out"
            )
        self.old = old
        self.new = new
        self.handler = handler
        self.path = "/convert"
        self.__doc__ = handler.__doc__
        self.__name__ = getattr(handler, "__name__", "convert")
        self.__module__ = handler.__module__
        self.__wrapped__ = handler

    def __call__(self, obj: Old) -> New:
        return self.handler(obj)

    @property
    def name(self) -> str:
        return f"{definition_of(self.old).gvk} to {definition_of(self.new).gvk.version}"

    def __repr__(self) -> str:
        return f"<conversion of {self.name}>"


def convert(old: type[Old], new: type[New]) -> Callable[[Callable[[Old], New]], ConversionDeclaration[Old, New]]:
    """Declare how an object of one version becomes one of another: a plain function from class to class.

    The metadata stays by itself; labels and annotations that the function sets are added. Where two versions have no
    converter of their own, others are chained. `deny("...")` refuses an object in your words; of any other error the
    cluster is told only that there was one, and the log says which.
    """

    def declare(handler: Callable[[Old], New]) -> ConversionDeclaration[Old, New]:
        declaration = ConversionDeclaration(old, new, handler)
        # Kept on the class it starts from, as its definition is, so that a test needs the classes alone.
        setattr(old, _DECLARED, {**vars(old).get(_DECLARED, {}), new: declaration})
        return declaration

    return declare


def converters_from(kind: type[KubeObject]) -> list[ConversionDeclaration[Any, Any]]:
    """Every converter that can be reached from a class over those that were declared."""
    found: dict[tuple[type, type], ConversionDeclaration[Any, Any]] = {}
    waiting = [kind]
    while waiting:
        for declaration in (vars(waiting.pop()).get(_DECLARED) or {}).values():
            if (declaration.old, declaration.new) not in found:
                found[declaration.old, declaration.new] = declaration
                waiting.append(declaration.new)
    return list(found.values())


@final
class Converters:
    """All converters of one kind, and the ways over them."""

    def __init__(self, declarations: Iterable[ConversionDeclaration[Any, Any]]) -> None:
        self._classes: dict[str, type[KubeObject]] = {}
        self._steps: dict[str, dict[str, ConversionDeclaration[Any, Any]]] = {}
        self._ways: dict[tuple[str, str], tuple[ConversionDeclaration[Any, Any], ...]] = {}
        for declaration in declarations:
            self.add(declaration)

    def add(self, declaration: ConversionDeclaration[Any, Any]) -> None:
        """One converter more."""
        old, new = definition_of(declaration.old), definition_of(declaration.new)
        for definition, kind in ((old, declaration.old), (new, declaration.new)):
            if self._classes.setdefault(definition.api_version, kind) is not kind:
                raise ConfigError(f"{definition.gvk} has two classes among its converters; use one of them throughout")
        steps = self._steps.setdefault(old.api_version, {})
        if steps.setdefault(new.api_version, declaration) is not declaration:
            raise ConfigError(f"there are two converters from {old.gvk} to {new.gvk.version}; remove one of them")
        self._ways.clear()

    @property
    def versions(self) -> tuple[str, ...]:
        """The apiVersions there are converters for."""
        return tuple(self._classes)

    def way(self, start: str, end: str) -> tuple[ConversionDeclaration[Any, Any], ...]:
        """The shortest chain of converters from one apiVersion to another; `ConversionFailed` if there is none."""
        known = self._ways.get((start, end))
        if known is None:
            known = self._ways[start, end] = self._shortest(start, end)
        return known

    def converted(self, obj: KubeObject, wanted: str) -> KubeObject:
        """An object in another version; the object given is not changed."""
        result = obj
        for step in self.way(definition_of(type(obj)).api_version, wanted):
            result = _one_step(step, result)
        return result

    def converted_tree(self, tree: dict[str, Any], wanted: str) -> dict[str, Any]:
        """As `converted`, for an object as it came over the wire; its metadata is kept as it is."""
        version = str(tree.get("apiVersion", ""))
        if version == wanted:
            return tree
        way = self.way(version, wanted)
        start = _read(way[0].old, tree)
        end = start
        for step in way:
            end = _one_step(step, end)
        result = to_tree(end)
        for part in ("spec", "status"):
            if part in start.__struct_fields__ and part not in tree:  # what is not there is not made up on the way
                result.pop(part, None)
        result["metadata"] = _kept(tree.get("metadata") or {}, start, end)
        return result

    def _shortest(self, start: str, end: str) -> tuple[ConversionDeclaration[Any, Any], ...]:
        ways: dict[str, tuple[ConversionDeclaration[Any, Any], ...]] = {start: ()}
        waiting = deque([start])
        while waiting:
            place = waiting.popleft()
            if place == end:
                return ways[place]
            for further, step in self._steps.get(place, {}).items():
                if further not in ways:
                    ways[further] = (*ways[place], step)
                    waiting.append(further)
        raise ConversionFailed(f"there is no way from {start} to {end}; declare @convert between two of their versions")


def _read(kind: type[Old], tree: dict[str, Any]) -> Old:
    try:
        return decode(kind, encode_tree(tree))
    except DecodeError as error:
        try:
            return decode(kind, encode_tree(completed(kind, tree)))
        except DecodeError:
            raise ConversionFailed(f"{_subject(tree)}: {error}") from None


def _one_step(step: ConversionDeclaration[Any, Any], obj: KubeObject) -> KubeObject:
    made = step.handler(copy_of(obj))
    if not isinstance(made, step.new):
        raise ConversionFailed(
            f"{obj.kind} {obj.key}: the converter {step.name} returned a {type(made).__name__}, "
            f"not a {step.new.__name__}"
        )
    result = cast("KubeObject", made)
    mine, theirs = result.metadata, obj.metadata
    if mine is theirs or mine.name:
        labels, annotations = mine.labels, mine.annotations
    else:
        labels, annotations = {**theirs.labels, **mine.labels}, {**theirs.annotations, **mine.annotations}
    # A copy, so that a later step cannot change the metadata of the object it started from.
    result.metadata = decode(type(theirs), encode(theirs))
    result.metadata.labels, result.metadata.annotations = dict(labels), dict(annotations)
    return result


def _kept(raw: dict[str, Any], start: KubeObject, end: KubeObject) -> dict[str, Any]:
    """The metadata as it came, with the labels and annotations of the result where they differ."""
    result = dict(raw)
    for name in ("labels", "annotations"):
        before, after = getattr(start.metadata, name), getattr(end.metadata, name)
        if before == after:
            continue
        if after:
            result[name] = after
        else:
            result.pop(name, None)
    return result


def _subject(tree: dict[str, Any]) -> str:
    metadata = cast("dict[str, Any]", tree.get("metadata") or {})
    where = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
    return f"{tree.get('kind', 'object')} {where}{metadata.get('name', '')} of {tree.get('apiVersion', 'no version')}"


def group_kind_of(tree: dict[str, Any]) -> tuple[str, str]:
    """Group and kind of an object as it came over the wire."""
    return GroupVersion.parse(str(tree.get("apiVersion", ""))).group, str(tree.get("kind", ""))
