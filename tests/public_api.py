"""The public API, one line for each name: what `import kubewright` and its packages offer, with signatures.

    python tests/public_api.py            # print it
    python tests/public_api.py --check    # compare it with docs/public-api.txt, and say what differs
    python tests/public_api.py --write    # refresh docs/public-api.txt

Public are the names in `__all__` of `kubewright`, of `kubewright.errors` and of the `__init__` of each package below
(`PUBLIC`); so are the classes of built-in kinds in `kubewright.k8s.<group>.<version>`, which are too many to list. The
script reads the source and does not import it, so that every Python prints the same. `make lint` checks it: a change of
the public API is a change of that file, which a reviewer sees.
"""

from __future__ import annotations

import ast
import difflib
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
SNAPSHOT = ROOT / "docs" / "public-api.txt"
PUBLIC = (
    "kubewright",
    *(
        f"kubewright.{name}"
        for name in (
            "api",
            "apiserver",
            "cache",
            "cel",
            "client",
            "cluster",
            "controllers",
            "errors",
            "generate",
            "k8s",
            "manager",
            "scaffold",
            "schema",
            "testing",
            "webhooks",
            "workqueue",
        )
    ),
)
Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def tree_of(module: str) -> ast.Module:
    path = SOURCE.joinpath(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text(encoding="utf-8"))


def statements_of(module: str) -> Iterator[ast.stmt]:
    """The statements at the top of a module, and those for type checkers."""
    for node in tree_of(module).body:
        yield from node.body if isinstance(node, ast.If) else (node,)


@cache
def names_of(module: str) -> tuple[str, ...]:
    """What a module has in `__all__`."""
    for node in tree_of(module).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return tuple(ast.literal_eval(node.value))
    raise ValueError(f"{module} has no __all__")


@cache
def public_names() -> dict[str, frozenset[str]]:
    """The public names by module."""
    return {module: frozenset(names_of(module)) for module in PUBLIC}


def is_public(module: str, name: str) -> bool:
    """Whether `from module import name` imports something public. A kind of Kubernetes is; so is a public package."""
    parts = module.split(".")
    if parts[:2] == ["kubewright", "k8s"] and len(parts) == 4:
        return name[0] != "_"
    return name in public_names().get(module, ()) or f"{module}.{name}" in PUBLIC


def definitions_of(module: str, name: str) -> tuple[str, list[ast.stmt]]:
    """The module in which a name is defined, and the statements that do so: several for an overloaded function."""
    found: list[ast.stmt] = []
    for node in statements_of(module):
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef() if node.name == name:
                found.append(node)
            case ast.Assign(targets=[ast.Name(id=target)]) | ast.AnnAssign(target=ast.Name(id=target)) if (
                target == name
            ):
                found.append(node)
            case ast.ImportFrom(module=str(source)):
                for alias in node.names:
                    if (alias.asname or alias.name) == name:
                        return definitions_of(source, alias.name) if source.startswith("kubewright") else (source, [])
    return module, found


def lines() -> Iterator[str]:
    """The snapshot."""
    yield from (
        "# The public API, written by `make public-api`. A name on the left is imported from the part before its last",
        "# dot; `->` names the package that defines it. See CONTRIBUTING.md.",
    )
    for module in PUBLIC:
        for name in sorted(public_names()[module]):
            public = f"{module}.{name}"
            homes = [other for other in PUBLIC[1:] if other != module and name in public_names()[other]]
            place, found = definitions_of(module, name)
            same = [home for home in homes if definitions_of(home, name) == (place, found)]
            if name == "__version__":
                yield public
            elif module == "kubewright" and same:
                yield f"{public} -> {same[0]}.{name}"
            elif not found:
                yield f"{public} = {place}.{name}"
            else:
                yield from described(public, found)


def described(public: str, found: list[ast.stmt]) -> Iterator[str]:
    overloads = [node for node in found if isinstance(node, Function) and "overload" in decorators_of(node)]
    for node in overloads or found:
        match node:
            case ast.ClassDef():
                yield from class_lines(public, node)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield f"{prefix_of(node)}{public}{signature_of(node)}"
            case ast.AnnAssign():
                yield f"{public}: {ast.unparse(node.annotation)}"
            case ast.Assign(value=ast.Call(func=function)):
                yield f"{public} = {ast.unparse(function)}(...)"
            case ast.Assign():
                yield f"{public} = {ast.unparse(node.value)}"


def class_lines(public: str, node: ast.ClassDef) -> Iterator[str]:
    bases = ", ".join([ast.unparse(base) for base in node.bases] + [ast.unparse(word) for word in node.keywords])
    yield f"class {public}({bases})" if bases else f"class {public}"
    for inner in node.body:
        match inner:
            case ast.FunctionDef() | ast.AsyncFunctionDef() if inner.name == "__init__":
                yield f"{public}{signature_of(inner, method=True)}"
                yield from (f"{public}.{line}" for line in attributes_of(inner))
            case ast.FunctionDef() | ast.AsyncFunctionDef() if not inner.name.startswith("_"):
                if "property" in decorators_of(inner):
                    returned = ast.unparse(inner.returns) if inner.returns else ""
                    yield f"{public}.{inner.name}: {returned}"
                elif not any(word.endswith(".setter") for word in decorators_of(inner)):
                    method = "staticmethod" not in decorators_of(inner)
                    yield f"{prefix_of(inner)}{public}.{inner.name}{signature_of(inner, method=method)}"
            case ast.AnnAssign(target=ast.Name(id=name)) if not name.startswith("_"):
                default = f" = {ast.unparse(inner.value)}" if inner.value is not None else ""
                yield f"{public}.{name}: {ast.unparse(inner.annotation)}{default}"
            case ast.Assign(targets=[ast.Name(id=name)]) if not name.startswith("_"):
                yield f"{public}.{name} = {ast.unparse(inner.value)}"


def attributes_of(init: Function) -> Iterator[str]:
    """The public attributes that a constructor sets."""
    for node in ast.walk(init):
        match node:
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)]) if not name.startswith("_"):
                yield name
            case ast.AnnAssign(target=ast.Attribute(value=ast.Name(id="self"), attr=name)) if not name.startswith("_"):
                yield f"{name}: {ast.unparse(node.annotation)}"


def prefix_of(node: Function) -> str:
    return "async " if isinstance(node, ast.AsyncFunctionDef) else ""


def decorators_of(node: Function) -> list[str]:
    return [ast.unparse(decorator) for decorator in node.decorator_list]


def signature_of(node: Function, *, method: bool = False) -> str:
    arguments = ast.unparse(node.args)
    if method:
        arguments = arguments.partition(",")[2].strip().removeprefix("/, ")
    returned = ast.unparse(node.returns) if node.returns is not None and node.name != "__init__" else ""
    return f"({arguments}) -> {returned}" if returned else f"({arguments})"


def main(arguments: list[str]) -> int:
    text = "\n".join(lines()) + "\n"
    if arguments == ["--write"]:
        SNAPSHOT.write_text(text, encoding="utf-8")
    elif arguments == ["--check"]:
        kept = SNAPSHOT.read_text(encoding="utf-8") if SNAPSHOT.exists() else ""
        changes = list(difflib.unified_diff(kept.splitlines(), text.splitlines(), "committed", "now", lineterm="", n=0))
        print(*changes, sep="\n") if changes else None
        if changes:
            print("The public API has changed. If that is meant, run `make public-api` and commit docs/public-api.txt.")
        return bool(changes)
    else:
        print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
