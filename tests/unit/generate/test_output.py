"""Generated files against a folder."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from kubewright.errors import ConfigError
from kubewright.generate.output import differences, write_files


def test_only_what_differs_is_written(tmp_path: Path) -> None:
    files = {"a.py": b"one\n", "deeper/b.py": b"two\n"}

    first = write_files(tmp_path, files)
    second = write_files(tmp_path, files | {"a.py": b"changed\n"})

    assert first == ["a.py", "deeper/b.py"]
    assert second == ["a.py"]
    assert (tmp_path / "a.py").read_bytes() == b"changed\n"


def test_differences_are_told_with_a_diff(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.py": b"one\n", "b.py": b"two\n"})

    told = differences(tmp_path, {"a.py": b"one\n", "b.py": b"three\n", "c.py": b""})

    assert len(told) == 2
    assert "-two\n+three" in told[0]
    assert told[1].endswith("c.py is missing")


def test_a_long_diff_is_cut(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.py": b""})

    (told,) = differences(tmp_path, {"a.py": b"line\n" * 1000})

    assert told.endswith("lines more")
    assert len(told.splitlines()) == 201


def test_the_same_content_packed_differently_is_the_same(tmp_path: Path) -> None:
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(b"x" * 1000, compresslevel=1, mtime=5))

    assert differences(tmp_path, {"a.json.gz": gzip.compress(b"x" * 1000, mtime=0)}) == []
    assert len(differences(tmp_path, {"a.json.gz": gzip.compress(b"y", mtime=0)})) == 1


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")

    with pytest.raises(ConfigError, match=r"cannot be (written|read)"):
        write_files(tmp_path / "file", {"a/b.py": b""})
