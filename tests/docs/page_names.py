"""Names in backticks on a page, looked up in the code.

    `cache.reflector`   `Context.apply`   `@controller(..., finalizer=)`   `resource_version`

`unknown_names_on` finds those that lead nowhere. A page may name what a docstring may (`docstring_names`), what its own
blocks of code say, and what page_examples.txt lists. A name of the package must have the member that the page names
(`names`), and a function or class must take the keywords of a call.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from tests.docs.docstring_names import SOURCE, is_known, is_of_go, packages
from tests.docs.names import problem_with
from tests.public_api import public_names

__all__ = ("EXAMPLES", "unknown_names_on")

EXAMPLES: Final = frozenset((Path(__file__).parent / "page_examples.txt").read_text().split())
"""Names that stand for something of a user's, of Kubernetes or of another program."""
_FENCED: Final = re.compile(r"^( *)(```+).*?^\1\2$", re.MULTILINE | re.DOTALL)
_CODE: Final = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_NAME: Final = re.compile(r"[A-Za-z_]\w*(?:\.\w+)*")
_WORD: Final = re.compile(r"[A-Za-z_]\w*")
_INSTANCES: Final = {"ctx": "Context", "client": "Client", "manager": "Manager", "env": "Environment"}
"""What pages call an object of a class."""
_OPEN_KEYWORD: Final = re.compile(r"=(?=[,)])")


def unknown_names_on(text: str) -> Iterator[str]:
    """Each name on a page that leads nowhere, and each call with a keyword that nothing takes."""
    here = {word for block in _FENCED.finditer(text) for word in _WORD.findall(block[0])}
    for code in _CODE.findall(_FENCED.sub("", text)):
        name = code.removeprefix("@").removesuffix("()")
        if name in EXAMPLES:
            continue
        if _NAME.fullmatch(name):
            if not _exists(name, here):
                yield code
        elif not all(_takes(call, here) for call in _calls(name)):
            yield code


def _exists(name: str, here: set[str]) -> bool:
    first, *rest = name.split(".")
    if rest and first in _INSTANCES and problem_with(".".join([_INSTANCES[first], *rest])) is None:
        return True
    if rest and _is_public(first):
        return problem_with(name) is None
    if rest and (first == "kubewright" or first in packages()):
        return is_known(name, here, ())
    return is_of_go(name) or name in _parameters_of_all() or is_known(name, here, ())


def _calls(code: str) -> Iterator[ast.Call]:
    """The calls in a piece of Python; `Field(ge=, le=)` leaves the values out. Nothing, if it is no Python."""
    try:
        tree = ast.parse(_OPEN_KEYWORD.sub("=...", code))
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield node


def _takes(call: ast.Call, here: set[str]) -> bool:
    """Whether the function of a call exists and has the keywords of the call."""
    name = ast.unparse(call.func)
    keywords = [keyword.arg for keyword in call.keywords if keyword.arg]
    if not _NAME.fullmatch(name):
        return True
    first, dot, rest = name.partition(".")
    name = f"{_INSTANCES.get(first, first)}{dot}{rest}" if dot else name
    if _is_public(name.partition(".")[0]):
        return problem_with(f"{name}({', '.join(f'{keyword}=' for keyword in keywords)})") is None
    known = _parameters().get(name.rpartition(".")[2])
    return _exists(name, here) and (known is None or known.issuperset(keywords))


def _is_public(name: str) -> bool:
    return any(name in public_names()[module] for module in ("kubewright", "kubewright.testing"))


@cache
def _parameters() -> dict[str, set[str]]:
    """What every function or class of Kubewright takes, by its name: arguments, and the fields of a class."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in (SOURCE / "kubewright").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())) if "k8s" not in path.parts else ():
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                found[node.name] |= {
                    arg.arg for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
                }
            elif isinstance(node, ast.ClassDef):
                fields = (inner.target for inner in node.body if isinstance(inner, ast.AnnAssign))
                found[node.name] |= {field.id for field in fields if isinstance(field, ast.Name)}
                found[node.name] |= found["__init__"]
    return found


@cache
def _parameters_of_all() -> frozenset[str]:
    return frozenset().union(*_parameters().values())
