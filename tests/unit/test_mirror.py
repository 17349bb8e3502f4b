"""Every test module says what it covers: by its place in tests/unit, which mirrors src, or by a line `Covers:`.

Covers: tests
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
SOURCE = ROOT / "src"
MODULES = sorted(path.relative_to(TESTS).as_posix() for path in TESTS.rglob("test_*.py"))


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


@pytest.mark.parametrize("name", MODULES)
def test_a_test_module_says_what_it_covers(name: str) -> None:
    module = Path(name)
    if module.parts[0] == "unit" and exists(mirrored(module)):
        return
    said = next(filter(None, statements(module)), [])

    assert said, f"say `Covers: kubewright.a.b` in the docstring of tests/{name}, or name it for a module of src"
    assert [each for each in said if not exists(each)] == [], "there are no such modules"
