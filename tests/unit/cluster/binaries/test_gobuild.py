"""The module that builds Kubernetes as it was released."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from kubewright.cluster.binaries.checksums import GO_MODULES
from kubewright.cluster.binaries.gobuild import build, module_text
from kubewright.cluster.binaries.versions import Release
from kubewright.cluster.processes.commands import CompletedCommand, run

GO_MOD = {
    "Go": "1.25.0",
    "Godebug": [{"Key": "default", "Value": "go1.25"}],
    "Require": [
        {"Path": "k8s.io/api", "Version": "v0.0.0"},
        {"Path": "k8s.io/klog/v2", "Version": "v2.130.1"},
        {"Path": "github.com/x/y", "Version": "v1.0.0", "Indirect": True},
    ],
    "Replace": [{"Old": {"Path": "k8s.io/api"}, "New": {"Path": "./staging/src/k8s.io/api"}}],
}


def test_staging_modules_are_replaced_and_the_rest_is_required_as_released() -> None:
    text = module_text(GO_MOD, module="k8s.io/kubernetes", version="1.35.4", staging="0.35.4")

    lines = [line.strip() for line in text.splitlines()]
    assert "go 1.25.0" in lines
    assert "godebug default=go1.25" in lines
    assert "k8s.io/kubernetes v1.35.4" in lines
    assert "k8s.io/klog/v2 v2.130.1" in lines
    assert "github.com/x/y v1.0.0" in lines
    assert "k8s.io/api => k8s.io/api v0.35.4" in lines
    assert not any("staging/src" in line for line in lines)


def test_the_binaries_say_the_version_of_the_release_and_progress_counts_packages(tmp_path: Path) -> None:
    ran: list[Sequence[str]] = []
    shown: list[tuple[str, int, int]] = []

    def fake(
        command: Sequence[str],
        *,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
        on_line: Callable[[str], None] | None = None,
    ) -> CompletedCommand:
        ran.append(command)
        if command[1] == "list":
            return CompletedCommand(0, "one\ntwo\n")
        if command[1] == "build" and on_line is not None:
            on_line("one")
            assert environment is not None
            assert environment["CGO_ENABLED"] == "0"
        source = {"GoMod": "go.mod", "Dir": str(tmp_path), "Sum": GO_MODULES["k8s.io/kubernetes@v1.35.4"]}
        return CompletedCommand(0, json.dumps(GO_MOD | source))

    build(
        ["kubectl"],
        go="/opt/go",
        release=Release("1.35.4", "3.6.16"),
        into=tmp_path,
        run=fake,
        progress=lambda what, done=0, total=0, /: shown.append((what, done, total)),
    )

    assert ran[0][1:] == ["mod", "download", "-json", "k8s.io/kubernetes@v1.35.4"]
    flags = ran[-1][ran[-1].index("-ldflags") + 1]
    assert "-X k8s.io/component-base/version.gitVersion=v1.35.4" in flags
    assert "-X k8s.io/component-base/version.gitMinor=35" in flags
    assert shown[-1] == ("compiling kubectl 1.35.4 from Go modules", 1, 2)
    assert list(tmp_path.iterdir()) == []


def test_a_command_hands_on_its_lines_and_keeps_its_output() -> None:
    lines: list[str] = []

    done = run(["/bin/sh", "-c", "echo out; echo one >&2; echo two >&2; exit 3"], on_line=lines.append)

    assert done == CompletedCommand(3, "out\n", "one\ntwo\n")
    assert lines == ["one", "two"]
