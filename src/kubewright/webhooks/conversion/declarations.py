"""@convert: declare how an object of one version becomes an object of another.

    @convert(CacheV1alpha1, CacheV1)
    def up(old: CacheV1alpha1) -> CacheV1:
        return CacheV1(spec=CacheV1Spec(replicas=old.spec.size))

    @convert(CacheV1, CacheV1alpha1)
    def down(new: CacheV1) -> CacheV1alpha1: ...

Each pair of versions needs one function in each direction. Versions without a function of their own are converted over
others, by the shortest chain; with a hub, every other version needs two functions. A converter is a plain function
without side effects. It need not copy metadata: the object keeps its own, and labels and annotations that the converter
sets are added to it. `conversion.handler` answers the API server's reviews with the converters declared here;
`kubewright.testing.assert_round_trip` checks that a conversion there and back loses nothing.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Generic, TypeVar, cast, final

from kubewright.api.codec import copy_of, decode, decode_stored, encode, encode_tree, problems_of, to_tree
from kubewright.api.field_errors import summary
from kubewright.api.kinds import GroupVersion
from kubewright.api.resource import KubeObject, definition_of
from kubewright.errors import ConfigError, DecodeError
from kubewright.webhooks.conversion.partial_objects import with_zero_values

__all__ = ("ConversionDeclaration", "ConversionError", "Converters", "convert", "converters_from", "group_kind_of")

Old = TypeVar("Old", bound=KubeObject)
New = TypeVar("New", bound=KubeObject)

_DECLARED = "__converters__"


@final
class ConversionError(Exception):
    """An object could not be converted; the text says which and why."""


@final
class ConversionDeclaration(Generic[Old, New]):
    """A declared converter. Calling it calls the function."""

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

    The object keeps its metadata; labels and annotations that the function sets are added. Where two versions have no
    converter of their own, others are chained. `deny("...")` rejects an object with your message; of any other error
    the API server learns only that there was one, and the log says which.
    """

    def declare(handler: Callable[[Old], New]) -> ConversionDeclaration[Old, New]:
        declaration = ConversionDeclaration(old, new, handler)
        # Stored on the class it starts from, as its definition is, so that a test needs only the classes.
        setattr(old, _DECLARED, {**vars(old).get(_DECLARED, {}), new: declaration})
        return declaration

    return declare


