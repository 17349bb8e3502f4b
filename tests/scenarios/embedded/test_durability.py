"""A data folder keeps what was acknowledged, whatever happens to the process; what happens to the file is noticed.

Covers: kubewright.apiserver.storage
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kubewright import Client, Config, Resource, Spec, Status, connect
from kubewright.client.transport.default import default_transport
from kubewright.client.watch import Bookmark
from kubewright.cluster.install import install_crds
from kubewright.cluster.planes.embedded import EmbeddedCluster
from kubewright.errors import ClusterError, Expired, Invalid, NotFound, TransportError
from kubewright.k8s.core.v1 import ConfigMap, Service, ServicePort, ServiceSpec
from kubewright.testing import time_limit

WRITES = 10_000
WRITERS = 24


class GadgetSpec(Spec):
    size: int = 1


class GadgetStatus(Status):
    ready: int = 0


class Gadget(Resource[GadgetSpec, GadgetStatus], group="durability.example.io", version="v1"):
    """A kind that must be there after a restart."""


# --- killed ---


@asynccontextmanager
async def server(data: Path, state: Path) -> AsyncIterator[tuple[asyncio.subprocess.Process, Path]]:
    """`kubewright cluster up --data` in a process of its own, and its kubeconfig."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "kubewright.cli", "cluster", "up", "--no-pods", f"--data={data}"),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "KUBEWRIGHT_STATE": str(state)},
    )
    try:
        assert process.stdout is not None
        async with time_limit(90):
            line = (await process.stdout.readline()).decode()
        yield process, Path(line.strip().removeprefix("export KUBECONFIG="))
    finally:
        if process.returncode is None:
            process.terminate()
        await process.communicate()


class Ledger:
    """What the server acknowledged, and what it was asked for and did not answer."""

    def __init__(self) -> None:
        self.acknowledged = 0
        self.kept: dict[str, tuple[str, str]] = {}
        """By name the uid and the value."""
        self.unsure: dict[str, str | None] = {}
        """By name what it may be as well: another value, or gone."""
        self.enough = asyncio.Event()

    async def write(self, client: Client, numbers: AsyncIterator[int], limit: int) -> None:
        async for number in numbers:
            name = f"c{number:05}"
            self.unsure[name] = "1"
            made = await client.create(ConfigMap.named(name, data={"n": "1"}))
            self._acknowledge(name, (made.metadata.uid, "1"), limit)
            if number % 3 == 0:
                self.unsure[name] = "2"
                made.data = {"n": "2"}
                await client.patch(made)
                self._acknowledge(name, (made.metadata.uid, "2"), limit)
            if number % 5 == 0:
                self.unsure[name] = None
                await client.delete(ConfigMap, name)
                self._acknowledge(name, None, limit)

    def _acknowledge(self, name: str, state: tuple[str, str] | None, limit: int) -> None:
        del self.unsure[name]
        self.kept.pop(name, None)
        if state is not None:
            self.kept[name] = state
        self.acknowledged += 1
        if self.acknowledged >= limit:
            self.enough.set()


async def numbers(source: list[int]) -> AsyncIterator[int]:
    while source:
        yield source.pop()


async def write_until_killed(kubeconfig: Path, process: asyncio.subprocess.Process, limit: int) -> Ledger:
    ledger, waiting = Ledger(), list(range(WRITES))
    # A client that does not try again: what it hears nothing of is not acknowledged.
    transport = default_transport(Config.load(kubeconfig=kubeconfig))
    try:
        client = Client(transport, namespace="default", field_manager="test")
        writers = [asyncio.create_task(ledger.write(client, numbers(waiting), limit)) for _ in range(WRITERS)]
        async with time_limit(120):
            await ledger.enough.wait()
        process.send_signal(signal.SIGKILL)
        ended = await asyncio.gather(*writers, return_exceptions=True)
    finally:
        await transport.close()
    assert all(isinstance(outcome, TransportError) for outcome in ended), ended
    return ledger


