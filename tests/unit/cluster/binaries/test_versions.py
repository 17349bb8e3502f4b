import re

import pytest

from kubewright.cluster.binaries.versions import DEFAULT_VERSION, Release, host_platform, matches, release
from kubewright.errors import ConfigError
from kubewright.k8s.release import KUBERNETES_VERSION


def test_a_minor_version_means_its_newest_known_patch() -> None:
    assert release("1.33") == Release("1.33.13", "3.5.35")
    assert release(DEFAULT_VERSION).kubernetes == KUBERNETES_VERSION


def test_a_full_version_is_taken_as_it_is_with_the_etcd_of_its_minor() -> None:
    assert release("v1.33.6") == Release("1.33.6", release("1.33").etcd)


def test_a_full_version_of_an_unknown_minor_gets_the_default_etcd() -> None:
    assert release("1.99.0") == Release("1.99.0", release(DEFAULT_VERSION).etcd)


def test_an_unknown_minor_names_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"No patch of Kubernetes 1\.99 is known; use one of 1\.33, .*1\.35"):
        release("1.99")


@pytest.mark.parametrize("text", ["", "latest", "1", "2.0", "1.35.4.1", "1.35-rc.0"])
def test_what_is_no_version_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(f"write it as {DEFAULT_VERSION} or {KUBERNETES_VERSION}.")):
        release(text)


def test_the_staging_modules_are_numbered_after_the_release() -> None:
    assert release("1.35.4").staging == "0.35.4"
    assert release("1.35.4").minor == "1.35"


@pytest.mark.parametrize(
    ("asked", "version", "expected"),
    [
        ("1.35", "1.35.2", True),
        ("v1.35", "1.35.2", True),
        ("1.35.2", "1.35.2", True),
        ("1.3", "1.35.2", False),
        ("1.35.2", "1.35.20", False),
    ],
)
def test_a_minor_takes_any_patch_of_it_and_a_full_version_only_itself(asked: str, version: str, expected: bool) -> None:
    assert matches(asked, version) is expected


@pytest.mark.parametrize(
    ("system", "machine", "expected"),
    [("linux", "x86_64", ("linux", "amd64")), ("darwin", "arm64", ("darwin", "arm64"))],
)
def test_the_platform_is_said_in_the_words_of_releases(
    monkeypatch: pytest.MonkeyPatch, system: str, machine: str, expected: tuple[str, str]
) -> None:
    monkeypatch.setattr("sys.platform", system)
    monkeypatch.setattr("platform.machine", lambda: machine)

    assert host_platform() == expected


def test_a_platform_without_binaries_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")

    with pytest.raises(ConfigError, match="riscv64"):
        host_platform()
