"""A run that is only slow is green: tests wait with limits that know the machine, and none compiles or downloads.

Covers: tests
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# A limit of the machine's own time that is the point of the case, or of a program that has no Kubewright.
RIGID = {
    "tests/clients/programs/asyncio_client.py",
    "tests/runtime/test_write_loops.py",
    "tests/unit/client/transport/test_httptools_transport.py",
    "tests/unit/test_waits_of_tests.py",
}
FILES = [
    path
    for folder in (ROOT / "tests", *sorted((ROOT / "operators").glob("*/tests")))
    for path in sorted(folder.rglob("*.py"))
    if "harness" not in path.parts  # no tests, but measurements
]


def places(pattern: str) -> list[str]:
    """The lines of tests that match."""
    found = []
    for path in FILES:
        name = path.relative_to(ROOT).as_posix()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if name not in RIGID and re.search(pattern, line):
                found.append(f"{name}:{number}")
    return found


def test_tests_wait_with_limits_that_know_the_machine() -> None:
    assert places(r"asyncio\.(timeout|wait_for)\(") == [], "use kubewright.testing.time_limit"


def test_no_test_compiles_or_downloads() -> None:
    compiling = places(
        r"from bench\.peers\.commands import .*\b(prepare|go_binary)\b|\bgo build\b|finder import .*\bfind\b"
    )
    assert compiling == [], "build it in `make binaries`, and skip the test where that was not run"
    installing = places(r"pip (install|download|wheel)")
    named = {place.partition(":")[0] for place in installing}
    assert named <= {  # the first installs from what `make wheels` has downloaded, the others show the words
        "tests/scaffold/test_fresh_environment.py",
        "tests/unit/_base/test_certificate_authority.py",
        "tests/unit/_base/test_extras.py",
        "tests/unit/_base/regexp/test_regexp.py",
        "tests/unit/scaffold/test_layout.py",
    }


@pytest.mark.parametrize(
    "file",
    [
        "pyproject.toml",
        *(
            f"operators/{f.name}/pyproject.toml"
            for f in sorted((ROOT / "operators").iterdir())
            if (f / "pyproject.toml").is_file()
        ),
    ],
)
def test_the_limits_of_whole_tests_know_the_machine_too(file: str) -> None:
    assert "-p kubewright.testing.timeouts" in (ROOT / file).read_text(encoding="utf-8")


def test_what_tests_need_is_got_ready_before_them() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")

    assert re.search(r"^unit: .*\bbinaries wheels\b", makefile, re.MULTILINE)
    assert re.search(r"^binaries:.*\n.*\n.*bench\.peers go$", makefile, re.MULTILINE)