@pytest.mark.slow
@pytest.mark.timeout(400)
async def test_every_acknowledged_write_survives_a_killed_server(
    tmp_path: Path,
) -> None:
    limit = random.Random().randrange(500, 2000)
    data, state = tmp_path / "data", tmp_path / "state"
    async with server(data, state) as (process, kubeconfig):
        ledger = await write_until_killed(kubeconfig, process, limit)
    async with server(data, state) as (process, kubeconfig), connect(Config.load(kubeconfig=kubeconfig)) as client:
        listed = await client.list(ConfigMap, namespace="default")
    found = {
        obj.metadata.name: (obj.metadata.uid, (obj.data or {})["n"]) for obj in listed if obj.metadata.name[0] == "c"
    }
    lost = {name: kept for name, kept in ledger.kept.items() if found.get(name) != kept and name not in ledger.unsure}
    assert not lost, f"killed after {limit} writes"
    for name in found.keys() - ledger.kept.keys():
        assert found[name][1] == ledger.unsure[name], f"{name} came from nowhere"
    assert len(ledger.unsure) <= WRITERS


# --- damaged ---


@pytest.fixture(scope="session")
async def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two data folders as a killed process leaves them: an older one, and one with a few dozen writes more."""
    root = tmp_path_factory.mktemp("durability")
    async with EmbeddedCluster(data=root / "data", controllers=False) as cluster:
        for number in range(60):
            await cluster.client.create(ConfigMap.named(f"c{number}", data={"n": f"value-{number}-" + "x" * 200}))
            if number == 30:
                shutil.copytree(root / "data", root / "older")
        shutil.copytree(root / "data", root / "newer")
    return root / "older", root / "newer"


def cut_log(store: Path, _older: Path) -> None:
    log = store / "state.db-wal"
    os.truncate(log, log.read_bytes().index(b"value-59-"))  # in the middle of the last write


def remove_log(store: Path, _older: Path) -> None:
    (store / "state.db-wal").unlink()


def flip_in_log(store: Path, _older: Path) -> None:
    flip(store / "state.db-wal", b"value-40-")


def flip_in_value(store: Path, _older: Path) -> None:
    fold_log(store)
    flip(store / "state.db", b"value-40-")


def flip_in_key(store: Path, _older: Path) -> None:
    fold_log(store)
    flip(store / "state.db", b"default/c40")


def flip_in_head(store: Path, _older: Path) -> None:
    fold_log(store)
    flip(store / "state.db", b"SQLite format")


def flip_in_note(store: Path, _older: Path) -> None:
    note = store / "state.version"
    note.write_bytes(bytes([note.read_bytes()[0] ^ 1]) + note.read_bytes()[1:])


def put_older_copy(store: Path, older: Path) -> None:
    for file in ("state.db", "state.db-wal"):
        shutil.copy(older / "store" / file, store / file)


def remove_all_but_note(store: Path, _older: Path) -> None:
    for file in store.glob("state.db*"):
        file.unlink()


def fold_log(store: Path) -> None:
    """What SQLite does when it is closed: the log becomes part of the file."""
    with sqlite3.connect(store / "state.db") as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()


def flip(file: Path, what: bytes) -> None:
    content = bytearray(file.read_bytes())
    content[content.rindex(what) + len(what) - 1] ^= 1
    file.write_bytes(content)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (cut_log, "was acknowledged"),
        (remove_log, "was acknowledged"),
        (flip_in_log, "was acknowledged"),
        (flip_in_value, "checksum"),
        (flip_in_key, "checksum"),
        (flip_in_head, "not a database"),
        (flip_in_note, "state.version is damaged"),
        (put_older_copy, "older copy"),
        (remove_all_but_note, "was acknowledged"),
    ],
)
async def test_a_damaged_or_older_file_is_an_error_that_names_it(
    folders: tuple[Path, Path], tmp_path: Path, damage: Callable[[Path, Path], None], said: str
) -> None:
    older, newer = folders
    data = tmp_path / "data"
    shutil.copytree(newer, data)
    damage(data / "store", older)
    with pytest.raises(ClusterError, match=said) as refusal:
        async with EmbeddedCluster(data=data, controllers=False):
            pass
    message = str(refusal.value)
    assert str(data / "store") in message
    assert message.endswith(".")
    assert "\n" not in message


async def test_an_undamaged_folder_of_a_killed_process_is_served(folders: tuple[Path, Path], tmp_path: Path) -> None:
    shutil.copytree(folders[1], tmp_path / "data")
    async with EmbeddedCluster(data=tmp_path / "data", controllers=False) as cluster:
        names = {obj.metadata.name for obj in await cluster.client.list(ConfigMap, namespace="default")}
    assert {f"c{number}" for number in range(60)} <= names


async def test_a_folder_in_use_is_an_error_that_names_it(tmp_path: Path) -> None:
    async with EmbeddedCluster(data=tmp_path, controllers=False):
        with pytest.raises(ClusterError, match="in use by another") as refusal:
            async with EmbeddedCluster(data=tmp_path, controllers=False):
                pass
    assert str(tmp_path) in str(refusal.value)


# --- restarted ---


async def test_a_restart_keeps_identities_versions_and_custom_kinds_and_compacts_history(tmp_path: Path) -> None:
    async with EmbeddedCluster(data=tmp_path, controllers=False) as cluster:
        await install_crds(cluster.client, Gadget)
        gadget = await cluster.client.create(Gadget.named("g", "default", spec=GadgetSpec(size=7)))
        config = await cluster.client.create(ConfigMap.named("c"))
        await cluster.client.create(ConfigMap.named("gone"))
        await cluster.client.delete(ConfigMap, "gone")
        last = cluster.server.store.version
        authority = cluster.ca_data

    async with EmbeddedCluster(data=tmp_path, controllers=False) as cluster:
        client = cluster.client
        assert cluster.ca_data == authority
        again = await client.get(Gadget, "g", namespace="default")
        assert (again.metadata.uid, again.spec.size) == (gadget.metadata.uid, 7)
        assert again.metadata.resource_version == gadget.metadata.resource_version
        kept = await client.get(ConfigMap, "c")
        assert (kept.metadata.uid, kept.metadata.resource_version) == (
            config.metadata.uid,
            config.metadata.resource_version,
        )
        with pytest.raises(NotFound):
            await client.get(ConfigMap, "gone")
        # Read before the restart, written after it: no conflict.
        config.data = {"a": "b"}
        changed = await client.update(config)
        assert int(changed.metadata.resource_version) > last
        with pytest.raises(Expired):
            await first_event(client, config.metadata.resource_version)
        assert await first_event(client, str(last)) == changed.metadata.resource_version


async def first_event(client: Client, version: str) -> str:
    """The version of the first event of a watch that starts at a version."""
    async with client.watch(ConfigMap, namespace="default", resource_version=version) as events:
        async for event in events:
            assert not isinstance(event, Bookmark)
            return event.object.metadata.resource_version
    raise AssertionError("the watch ended without an event")


async def test_addresses_of_services_stay_allocated_over_a_restart(tmp_path: Path) -> None:
    ports = [ServicePort(port=80)]
    async with EmbeddedCluster(data=tmp_path, controllers=False) as cluster:
        web = await cluster.client.create(Service.named("web", "default", spec=ServiceSpec(ports=ports)))
        assert web.spec is not None

    async with EmbeddedCluster(data=tmp_path, controllers=False) as cluster:
        rival = Service.named("rival", "default", spec=ServiceSpec(ports=ports, cluster_ip=web.spec.cluster_ip))
        with pytest.raises(Invalid, match="already allocated"):
            await cluster.client.create(rival)
        await cluster.client.delete(Service, "web", namespace="default")
        made = await cluster.client.create(rival)
        assert made.spec is not None
        assert made.spec.cluster_ip == web.spec.cluster_ip
