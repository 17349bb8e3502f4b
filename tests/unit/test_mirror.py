"""Every test module says what it covers: by its place in tests/unit, which mirrors src, or by a line `Covers:`.

Covers: tests
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
SOURCE = ROOT / "src"


def exists(name: str) -> bool:
    """Whether there is a module or a package of this dotted name, in src or among the tests."""
    places = [folder.joinpath(*name.split(".")) for folder in (SOURCE, ROOT)]
    return any(place.is_dir() or place.with_suffix(".py").is_file() for place in places)


def mirrored(module: Path) -> str:
    """The module of src that a file of tests/unit is about by its name: a/test_b.py is about kubewright.a.b."""
    return ".".join(("kubewright", *module.parent.parts[1:], module.stem.removeprefix("test_")))


def covered(file: Path) -> list[str]:
    """What the docstring of a file says it covers."""
    docstring = ast.get_docstring(ast.parse(file.read_text())) or ""
    lines = re.findall(r"^Covers: (.+)$", docstring, re.MULTILINE)
    return [name for line in lines for name in line.split(", ")]


def statements(module: Path) -> Iterator[list[str]]:
    """What a test module, or else the conftest of its folder, says it covers."""
    yield covered(TESTS / module)
    conftest = TESTS / module.parent / "conftest.py"
    yield covered(conftest) if conftest.exists() else []


def problem_with(module: Path) -> str:
    """What is wrong with what a test module says it covers; nothing if it is mirrored or named well."""
    if module.parts[0] == "unit" and exists(mirrored(module)):
        return ""
    said = next(filter(None, statements(module)), [])
    if not said:
        return "has no line `Covers: kubewright.a.b` in its docstring, and its name is that of no module of src"
    missing = [name for name in said if not exists(name)]
    return f"covers what is not there: {', '.join(missing)}" if missing else ""


def test_every_test_module_says_what_it_covers() -> None:
    modules = [path.relative_to(TESTS) for path in sorted(TESTS.rglob("test_*.py"))]
    problems = [f"tests/{module} {problem}" for module in modules if (problem := problem_with(module))]

    assert not problems, "\n".join(problems)
