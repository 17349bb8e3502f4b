"""The rooms of the house: every folder of `src/kubewright` with its number of modules, and no cycle between them.

    python tests/rooms.py

Prints one line for each folder and ends with 1 where rooms import each other in a circle, or where one is too full.
`.importlinter` fixes the order of the rooms; this finds what no contract names, such as a new folder. Needs no other
package. `tests/unit/test_rooms.py` runs it.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"
CONTRACTS = Path(__file__).parents[1] / ".importlinter"
MOST_MODULES = 22
GENERATED = "k8s"
"""One folder for each API group of Kubernetes, written by `kubewright generate models`."""


def modules_of(source: Path) -> dict[str, Path]:
    """Every module by its dotted name."""
    found = {}
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports_of(path: Path, modules: Mapping[str, Path]) -> set[str]:
    """The modules that one imports, for type checking only as well."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found & modules.keys()


def room_imports(folder: str, imports: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """The rooms in a folder, and which of the others each of them imports. A module beside the rooms is one, too."""

    def room(module: str) -> str:
        return module.removeprefix(f"{folder}.").partition(".")[0] if module.startswith(f"{folder}.") else ""

    found: dict[str, set[str]] = {}
    for module, targets in imports.items():
        if here := room(module):
            found.setdefault(here, set()).update(
                there for target in targets if (there := room(target)) not in ("", here)
            )
    return found


def circle_through(room: str, graph: Mapping[str, set[str]]) -> list[str]:
    """The shortest way from a room back to itself; empty if there is none."""
    trails, seen = [[room]], set[str]()
    for trail in trails:
        for target in sorted(graph.get(trail[-1], ())):
            if target == room:
                return [*trail, room]
            if target not in seen:
                seen.add(target)
                trails.append([*trail, target])
    return []


def problems_of(source: Path, package: str, contracts: str | None = None) -> Iterator[str]:
    """What is wrong with the rooms of a package; prints the rooms on the way.

    `contracts` is the text in which each folder with rooms has to be named.
    """
    modules = modules_of(source)
    imports = {name: imports_of(path, modules) for name, path in modules.items()}
    folders = sorted({name for name, path in modules.items() if path.name == "__init__.py"})
    for folder in folders:
        if folder.startswith(f"{package}.{GENERATED}."):
            continue
        inside = [name for name in modules if name.rpartition(".")[0] == folder and name not in folders]
        rooms = [name for name in folders if name.rpartition(".")[0] == folder]
        print(f"{len(inside):4} modules, {len(rooms):2} rooms  {folder}")
        if len(inside) > MOST_MODULES:
            yield f"{folder} holds {len(inside)} modules; {MOST_MODULES} are the most: is there a room missing?"
        # Modules of one folder may know each other in circles, for their types; rooms may not.
        graph = room_imports(folder, imports)
        circles = (circle_through(room.rpartition(".")[2], graph) for room in rooms)
        if circle := next(filter(None, circles), None):
            yield f"{folder}: {' -> '.join(circle)} is a circle"
        if rooms and contracts is not None and f"{folder}\n" not in contracts and f"{folder}." not in contracts:
            yield f"{folder} has rooms and no contract; say in {CONTRACTS.name} which may import which"


def main() -> int:
    """Print the rooms; say what is wrong with them."""
    problems = list(problems_of(SOURCE, "kubewright", CONTRACTS.read_text()))
    print(*problems, sep="\n", file=sys.stderr)
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
