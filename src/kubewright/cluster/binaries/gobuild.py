"""Build control-plane binaries from the Go module proxy, where release archives are out of reach.

`go install` cannot build `k8s.io/kubernetes`: its go.mod requires the staging modules at v0.0.0 and replaces them by
folders of its own repository. So this module generates a go.mod with the requirements of the release's go.mod, and
replaces each staging module by the version published with the release. The build then uses the same versions as the
release. etcd needs no replacement and takes the same path.

`finder` calls `build` if there is a `go`. Compiling takes minutes the first time, seconds with Go's cache.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from kubewright.cluster.binaries.checksums import GO_MODULES
from kubewright.cluster.binaries.versions import Release
from kubewright.cluster.processes.commands import CommandRunner, CompletedCommand, run
from kubewright.cluster.processes.progress import Progress
from kubewright.errors import ClusterError

__all__ = ("build", "module_text")

_KUBERNETES = "k8s.io/kubernetes"
_ETCD = "go.etcd.io/etcd/server/v3"
_STAGED = "v0.0.0"


@final
@dataclass(frozen=True, slots=True)
class _Target:
    """One Go module and the binaries wanted of it: binary name -> package."""

    module: str
    version: str
    packages: Mapping[str, str]
    link_flags: str = "-s -w"
    staging: str = ""


def build(
    names: Iterable[str], *, go: str, release: Release, into: Path, run: CommandRunner = run, progress: Progress
) -> None:
    """Compile the named binaries of a release into a folder; Go keeps the sources in its own caches."""
    wanted = set(names)
    kubernetes = {name: f"{_KUBERNETES}/cmd/{name}" for name in sorted(wanted - {"etcd"})}
    if "etcd" in wanted:
        _build(_Target(_ETCD, release.etcd, {"etcd": _ETCD}), go, into, run, progress)
    if kubernetes:
        target = _Target(_KUBERNETES, release.kubernetes, kubernetes, _version_flags(release), staging=release.staging)
        _build(target, go, into, run, progress)


def module_text(go_mod: Mapping[str, Any], *, module: str, version: str, staging: str = "") -> str:
    """The go.mod that builds `module` as released, from its own as `go mod edit -json` prints it."""
    required = [(entry["Path"], entry["Version"]) for entry in go_mod.get("Require") or ()]
    lines = ["module kubewright.local/build", "", f"go {go_mod['Go']}", ""]
    # Kubernetes pins GODEBUG defaults of the Go version it is released with; Go reads them from the main module only.
    lines += [f"godebug {entry['Key']}={entry['Value']}" for entry in go_mod.get("Godebug") or ()]
    lines += ["require (", f"\t{module} v{version}"]
    lines += [f"\t{path} {needed}" for path, needed in required]
    lines += [")", "", "replace ("]
    lines += [f"\t{path} => {path} v{staging}" for path, needed in required if needed == _STAGED]
    return "\n".join([*lines, ")", ""])


def _version_flags(release: Release) -> str:
    major, minor, _ = release.kubernetes.split(".")
    values = {"gitVersion": f"v{release.kubernetes}", "gitMajor": major, "gitMinor": minor}
    flags = [f"-X k8s.io/component-base/version.{name}={value}" for name, value in values.items()]
    return " ".join(["-s -w", *flags, f"-X k8s.io/client-go/pkg/version.gitVersion=v{release.kubernetes}"])


def _build(target: _Target, go: str, into: Path, run: CommandRunner, progress: Progress) -> None:
    what = f"{', '.join(target.packages)} {target.version} from Go modules"
    folder = into / f"module-{target.module.replace('/', '-')}"
    folder.mkdir()
    # No cgo: the binaries then need no C compiler to build and no C library to run.
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}

    def call(*arguments: str, on_line: Callable[[str], None] | None = None) -> CompletedCommand:
        done = run([go, *arguments], folder=folder, environment=environment, on_line=on_line)
        if done.code != 0:
            tail = " | ".join(done.stderr.strip().splitlines()[-5:])
            raise ClusterError(f"`go {arguments[0]}` could not make {what}: {tail or f'exit code {done.code}'}.")
        return done

    progress(f"fetching the sources of {what}")
    source = json.loads(call("mod", "download", "-json", f"{target.module}@v{target.version}").stdout)
    _check_sum(f"{target.module}@v{target.version}", str(source.get("Sum", "")))
    go_mod = json.loads(call("mod", "edit", "-json", source["GoMod"]).stdout)
    text = module_text(go_mod, module=target.module, version=target.version, staging=target.staging)
    (folder / "go.mod").write_text(text, encoding="utf-8")
    _copy_checksums(Path(source["Dir"]) / "go.sum", folder / "go.sum")
    packages = list(target.packages.values())
    listed = call("list", "-mod=mod", "-deps", *packages, on_line=_counter(f"fetching the sources of {what}", progress))
    counter = _counter(f"compiling {what}", progress, total=len(listed.stdout.splitlines()))
    output = into / next(iter(target.packages)) if len(packages) == 1 else into
    call(
        "build",
        "-mod=mod",
        "-v",
        "-ldflags",
        target.link_flags,
        "-o",
        f"{output}",
        *packages,
        on_line=counter,
    )
    shutil.rmtree(folder)


def _check_sum(module: str, actual: str) -> None:
    """Go compares a module with its checksum database unless it is told not to; these it cannot be told away."""
    expected = GO_MODULES.get(module)
    if expected is not None and actual != expected:
        raise ClusterError(
            f"The sources of {module} have the checksum {actual or 'of nothing'} and not {expected}: somebody has "
            "altered them, and they are not built; use another GOPROXY, and `go clean -modcache`"
        )


def _counter(what: str, progress: Progress, *, total: int = 0) -> Callable[[str], None]:
    """A callback that counts lines: Go writes one per package or download."""
    seen = 0

    def count(_line: str) -> None:
        nonlocal seen
        seen += 1
        progress(what, min(seen, total), total)

    progress(what, 0, total)
    return count


def _copy_checksums(source: Path, target: Path) -> None:
    """Copy the checksums the release was built with; Go adds those of the staging modules."""
    if source.is_file():
        shutil.copyfile(source, target)
        # Files in Go's module cache are read-only; the copy must be writable.
        target.chmod(stat.S_IRUSR | stat.S_IWUSR)
