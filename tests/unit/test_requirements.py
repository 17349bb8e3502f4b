"""What `make` installs is locked by hash, for every Python and platform, and the lock names no package index.

Covers: kubewright
"""

from __future__ import annotations

import re
import tomllib

from tests.requirements import ROOT, name_of, requirements

LOCK = (ROOT / "constraints.txt").read_text()
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())
ENTRY = re.compile(
    r"^([A-Za-z0-9._-]+)==[A-Za-z0-9.!+]+(?: ; [^\\\n]+)?(?: \\\n    --hash=sha256:[0-9a-f]{64})+$", re.MULTILINE
)


def test_every_pin_has_hashes_and_nothing_else_is_in_the_file() -> None:
    rest = ENTRY.sub("", LOCK)

    assert [line for line in rest.splitlines() if line and not line.startswith("#")] == []
    assert "://" not in LOCK


def test_everything_that_is_asked_for_is_pinned() -> None:
    locked = {name_of(found) for found in ENTRY.findall(LOCK)}
    groups = [one for group in SETTINGS["dependency-groups"].values() for one in group]

    assert {name_of(one) for one in (*requirements(SETTINGS), *groups)} - locked == set()
    assert {"pip", "hatchling", "editables", "uv"} <= locked  # what installs, builds and locks the rest


def test_nothing_is_installed_that_is_not_locked() -> None:
    commands = [line for line in (ROOT / "Makefile").read_text().splitlines() if re.search(r"\bpip\b.* install", line)]

    assert len(commands) > 3
    assert [line for line in commands if "--require-hashes" not in line and "--no-deps" not in line] == []


def test_the_extras_of_a_project_are_resolved_to_what_they_need() -> None:
    found = requirements(
        {
            "project": {
                "name": "x",
                "dependencies": ["a>=1"],
                "optional-dependencies": {"one": ["b[c]>=2; sys_platform != 'win32'"], "all": ["x[one]"]},
            }
        }
    )

    assert found == ["a>=1", "b[c]>=2; sys_platform != 'win32'"]
