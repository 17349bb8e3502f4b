"""Names of Kubewright as pages write them, looked up in the code.

    `Context.apply`   `Field(ge=, le=)`   `@validate`   `kubewright.testing.until`   `plural=`
    `kubewright create api --group`   `make deploy`

`problem_with` says what is wrong with one, or nothing. Python's own names and operators are no business of Kubewright.
"""

from __future__ import annotations

import inspect
import re
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import Any, Final

import click
import msgspec
from tests.public_api import PUBLIC, public_names

from kubewright.api.resource import KindMeta
from kubewright.cli.root import root

__all__ = ("problem_with",)

_CALL: Final = re.compile(r"(?P<name>[\w.]+)\((?P<keywords>(?:\w+=(?:, )?)*|\.\.\.)\)")
_KEYWORD: Final = re.compile(r"(?P<name>\w+)=")
_PYTHON: Final = re.compile(
    r"(?:Annotated|Literal|dict|list)\[.*\]|enum\.Enum|datetime\.datetime|None|True|False|[&|~]|finalize|setup|teardown"
)
_TARGET: Final = re.compile(r"^([a-z-]+):", re.MULTILINE)
_DEFAULT: Final = "all"
"""The target of `make` alone."""


def problem_with(text: str, *, inside: bool = False) -> str | None:
    """What is wrong with a name, if anything is. A whole path must be public, except on pages about the inside."""
    text = text.replace("\\|", "|").removeprefix("@")
    if _PYTHON.fullmatch(text):
        return next((found for inner in _CALL.finditer(text) if (found := problem_with(inner[0]))), None)
    if text.startswith("kubewright "):
        return _command_problem(text.split()[1:])
    if text == "make" or text.startswith("make "):
        return None if (text.removeprefix("make").strip() or _DEFAULT) in _targets() else f"no target for `{text}`"
    if keyword := _KEYWORD.fullmatch(text):
        return None if keyword["name"] in {*_keywords(KindMeta.__new__), "marker"} else f"no class takes `{text}`"
    if call := _CALL.fullmatch(text):
        return _call_problem(call["name"], re.findall(r"(\w+)=", call["keywords"]))
    if _found(text) is None:
        return f"there is no `{text}`"
    return None if inside or _is_public(text) else f"`{text}` is not public"


def _is_public(path: str) -> bool:
    """Whether a whole path leads through public modules, or is a short name."""
    first, *rest = path.split(".")
    if first != "kubewright" or path in PUBLIC or rest[0] == "k8s":
        return True
    return any(
        ".".join(path.split(".")[:end]) in PUBLIC
        and path.split(".")[end] in public_names()[".".join(path.split(".")[:end])]
        for end in range(1, len(rest) + 1)
    )


def _call_problem(name: str, keywords: list[str]) -> str | None:
    target = _found(name)
    if target is None:
        return f"there is no `{name}`"
    unknown = set(keywords) - _keywords(target)
    return f"`{name}` takes no {', '.join(sorted(unknown))}" if unknown else None


def _keywords(target: Any) -> set[str]:
    if isinstance(target, type) and issubclass(target, msgspec.Struct):
        return {field.name for field in msgspec.structs.fields(target)}
    try:
        return set(inspect.signature(target).parameters)
    except ValueError:  # an exception without an __init__ of its own
        return set()


def _found(name: str) -> Any:
    """A name of the package, a member of one, or anything by its whole path."""
    first, *rest = name.split(".")
    if first != "kubewright":
        homes = [module for module in ("kubewright", "kubewright.testing") if first in public_names()[module]]
        return _member(getattr(import_module(homes[0]), first), rest) if homes else None
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            return _member(import_module(".".join(parts[:end])), parts[end:])
        except ModuleNotFoundError:
            continue
    return None


def _member(value: Any, names: list[str]) -> Any:
    for name in names:
        found = getattr(value, name, None)
        if found is None and isinstance(value, type):
            found = _attribute(value, name)
        if found is None:
            return None
        value = found
    return value


def _attribute(owner: type, name: str) -> object | None:
    """Something that only instances have: it is set where the class is written."""
    return owner if re.search(rf"\bself\.{name}\b(: .*)? = ", inspect.getsource(owner)) else None


def _command_problem(words: list[str]) -> str | None:
    command: click.Command = root
    context = click.Context(root)
    options: set[str] = set()
    for word in words:
        if word.startswith("-"):
            options.add(word.partition("=")[0])
        elif isinstance(command, click.Group):
            found = command.get_command(context, word)
            if found is None:
                return f"there is no command {word!r} in `kubewright {' '.join(words)}`"
            command = found
    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    return f"`kubewright {' '.join(words)}` has no {', '.join(sorted(options - known))}" if options - known else None


@cache
def _targets() -> set[str]:
    text = (files("kubewright.scaffold") / "templates" / "project" / "Makefile.jinja").read_text()
    return set(_TARGET.findall(text))