def converters_from(kind: type[KubeObject]) -> list[ConversionDeclaration[Any, Any]]:
    """Every converter that can be reached from a class."""
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
    """All converters of one kind, and the chains between its versions."""

    def __init__(self, declarations: Iterable[ConversionDeclaration[Any, Any]]) -> None:
        self._classes: dict[str, type[KubeObject]] = {}
        self._steps: dict[str, dict[str, ConversionDeclaration[Any, Any]]] = {}
        self._chains: dict[tuple[str, str], tuple[ConversionDeclaration[Any, Any], ...]] = {}
        for declaration in declarations:
            self.add(declaration)

    def add(self, declaration: ConversionDeclaration[Any, Any]) -> None:
        """Add a converter; two for the same pair of versions are a ConfigError."""
        old, new = definition_of(declaration.old), definition_of(declaration.new)
        for definition, kind in ((old, declaration.old), (new, declaration.new)):
            if self._classes.setdefault(definition.api_version, kind) is not kind:
                raise ConfigError(f"{definition.gvk} has two classes among its converters; use one of them throughout")
        steps = self._steps.setdefault(old.api_version, {})
        if steps.setdefault(new.api_version, declaration) is not declaration:
            raise ConfigError(f"there are two converters from {old.gvk} to {new.gvk.version}; remove one of them")
        self._chains.clear()

    @property
    def versions(self) -> tuple[str, ...]:
        """The apiVersions there are converters for."""
        return tuple(self._classes)

    def chain(self, start: str, end: str) -> tuple[ConversionDeclaration[Any, Any], ...]:
        """The shortest chain of converters from one apiVersion to another; `ConversionError` if there is none."""
        known = self._chains.get((start, end))
        if known is None:
            known = self._chains[start, end] = self._shortest(start, end)
        return known

    def convert(self, obj: KubeObject, wanted: str) -> KubeObject:
        """An object in another version; the object given is not changed."""
        result = obj
        for step in self.chain(definition_of(type(obj)).api_version, wanted):
            result = _one_step(step, result)
        return result

    def convert_tree(self, tree: dict[str, Any], wanted: str) -> dict[str, Any]:
        """As `convert`, for an object as JSON; metadata that the class does not know is kept."""
        version = str(tree.get("apiVersion", ""))
        if version == wanted:
            return tree
        chain = self.chain(version, wanted)
        start = _decode_object(chain[0].old, tree)
        end = start
        try:
            for step in chain:
                end = _one_step(step, end)
        except Exception as error:
            if problems := problems_of(start):
                error.add_note(f"it holds {summary(problems)}; pass such a value on with kubewright.api.enum_of")
            raise
        result = to_tree(end)
        for part in ("spec", "status"):
            # A class may have a default for a missing spec or status; the conversion must not add it to the object.
            if part in start.__struct_fields__ and part not in tree:
                result.pop(part, None)
        result["metadata"] = _merged_metadata(tree.get("metadata") or {}, start, end)
        return result

    def _shortest(self, start: str, end: str) -> tuple[ConversionDeclaration[Any, Any], ...]:
        chains: dict[str, tuple[ConversionDeclaration[Any, Any], ...]] = {start: ()}
        waiting = deque([start])
        while waiting:
            version = waiting.popleft()
            if version == end:
                return chains[version]
            for other, step in self._steps.get(version, {}).items():
                if other not in chains:
                    chains[other] = (*chains[version], step)
                    waiting.append(other)
        raise ConversionError(
            f"there is no chain of converters from {start} to {end}; declare @convert between two of their versions"
        )


def _decode_object(kind: type[Old], tree: dict[str, Any]) -> Old:
    try:
        return decode(kind, encode_tree(tree))
    except DecodeError as error:
        try:
            # One object whose values the class does not know must not make every list of the version fail.
            return decode_stored(kind, encode_tree(with_zero_values(kind, tree)))
        except DecodeError:
            raise ConversionError(f"{_describe(tree)}: {error}") from None


def _one_step(step: ConversionDeclaration[Any, Any], obj: KubeObject) -> KubeObject:
    made = step.handler(copy_of(obj))
    if not isinstance(made, step.new):
        raise ConversionError(
            f"{obj.kind} {obj.key}: the converter {step.name} returned a {type(made).__name__}, "
            f"not a {step.new.__name__}"
        )
    result = cast("KubeObject", made)
    after, before = result.metadata, obj.metadata
    if after is before or after.name:  # the converter copied the metadata, so a label it removed stays removed
        labels, annotations = after.labels, after.annotations
    else:
        labels, annotations = {**before.labels, **after.labels}, {**before.annotations, **after.annotations}
    # A converter may change labels and annotations; kube-apiserver restores all other metadata (restoreObjectMeta in
    # apiextensions-apiserver: pkg/apiserver/conversion/webhook_converter.go). A copy, so that a later step cannot
    # change the metadata of the object it started from.
    result.metadata = decode(type(before), encode(before))
    result.metadata.labels, result.metadata.annotations = dict(labels), dict(annotations)
    return result


def _merged_metadata(raw: dict[str, Any], start: KubeObject, end: KubeObject) -> dict[str, Any]:
    """The metadata as received, with the labels and annotations of the result where they differ."""
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


def _describe(tree: dict[str, Any]) -> str:
    metadata = cast("dict[str, Any]", tree.get("metadata") or {})
    where = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
    return f"{tree.get('kind', 'object')} {where}{metadata.get('name', '')} of {tree.get('apiVersion', 'no version')}"


def group_kind_of(tree: dict[str, Any]) -> tuple[str, str]:
    """The group and kind of an object as JSON."""
    return GroupVersion.parse(str(tree.get("apiVersion", ""))).group, str(tree.get("kind", ""))
