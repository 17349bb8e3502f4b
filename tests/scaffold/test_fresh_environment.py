"""A project in a virtual environment of its own, with nothing in it but what its Makefile puts there."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import shutil
import signal
import sys
import zipfile
from pathlib import Path

import pytest

import kubewright
from kubewright._base import yaml
from kubewright.api.codec import from_tree
from kubewright.api.dynamic import Dynamic
from kubewright.api.names import ObjectKey
from kubewright.cluster.planes.embedded import EmbeddedCluster
from kubewright.testing import until

from .conftest import API, HOOK, output_of

ROOT = Path(kubewright.__file__).parents[2]
PODSET = Dynamic("apps.example.io/v1alpha1", "PodSet", plural="podsets", namespaced=True)
WHEELS = ROOT / "build/wheels"


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_the_commands_of_a_fresh_project_work_before_there_is_a_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not (ROOT / "pyproject.toml").is_file():
        pytest.skip("needs the source of Kubewright, from which it is installed")
    if not (WHEELS / ".complete").exists():
        pytest.skip("what a project installs has not been downloaded; `make wheels` does that")
    # Nothing is downloaded here: how long that takes says nothing about the project.
    (tmp_path / "uv.toml").write_text(f'no-index = true\nfind-links = ["{WHEELS}"]\n')
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(WHEELS), "UV_CONFIG_FILE": str(tmp_path / "uv.toml")}
    for name, value in offline.items():
        monkeypatch.setenv(name, value)
    folder = tmp_path / "fresh-operator"
    folder.mkdir()
    kubewright = (sys.executable, "-m", "kubewright.cli")
    await output_of((*kubewright, "init", "--domain", "example.io"), folder)
    await output_of((*kubewright, *API, "--kind", "PodSet"), folder)
    await output_of((*kubewright, *HOOK, "--kind", "PodSet", "--defaulting", "--validation"), folder)
    make = ("make", f"PYTHON={sys.executable}")

    with pytest.raises(AssertionError, match=r"until it is released, name a checkout or a wheel of it"):
        await output_of((*make, "test"), folder)

    # The one dependency that no index has yet is named once; whatever else the project needs is there.
    await output_of((*make, f"KUBEWRIGHT={ROOT}"), folder)
    assert list((folder / "dist").glob("fresh_operator-*.whl"))
    tested = await output_of((*make, "test"), folder)
    await output_of((*make, "lint"), folder)
    await output_of((folder / ".venv/bin/kubewright", "generate", "--check"), folder)
    assert "4 passed" in tested
    assert (folder / ".venv/bin/python").exists()
    await install_and_run(folder, make)

    built = await output_of((*make, "docker-build", "CONTAINER_TOOL=echo"), folder)
    assert "build -t fresh-operator:latest ." in built.splitlines()
    lock = (folder / "requirements.lock").read_text()
    check_lock(lock)
    image = await built_image(folder, tmp_path / "image")
    alone = (base_python(), "-S")  # with nothing but what is in the image
    help_text = await output_of((*alone, "-m", "fresh_operator", "--help"), image, PYTHONPATH=str(image / "app"))
    assert "--leader-elect" in help_text
    code = "import sys; from kubewright import ManagerOptions as O; print(O.load(file=sys.argv[1]).leader_election)"
    options = folder / "config/manager/controller_manager_config.yaml"
    assert await output_of((*alone, "-c", code, options), image, PYTHONPATH=str(image / "app")) == "True\n"

    # The lock is as it was, until there is another Kubewright.
    (stamp := folder / "requirements.lock").touch()
    assert "uv pip compile" not in await output_of((*make, "docker-build", "CONTAINER_TOOL=echo"), folder)
    (wheel,) = (folder / "wheels").glob("*.whl")
    other = tmp_path / wheel.name
    shutil.copy(wheel, other)
    with zipfile.ZipFile(other, "a") as archive:
        archive.writestr("kubewright/other.txt", "another file")
    await output_of((*make, "docker-build", "CONTAINER_TOOL=echo", f"KUBEWRIGHT={other}"), folder)
    hashes = [re.findall(r"sha256:\w+", entry) for entry in (lock, stamp.read_text())]
    assert len(set(hashes[0]) ^ set(hashes[1])) == 2
    await built_image(folder, tmp_path / "other-image")

    # A file that is not the one that was locked is refused.
    stamp.write_text(re.sub(r"sha256:.{8}", "sha256:00000000", lock))
    with pytest.raises(AssertionError, match="DO NOT MATCH THE HASHES"):
        await built_image(folder, tmp_path / "no-image")


def check_lock(lock: str) -> None:
    pins = [line for line in lock.splitlines() if re.match(r"[a-z]\S*==", line)]
    assert {line.partition("==")[0] for line in pins} >= {"kubewright", "aiohttp", "msgspec"}
    assert [line for line in pins if not line.endswith("\\")] == []  # a hash follows each
    assert "://" not in lock


def base_python() -> str:
    """The interpreter without what its virtual environment has installed."""
    return str(Path(sys.base_prefix) / "bin" / Path(sys.executable).name)


async def install_and_run(folder: Path, make: tuple[str, ...]) -> None:
    """`make install`, then `make run` until the sample is reconciled."""
    async with EmbeddedCluster() as cluster:
        environment = {"KUBECONFIG": str(cluster.kubeconfig), "KUBEWRIGHT_WEBHOOKS": "false"}
        await output_of((*make, "install"), folder, **environment)
        sample = yaml.load((folder / "config/samples/apps_v1alpha1_podset.yaml").read_text())
        await cluster.client.create(from_tree(PODSET, sample), namespace="default")
        child = await asyncio.create_subprocess_exec(
            *make, "run", cwd=folder, env={**os.environ, **environment},
            stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        try:
            key = ObjectKey("default", "podset-sample")
            await until(cluster.client, PODSET, key, lambda seen: seen.get("status.replicas") == 1, timeout=120)
        finally:
            os.killpg(child.pid, signal.SIGINT)  # what Ctrl-C does: make and the operator get it
            await child.communicate()


async def built_image(folder: Path, root: Path) -> Path:
    """What the Dockerfile makes, without a container: its instructions one after the other below a folder."""
    context, stage, place = folder, root / "build", "/"
    for line in (folder / "Dockerfile").read_text().splitlines():
        word, _, rest = line.partition(" ")
        if word == "FROM":
            stage = root / "build" if rest.endswith(" AS build") else root
            stage.mkdir(parents=True, exist_ok=True)
        elif word == "WORKDIR":
            place = rest
            (stage / place.lstrip("/")).mkdir(parents=True, exist_ok=True)
        elif word == "COPY":
            source, target = rest.removeprefix("--from=build ").split()
            came_from = root / "build" / source.lstrip("/") if rest.startswith("--from") else allowed(context, source)
            _copy(came_from, stage / (target if target.startswith("/") else f"{place}/{target}").lstrip("/"))
        elif word == "RUN":
            command = re.sub(r"(?<=[ =])/(?=app|operator)", f"{stage}/", rest)
            pip = f"{shlex.quote(str(folder / '.venv/bin/python'))} -m pip --quiet"
            command = re.sub(r"^python\b", base_python(), re.sub(r"^pip\b", pip, command))
            await output_of(("sh", "-c", command), stage / place.lstrip("/"))
    return root


def allowed(context: Path, source: str) -> Path:
    """A file of the build context, if .dockerignore lets it in."""
    assert f"!{source}" in (context / ".dockerignore").read_text().splitlines()
    return context / source


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    else:
        shutil.copy(source, target)
