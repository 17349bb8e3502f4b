"""The rooms of the house: `tests/rooms.py` finds circles and full rooms, and there are none.

Covers: tests.rooms
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.rooms import CONTRACTS, MOST_MODULES, SOURCE, problems_of


def write(source: Path, **modules: str) -> None:
    for name, text in modules.items():
        file = source.joinpath(*name.split("__")).with_suffix(".py")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    for folder in {source / "house", *(file.parent for file in source.rglob("*.py"))}:
        (folder / "__init__.py").touch()


def test_no_room_of_the_house_is_full_or_in_a_circle(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(problems_of(SOURCE, "kubewright", CONTRACTS.read_text())) == []
    assert "kubewright.apiserver.verbs" in capsys.readouterr().out


def test_a_circle_of_rooms_is_named(tmp_path: Path) -> None:
    write(tmp_path, house__attic__a="from house.cellar.b import x\n", house__cellar__b="import house.attic.a\n")

    assert list(problems_of(tmp_path, "house")) == ["house: attic -> cellar -> attic is a circle"]


def test_a_full_room_is_named(tmp_path: Path) -> None:
    write(tmp_path, **{f"house__m{number}": "" for number in range(MOST_MODULES + 1)})

    (problem,) = problems_of(tmp_path, "house")

    assert problem.startswith("house holds 23 modules")


def test_a_folder_with_rooms_needs_a_contract(tmp_path: Path) -> None:
    write(tmp_path, house__attic__a="", house__attic__box__b="")

    problems = problems_of(tmp_path, "house", "containers =\n    house\n")

    assert [problem.partition(";")[0] for problem in problems] == ["house.attic has rooms and no contract"]
