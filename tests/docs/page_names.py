"""Names in backticks on a page, looked up in the code.

    `cache.reflector`   `Context.apply`   `@controller(..., finalizer=)`   `resource_version`   `errors.py`

`unknown_names_on` finds those that lead nowhere. A page may name what a docstring may (`docstring_names`), what its own
blocks of code say, a file, a metric or a reason of an event, and what page_examples.txt lists. A public class must have
the member that the page names (`names`), and whatever is called must take the keywords of the call. In the tables of a
page that translates from another framework, only the last column has names of ours.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

from tests.docs.docstring_names import SOURCE, is_known, is_of_go
from tests.docs.names import problem_with
from tests.public_api import public_names

__all__ = ("EXAMPLES", "unknown_names_on")

ROOT: Final = SOURCE.parent
EXAMPLES: Final = frozenset((Path(__file__).parent / "page_examples.txt").read_text().split())
"""Names that stand for something of a user's, of Kubernetes or of another program."""
_INSTANCES: Final = {
    "ctx.client.": "kubewright.cache.CachedClient.",
    "ctx.": "kubewright.Context.",
    "client.": "kubewright.Client.",
    "manager.": "kubewright.Manager.",
}
"""What pages call an object of a class. Two are packages too: `client.transport` is a module."""
_FENCED: Final = re.compile(r"^( *)(```+).*?^\1\2$", re.MULTILINE | re.DOTALL)
_FIRST_COLUMNS: Final = re.compile(r"^\|.*(?<!\\)\|(?=.*\|$)", re.MULTILINE)
_CODE: Final = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_NAME: Final = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_API_VERSION: Final = re.compile(r"v[0-9]+(?:(?:alpha|beta)[0-9]+)?")
_KEYWORD: Final = re.compile(r"([a-z_]+)=(?!=)")
_TELLING: Final = re.compile(r"[a-z]+(?:_[a-z]+){2,}|(?:[A-Z][a-z]+){2,}|KUBEWRIGHT_[A-Z_]+")
"""Texts in the code that can only be a metric, a variable of the environment, or a reason or value of Kubernetes."""


def unknown_names_on(text: str, *, translates: bool = False, known: frozenset[str] = frozenset()) -> Iterator[str]:
    """Each name on a page that leads nowhere, and each call with a keyword that nothing takes."""
    here = {*known, *(word for block in _FENCED.finditer(text) for word in re.findall(r"\w+", block[0]))}
    prose = _FENCED.sub("", text)
    for code in _CODE.findall(_FIRST_COLUMNS.sub("", prose) if translates else prose):
        name = code.removeprefix("@").removesuffix("()")
        if keyword := _KEYWORD.match(name):
            is_right = keyword[1] in _parameters()
        elif _NAME.fullmatch(name):
            is_right = _exists(name, here)
        else:
            is_right = all(_takes(call, here) for call in _calls(name))
        if not is_right and name not in EXAMPLES:
            yield code


def _exists(name: str, here: set[str]) -> bool:
    first, *rest = name.split(".")
    if _API_VERSION.fullmatch(name):
        return True
    if rest:
        if name in _files() or problem_with(_of_class(name), inside=True) is None:
            return True
        if homes := _rooms().get(first):
            return any(problem_with(f"{home}{name}", inside=True) is None for home in homes)
        if first in ("ctx", "kubewright") or _is_public(first):
            return False
    if name in _parameters() or name in _texts() or name.removeprefix("KUBEWRIGHT_").lower() in _parameters():
        return True
    return is_of_go(name) or is_known(name, here, ()) or any(name in names for names in public_names().values())


def _calls(code: str) -> Iterator[ast.Call]:
    """The calls in a piece of Python; `Field(ge=, le=)` leaves the values out. Nothing, if it is no Python."""
    with suppress(SyntaxError):
        tree = ast.parse(re.sub(r"=(?=[,)])", "=...", code))
        yield from (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def _takes(call: ast.Call, here: set[str]) -> bool:
    """Whether the function of a call exists and has the keywords of the call."""
    name = ast.unparse(call.func)
    keywords = [keyword.arg for keyword in call.keywords if keyword.arg]
    full = _of_class(name)
    if not _NAME.fullmatch(name) or name in EXAMPLES:
        return True
    if full != name or _is_public(name.partition(".")[0]):
        return problem_with(f"{full}({', '.join(f'{keyword}=' for keyword in keywords)})", inside=True) is None
    return _exists(name, here) and _keywords().get(name.rpartition(".")[2], set(keywords)).issuperset(keywords)


def _of_class(name: str) -> str:
    """A member of an object as a member of its class: `ctx.apply` is `kubewright.Context.apply`."""
    return next((name.replace(short, full, 1) for short, full in _INSTANCES.items() if name.startswith(short)), name)


def _is_public(name: str) -> bool:
    return any(name in public_names()[module] for module in ("kubewright", "kubewright.testing"))


@cache
def _nodes() -> tuple[ast.AST, ...]:
    paths = (path for path in (SOURCE / "kubewright").rglob("*.py") if "k8s" not in path.relative_to(SOURCE).parts)
    return tuple(node for path in paths for node in ast.walk(ast.parse(path.read_text())))


@cache
def _keywords() -> dict[str, set[str]]:
    """What every function or class of Kubewright takes, by its name: arguments, and the fields of a class."""
    found: dict[str, set[str]] = defaultdict(set)
    for node in _nodes():
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            for inner in ast.walk(node):
                if isinstance(inner, ast.arg):
                    found[node.name].add(inner.arg)
                elif isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name):
                    found[node.name].add(inner.target.id)
    return found


@cache
def _parameters() -> frozenset[str]:
    return frozenset(word for words in _keywords().values() for word in words)


@cache
def _texts() -> frozenset[str]:
    texts = (str(node.value) for node in _nodes() if isinstance(node, ast.Constant))
    return frozenset(text for text in texts if _TELLING.fullmatch(text))


@cache
def _rooms() -> dict[str, list[str]]:
    """What stands before the name of each package or room in its whole path: `kubewright.cluster.` before `planes`."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in (SOURCE / "kubewright").glob("[!k]*/**/__init__.py"):  # not k8s, which is generated
        *before, name = path.relative_to(SOURCE).parts[:-1]
        found[name].append("".join(f"{part}." for part in before))
    return found


@cache
def _files() -> frozenset[str]:
    below = (path for place in ("src", "tests") for path in (ROOT / place).rglob("*.*"))
    return frozenset(path.name for path in (*ROOT.iterdir(), *below))
