"""Where the finder looks for binaries, in which order, and the error when no place has them."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

import pytest

from kubewright.cluster.binaries.checksums import GO_MODULES
from kubewright.cluster.binaries.finder import NAMES, Finder, cache_folder
from kubewright.cluster.binaries.versions import DEFAULT_VERSION
from kubewright.cluster.processes.commands import CompletedCommand
from kubewright.cluster.processes.locks import FileLock
from kubewright.errors import ClusterError
from kubewright.k8s.release import KUBERNETES_VERSION

FOLDER = f"control-plane/{KUBERNETES_VERSION}-linux-amd64"


def put(folder: Path, *names: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text(f"{name} from {folder.name}")
        (folder / name).chmod(0o755)


def no_network(url: str, into: IO[bytes], report: Callable[[int, int], None], /) -> None:
    raise ConnectionError("dl.k8s.io: Name or service not known")


@dataclass
class Commands:
    """Stands in for `go` and for `kube-apiserver --version`, and keeps what was run."""

    version: str = KUBERNETES_VERSION
    code: int = 0
    run: list[Sequence[str]] = field(default_factory=list)

    def __call__(
        self,
        command: Sequence[str],
        *,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
        on_line: Callable[[str], None] | None = None,
    ) -> CompletedCommand:
        self.run.append(command)
        if command[1:] == ["--version"]:
            return CompletedCommand(self.code, f"Kubernetes v{self.version}\n")
        if command[1:3] == ["mod", "download"]:
            source = {"GoMod": "go.mod", "Dir": "nowhere", "Sum": GO_MODULES.get(command[-1], "")}
            return CompletedCommand(self.code, json.dumps(source), "go: no such host")
        if command[1] == "build":
            output = Path(command[command.index("-o") + 1])
            if output.name in NAMES:
                put(output.parent, output.name)
            else:
                put(output, *(package.rpartition("/")[2] for package in command[8:]))
        return CompletedCommand(0, '{"Go": "1.25.0"}')

    @property
    def built(self) -> list[str]:
        return [part.rpartition("/")[2] for command in self.run if "build" in command for part in command[8:]]


def finder(
    cache: Path,
    *,
    assets: Path | None = None,
    commands: Commands | None = None,
    go: str | None = None,
) -> Finder:
    environment = {"KUBEWRIGHT_CACHE": str(cache)}
    if assets is not None:
        environment["KUBEBUILDER_ASSETS"] = str(assets)
    return Finder(
        environment=environment,
        platform=("linux", "amd64"),
        fetch=no_network,
        run=commands or Commands(),
        which=lambda name: go,
    )


def test_a_complete_assets_folder_is_used_before_the_cache(tmp_path: Path) -> None:
    put(tmp_path / "assets", *NAMES)
    put(tmp_path / FOLDER, *NAMES)

    found = finder(tmp_path, assets=tmp_path / "assets").find()

    assert found.version == KUBERNETES_VERSION
    assert found.etcd == tmp_path / "assets" / "etcd"
    assert found.kube_controller_manager == tmp_path / "assets" / "kube-controller-manager"


def test_what_envtest_lacks_is_completed_from_the_cache_of_its_own_version(tmp_path: Path) -> None:
    put(tmp_path / "assets", "etcd", "kube-apiserver", "kubectl")
    put(tmp_path / "control-plane/1.34.1-linux-amd64", *NAMES)
    commands = Commands(version="1.34.1")

    found = finder(tmp_path, assets=tmp_path / "assets", commands=commands).find()

    assert found.version == "1.34.1"
    assert found.kube_apiserver == tmp_path / "assets" / "kube-apiserver"
    assert found.kube_controller_manager.parent.name == "1.34.1-linux-amd64"


def test_assets_of_another_version_are_skipped(tmp_path: Path) -> None:
    put(tmp_path / "assets", *NAMES)
    put(tmp_path / FOLDER, *NAMES)

    found = finder(tmp_path, assets=tmp_path / "assets", commands=Commands(version="1.31.0")).find(DEFAULT_VERSION)

    assert found.etcd == tmp_path / FOLDER / "etcd"


def test_any_patch_in_the_assets_folder_satisfies_a_minor_version(tmp_path: Path) -> None:
    put(tmp_path / "assets", *NAMES)

    found = finder(tmp_path, assets=tmp_path / "assets", commands=Commands(version="1.35.2")).find(DEFAULT_VERSION)

    assert found.version == "1.35.2"


def test_the_cache_is_used_without_network_or_go(tmp_path: Path) -> None:
    put(tmp_path / FOLDER, *NAMES)

    found = finder(tmp_path).find()

    assert found.kubectl == tmp_path / FOLDER / "kubectl"


def test_a_file_that_is_not_executable_does_not_count(tmp_path: Path) -> None:
    put(tmp_path / FOLDER, *NAMES)
    (tmp_path / FOLDER / "etcd").chmod(0o644)

    with pytest.raises(ClusterError, match="No etcd of Kubernetes"):
        finder(tmp_path).find()


def test_without_a_network_they_are_built_with_go_and_kept_in_the_cache(tmp_path: Path) -> None:
    commands = Commands()

    found = finder(tmp_path, commands=commands, go="/opt/go").find()

    assert found.kube_apiserver == tmp_path / FOLDER / "kube-apiserver"
    assert {path.name for path in (tmp_path / FOLDER).iterdir()} == set(NAMES)
    assert [path.name for path in (tmp_path / "control-plane").iterdir() if path.is_dir()] == [found.etcd.parent.name]


def test_only_what_is_missing_is_built(tmp_path: Path) -> None:
    put(tmp_path / FOLDER, "etcd", "kube-apiserver", "kubectl")
    commands = Commands()

    finder(tmp_path, commands=commands, go="/opt/go").find()

    assert commands.built == ["kube-controller-manager"]


def test_a_second_search_builds_nothing(tmp_path: Path) -> None:
    finder(tmp_path, go="/opt/go").find()
    commands = Commands()

    finder(tmp_path, commands=commands, go="/opt/go").find()

    assert commands.built == []


def test_a_search_that_waited_for_another_uses_what_that_one_built(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / f"{FOLDER}.lock")
    assert lock.try_acquire()
    waiting, commands = threading.Event(), Commands()
    search = replace(
        finder(tmp_path, commands=commands, go="/opt/go"),
        progress=lambda what, done=0, total=0, /: waiting.set(),
    )
    thread = threading.Thread(target=search.find)
    thread.start()

    assert waiting.wait(10)
    put(tmp_path / FOLDER, *NAMES)
    lock.release()
    thread.join(10)

    assert not thread.is_alive()
    assert commands.built == []


def test_folders_of_a_search_that_was_killed_are_removed(tmp_path: Path) -> None:
    abandoned = tmp_path / "control-plane" / f".{KUBERNETES_VERSION}-linux-amd64-abandoned"
    put(abandoned, "etcd")

    finder(tmp_path, go="/opt/go").find()

    assert not abandoned.exists()


def test_the_error_gives_a_reason_for_each_place(tmp_path: Path) -> None:
    with pytest.raises(ClusterError) as caught:
        finder(tmp_path).find()

    message = str(caught.value)
    assert message.startswith(
        f"No etcd, kube-apiserver, kube-controller-manager and kubectl of Kubernetes {KUBERNETES_VERSION}"
    )
    assert "KUBEBUILDER_ASSETS is not set" in message
    assert f"the cache folder {tmp_path / FOLDER} lacks" in message
    assert "cannot be downloaded (dl.k8s.io: Name or service not known)" in message
    assert "there is no `go`" in message


def test_a_failed_build_reports_the_output_of_go(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="go: no such host"):
        finder(tmp_path, commands=Commands(code=1), go="/opt/go").find()


@pytest.mark.parametrize(
    ("present", "commands", "expected"),
    [
        (("etcd",), Commands(), "holds no kube-apiserver"),
        (NAMES, Commands(code=1), "does not tell its version"),
        (NAMES, Commands(version="1.31.0"), "holds 1.31.0"),
    ],
)
def test_the_error_says_why_the_assets_folder_is_not_used(
    tmp_path: Path, present: tuple[str, ...], commands: Commands, expected: str
) -> None:
    put(tmp_path / "assets", *present)

    with pytest.raises(ClusterError, match=expected):
        finder(tmp_path, assets=tmp_path / "assets", commands=commands).find(DEFAULT_VERSION)


def test_find_installed_neither_downloads_nor_builds(tmp_path: Path) -> None:
    commands = Commands()

    with pytest.raises(ClusterError, match="run `kubewright cluster binaries`"):
        finder(tmp_path, commands=commands, go="/opt/go").find_installed()

    assert commands.run == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"KUBEWRIGHT_CACHE": "/a", "XDG_CACHE_HOME": "/b"}, Path("/a")),
        ({"XDG_CACHE_HOME": "/b"}, Path("/b/kubewright")),
        ({}, Path("~/.cache/kubewright").expanduser()),
    ],
)
def test_the_cache_folder_can_be_chosen(environment: dict[str, str], expected: Path) -> None:
    assert cache_folder(environment) == expected
