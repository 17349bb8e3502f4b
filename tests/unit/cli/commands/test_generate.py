"""`kubewright generate models` from the outside."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kubewright.cli.commands.generate import generate

MANIFESTS = Path(__file__).parents[2] / "generate" / "models" / "manifests"


def _run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(generate, ["models", *map(str, arguments)])


def test_classes_are_written_once_and_then_found_up_to_date(tmp_path: Path) -> None:
    folder = tmp_path / "models"

    first = _run("--crd", MANIFESTS, "--output", folder)
    second = _run("--crd", MANIFESTS, "--output", folder)
    check = _run("--crd", MANIFESTS, "--output", folder, "--check")

    assert first.exit_code == 0
    assert "6 files, 6 of them changed" in first.stderr
    assert "6 files, 0 of them changed" in second.stderr
    assert check.exit_code == 0
    assert check.output == ""


def test_a_stale_file_fails_the_check_with_a_diff_and_stays_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "models"
    _run("--crd", MANIFESTS, "--output", folder)
    file = folder / "trust" / "v1.py"
    file.write_text(file.read_text().replace("is_ca", "is_not_ca"))

    check = _run("--crd", MANIFESTS, "--output", folder, "--check")

    assert check.exit_code == 1
    assert "+    is_ca: bool | None" in check.stdout
    assert "1 files in" in check.stderr
    assert "is_not_ca" in file.read_text()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "one of --crd, --openapi and --cluster"),
        (("--cluster", "--crd", MANIFESTS), "one of --crd, --openapi and --cluster"),
        (("--crd", MANIFESTS, "--context", "x"), "--context goes with --cluster"),
        (("--crd", MANIFESTS, "--package", "not-a-name"), "'not-a-name' is no name of a Python package"),
    ],
)
def test_a_wrong_call_is_explained_and_writes_nothing(
    tmp_path: Path, arguments: tuple[str | Path, ...], sentence: str
) -> None:
    result = _run("--output", tmp_path / "models", *arguments)

    assert result.exit_code == 2
    assert sentence in " ".join(result.stderr.split())
    assert not (tmp_path / "models").exists()
