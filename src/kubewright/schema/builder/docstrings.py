"""Docstrings of attributes, found in the source of their class.

Python keeps the docstring of a class but drops the string below an attribute, so it is read from the syntax tree.
Each module is parsed once, however many classes it has; classes inside functions are found as well. A class without
source (made by `type()`, typed at a prompt, shipped as bytecode alone) has no descriptions, which is no error.
`builder.builder` calls this.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping
from functools import cache

__all__ = ("attribute_docs", "class_doc")


def class_doc(cls: type) -> str | None:
    """The class's own docstring; the docstring of a base class describes the base."""
    text = cls.__dict__.get("__doc__")
    return inspect.cleandoc(text) or None if isinstance(text, str) else None


def attribute_docs(cls: type) -> dict[str, str]:
    """Attribute to the string below it, base classes included; the nearest class wins."""
    docs: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        docs.update(_own_docs(base))
    return docs


def _own_docs(cls: type) -> Mapping[str, str]:
    candidates = _module_docs(cls.__module__).get(cls.__qualname__, ())
    own = set(inspect.get_annotations(cls))
    # A name can be defined twice, as in the branches of an if; take the definition with the attributes of the class.
    for attributes, docs in candidates:
        if attributes == own:
            return docs
    return candidates[-1][1] if len(candidates) == 1 else {}


@cache
def _module_docs(module: str) -> Mapping[str, list[tuple[set[str], dict[str, str]]]]:
    """For each class of a module, by qualified name: its attributes, and the text below those that have one."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (KeyError, OSError, TypeError, SyntaxError):
        return {}
    found: dict[str, list[tuple[set[str], dict[str, str]]]] = {}
    for name, definition in _classes(tree, ""):
        found.setdefault(name, []).append((_attributes(definition), _docs(definition)))
    return found


def _classes(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.ClassDef]]:
    """Every class below a node, with its qualified name as Python writes it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield prefix + child.name, child
            yield from _classes(child, f"{prefix}{child.name}.")
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _classes(child, f"{prefix}{child.name}.<locals>.")
        else:
            yield from _classes(child, prefix)


def _attributes(definition: ast.ClassDef) -> set[str]:
    return {
        statement.target.id
        for statement in definition.body
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
    }


def _docs(definition: ast.ClassDef) -> dict[str, str]:
    docs = {}
    for statement, following in zip(definition.body, definition.body[1:], strict=False):
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        if (
            isinstance(following, ast.Expr)
            and isinstance(following.value, ast.Constant)
            and isinstance(following.value.value, str)
        ):
            docs[statement.target.id] = inspect.cleandoc(following.value.value)
    return docs
