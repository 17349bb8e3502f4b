"""Names in backticks in docstrings, looked up in the code.

A docstring says `reflector`, `Cache.informer` or `apiserver.storage`, and whoever reads it goes there. `unknown_names`
finds those that lead nowhere: a module that was moved, a class that has another name now. A name is known if it is one
of

- a module, room or package of Kubewright, or a name defined in one of them;
- a name in the code of the same file: an argument, an attribute, a key, a text;
- a kind of Kubernetes or a field of one, a name of Python's own, a function of Go that the text follows (`isPretty`, or
  `ClaimObject` where the text names a `.go` file).

What is no Python name (`kubectl get`, `1 Gi`, `spec.replicas > 3`) is nobody's business here.
"""

from __future__ import annotations

import ast
import builtins
import keyword
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from kubewright.k8s.documents import group_versions, openapi_document

__all__ = ("EXAMPLES", "SOURCE", "is_known", "is_of_go", "names_under", "unknown_names", "unknown_names_of")

SOURCE: Final = Path(__file__).parents[2] / "src"
DATA: Final = Path(__file__).parent
_NAME: Final = re.compile(r"(?<!`)`@?([A-Za-z_][\w.]*)(?:\(\))?`(?!`)")
_WORD: Final = re.compile(r"[A-Za-z_]\w*")
_GO: Final = re.compile(r"(?:\w+\.)*[a-z]+[A-Z]\w*|(?:\w+\.)+[A-Z]\w*|Convert_\w+")
"""Functions and methods of Go, which our sources name as what they follow; no name of ours is spelled like this."""
EXAMPLES: Final = frozenset((DATA / "docstring_examples.txt").read_text().split())
"""Names that stand for something of a user's, or of another program."""
_LIBRARIES: Final = ("aiohttp", "click", "cryptography", "httptools", "msgspec", "prometheus_client", "uvloop", "yaml")


def unknown_names(path: Path) -> Iterator[tuple[int, str]]:
    """Line and text of each name in a docstring of a module of Kubewright that leads nowhere."""
    return unknown_names_of(path, rooms=path.relative_to(SOURCE / "kubewright").parts[:-1])


def unknown_names_of(path: Path, *, rooms: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """The same of any file, as if it were in the given rooms."""
    text = path.read_text()
    tree = ast.parse(text)
    docstrings = list(_docstrings(tree))
    here = set(_WORD.findall(_without(text, docstrings)))
    for node in docstrings:
        follows_go = ".go" in str(node.value)
        for line, content in enumerate(str(node.value).splitlines(), node.lineno):
            for match in _NAME.finditer(content):
                follows = is_of_go(match[1]) or (follows_go and match[1][0].isupper())
                if not follows and not is_known(match[1], here, rooms):
                    yield line, match[1]


def _docstrings(tree: ast.Module) -> Iterator[ast.Constant]:
    """Texts that stand alone: the docstrings of modules, classes, functions and attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value


def _without(text: str, docstrings: list[ast.Constant]) -> str:
    lines = text.splitlines()
    for node in docstrings:
        end = node.end_lineno or node.lineno
        lines[node.lineno - 1 : end] = [""] * (end - node.lineno + 1)
    return "\n".join(lines)


def is_of_go(name: str) -> bool:
    """Whether a name is spelled as only a function or method of Go is."""
    return _GO.fullmatch(name) is not None


def is_known(name: str, here: set[str], rooms: tuple[str, ...]) -> bool:
    if name in EXAMPLES:
        return True
    parts = name.split(".")
    if len(parts) > 1 and (parts[0] in _packages() or parts[0] == "kubewright"):
        rest = parts[1:] if parts[0] == "kubewright" else parts
        # `controllers.crds` is said in the API server of its own room, not of the package.
        return any(_leads_somewhere([*rooms[:end], *rest]) for end in range(len(rooms) + 1))
    return all(part in here or part in _names() or part in _foreign() for part in parts)


def _leads_somewhere(parts: list[str]) -> bool:
    """Whether a dotted name is a module, or something defined in one: `cache.store.Store.put`."""
    for end in range(len(parts), -1, -1):
        place = SOURCE.joinpath("kubewright", *parts[:end])
        file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        if file.exists():
            words = set(_WORD.findall(file.read_text()))
            return all(part in words for part in parts[end:])
    return False


@cache
def _packages() -> frozenset[str]:
    return frozenset(path.name for path in (SOURCE / "kubewright").iterdir() if (path / "__init__.py").exists())


def _names() -> frozenset[str]:
    return names_under(SOURCE / "kubewright")


@cache
def names_under(root: Path) -> frozenset[str]:
    """Every module of a folder, and every name that one defines at its top or in a class."""
    found: set[str] = set()
    for path in root.rglob("*.py"):
        folders = path.relative_to(root.parent).parts[:-1]
        if "k8s" in folders:
            continue
        found |= {path.stem, *folders}
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                found.add(node.name)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                found.add(node.target.id)
    return frozenset(found)


@cache
def _foreign() -> frozenset[str]:
    """Kinds and fields of Kubernetes, names of Python, and libraries."""
    words = {*keyword.kwlist, *dir(builtins), *sys.stdlib_module_names, *_LIBRARIES}
    for group_version in group_versions():
        for name, schema in openapi_document(group_version)["components"]["schemas"].items():
            words.add(name.rpartition(".")[2])
            words |= schema.get("properties", {}).keys()
    return frozenset(words)
