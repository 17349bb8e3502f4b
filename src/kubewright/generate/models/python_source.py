"""Python source text of a module of classes: imports, docstrings, fields, in a fixed layout.

`models.modules` decides what a class contains; this module only formats it. The same definitions always give the same
bytes. Text becomes source in two ways and no other: `quoted` makes a literal of it, `docstring` a docstring.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator
from typing import Final, final

import msgspec

from kubewright.errors import SchemaError

__all__ = ("Alias", "Attribute", "ClassDefinition", "Imports", "ModuleText", "docstring", "quoted", "render")

_WIDTH: Final = 110
_NOT_IN_DOCSTRING: Final = re.compile(r'\\|"{3,}|"\Z')


@final
class Attribute(msgspec.Struct, frozen=True, kw_only=True):
    """A field of a class: `replicas: int | None = None`."""

    name: str
    annotation: str
    default: str = ""
    """Source text of the value: its default, or a call of `field`."""
    required: bool = False
    doc: str = ""


@final
class ClassDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """A class statement with its fields."""

    name: str
    base: str
    keywords: tuple[tuple[str, str], ...] = ()
    """Names and source text of the keywords after the base class."""
    doc: str = ""
    attributes: tuple[Attribute, ...] = ()


@final
class Alias(msgspec.Struct, frozen=True, kw_only=True):
    """A name for another type."""

    name: str
    annotation: str
    """What the module calls typing.TypeAlias."""
    type: str
    doc: str = ""


@final
class ModuleText(msgspec.Struct, frozen=True, kw_only=True):
    """Everything in a module, in the order to write it."""

    doc: str
    imports: Imports
    aliases: tuple[Alias, ...] = ()
    classes: tuple[ClassDefinition, ...] = ()
    exports: tuple[str, ...] = ()


@final
class Imports:
    """The imports of a module; a name that one of its own classes has gets another one."""

    def __init__(self, own_names: Iterable[str]) -> None:
        self._taken: dict[str, tuple[str, str]] = dict.fromkeys(own_names, ("", ""))

    def use(self, module: str, name: str, *, wanted: str = "") -> str:
        """Import a name, and return its name here."""
        source = (module, name)
        for local in (wanted or name, _qualified(module, name)):
            if self._taken.setdefault(local, source) == source:
                return local
        raise SchemaError(f"{name} of {module} has no free name in the module that uses it; rename one of its kinds")

    def lines(self) -> Iterator[str]:
        """Import statements: the standard library, then the rest, each sorted."""
        modules: dict[str, list[str]] = {}
        for local, (module, name) in self._taken.items():
            if module:
                modules.setdefault(module, []).append(name if local == name else f"{name} as {local}")
        standard = sorted(module for module in modules if module in ("datetime", "typing"))
        ours = sorted(modules.keys() - set(standard))
        for block in (standard, ours):
            for module in block:
                yield from _import_lines(module, sorted(modules[module]))
            if block:
                yield ""


def _qualified(module: str, name: str) -> str:
    """`Event` of `kubewright.k8s.core.v1` as `CoreV1Event`, `Model` of `kubewright.api.model` as `ApiModel`."""
    parts = ["api"] if module.startswith("kubewright.api.") else module.split(".")[-2:]
    return "".join(part.capitalize() for part in parts) + name


def _import_lines(module: str, names: list[str]) -> Iterator[str]:
    plain = [name for name in names if " as " not in name]
    yield from (f"from {module} import {name}" for name in names if " as " in name)
    line = f"from {module} import {', '.join(plain)}"
    if not plain or len(line) <= _WIDTH:
        yield from [line] if plain else []
        return
    yield f"from {module} import ("
    yield from (f"    {name}," for name in plain)
    yield ")"


def render(module: ModuleText) -> str:
    """The text of the module."""
    lines = [*docstring(module.doc, ""), "", "from __future__ import annotations", ""]
    lines += module.imports.lines()
    lines += _exports(module.exports)
    for alias in module.aliases:
        lines += ["", f"{alias.name}: {alias.annotation} = {alias.type}", *docstring(alias.doc, "")]
    for definition in module.classes:
        lines += ["", "", *_class_lines(definition)]
    return "\n".join(lines) + "\n"


def _exports(names: tuple[str, ...]) -> Iterator[str]:
    if not names:
        return
    line = f"__all__ = ({', '.join(quoted(name) for name in names)}{',' if len(names) == 1 else ''})"
    if len(line) <= _WIDTH:
        yield line
        return
    yield "__all__ = ("
    yield from (f"    {quoted(name)}," for name in names)
    yield ")"


def _class_lines(definition: ClassDefinition) -> Iterator[str]:
    arguments = [definition.base, *(f"{name}={value}" for name, value in definition.keywords)]
    line = f"class {definition.name}({', '.join(arguments)}):"
    if len(line) <= _WIDTH:
        yield line
    else:
        yield f"class {definition.name}("
        yield from (f"    {argument}," for argument in arguments)
        yield "):"
    yield from docstring(definition.doc, "    ")
    if definition.attributes:
        yield ""
    for attribute in definition.attributes:
        default = f" = {attribute.default}" if attribute.default else ""
        yield from _statement(f"    {attribute.name}: {attribute.annotation}", default)
        yield from docstring(attribute.doc, "    ")
    if not definition.attributes and not definition.doc:
        yield "    pass"


def _statement(declaration: str, default: str) -> Iterator[str]:
    """One line, or the default's arguments on lines of their own."""
    if len(declaration + default) <= _WIDTH or not default.endswith(")"):
        yield declaration + default
        return
    call, _, arguments = default[:-1].partition("(")
    yield f"{declaration}{call}("
    yield f"        {arguments}"
    yield "    )"


def docstring(text: str, indent: str) -> list[str]:
    """A docstring, wrapped and escaped; nothing for an empty text."""
    lines = list(_wrap(text, _WIDTH - len(indent) - 3))
    if not lines:
        return []
    lines[0] = f'"""{lines[0]}'
    if len(lines) == 1 and len(indent) + len(lines[0]) + 3 <= _WIDTH:
        return [f'{indent}{lines[0]}"""']
    return [*(f"{indent}{line}".rstrip() for line in lines), f'{indent}"""']


def _wrap(text: str, width: int) -> Iterator[str]:
    for line in _escape(text).split("\n"):
        content = line.lstrip()
        margin = " " * min(len(line.expandtabs(4)) - len(content.expandtabs(4)), 16)
        yield from textwrap.wrap(
            content,
            width,
            initial_indent=margin,
            subsequent_indent=margin,
            break_long_words=False,
            break_on_hyphens=False,
        ) or ([""] if text.strip() else [])


def _escape(text: str) -> str:
    """The text between the quotes: it must not end the string, start an escape or contain invisible characters."""
    visible = "".join(c if c.isprintable() or c in "\n\t" else " " for c in text).strip()
    # In one pass: an escape that a first pass wrote is no text to a second one.
    return _NOT_IN_DOCSTRING.sub(lambda found: "".join(f"\\{character}" for character in found[0]), visible)


def quoted(text: str) -> str:
    """A string literal in double quotes; characters that nobody would see in it are written as escapes."""
    return f'"{"".join(map(_literal_character, text))}"'


def _literal_character(character: str) -> str:
    if character in ('"', "\\"):
        return f"\\{character}"
    if character.isprintable():
        return character
    # Those of ASCII that have a letter, then by number. Half of a surrogate pair can only be written by its number.
    return ascii(character)[1:-1]
