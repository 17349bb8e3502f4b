"""The field tables of protobuf: complete, and what their sources say."""

from __future__ import annotations

import gzip
import os
from importlib import resources
from pathlib import Path

import pytest

from kubewright.apiserver.wire.protobuf.messages import message_of_kind
from kubewright.errors import ConfigError
from kubewright.generate.models.protobuf import protobuf_files
from kubewright.k8s.index import MODULES, SERVER_VERSION

VERSION = SERVER_VERSION.replace("v1.", "v0.", 1)
MODULE_CACHE = Path(os.environ.get("GOMODCACHE", Path.home() / "go/pkg/mod")) / "k8s.io"
FOLDERS = [
    MODULE_CACHE / f"{name}@{VERSION}" for name in ("api", "apimachinery", "apiextensions-apiserver", "kube-aggregator")
]


@pytest.mark.parametrize("group_version", MODULES)
def test_every_built_in_kind_and_its_list_has_a_message(group_version: str) -> None:
    kinds = MODULES[group_version][1]

    missing = [kind for kind in kinds if message_of_kind(group_version, kind) is None]

    assert missing == []


def test_every_message_compiles() -> None:
    seen = 0
    for group_version, (_, kinds) in MODULES.items():
        waiting = [message for kind in kinds if (message := message_of_kind(group_version, kind))]
        known = set(waiting)
        while waiting:
            message = waiting.pop()
            assert message.encoders is not None
            assert len(message.go_names) == len(message.fields)
            inside = {field.inside for field in message.fields if field.inside} - known
            known |= inside
            waiting.extend(inside)
        seen += len(known)

    assert seen > 500


def test_a_folder_without_the_modules_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="name all four Go modules"):
        protobuf_files([tmp_path])


@pytest.mark.slow
@pytest.mark.skipif(not all(map(Path.is_dir, FOLDERS)), reason="the Go modules are not downloaded")
def test_the_stored_tables_agree_with_the_sources() -> None:
    stored = resources.files("kubewright.k8s") / "protobuf"

    files = protobuf_files(FOLDERS)

    assert sorted(files) == sorted(file.name for file in stored.iterdir())
    for name, content in files.items():
        assert gzip.decompress((stored / name).read_bytes()) == gzip.decompress(content), name
