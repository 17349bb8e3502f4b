"""The manager: the whole life of a process, with fakes at its edges."""

from __future__ import annotations

import asyncio
import json
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from kubewright._base.certificates import certificate_info
from kubewright._base.tasks import cancel_and_wait
from kubewright.client.client import Client
from kubewright.client.config.config import Config
from kubewright.client.transport.transport import HttpRequest, HttpResponse, HttpStream
from kubewright.controllers.declaration import Declaration, controller
from kubewright.errors import ConfigError, KubewrightError, LeadershipLost, TransportError
from kubewright.k8s.core.v1 import ConfigMap, Pod
from kubewright.manager.cache_protocols import Problem, WatchHealth
from kubewright.manager.manager import Manager
from kubewright.manager.options import ManagerOptions
from kubewright.manager.runnables import RunnableGroup
from kubewright.testing.clock import VirtualClock


class Server:
    """Keeps whatever is put, and can be cut off."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.writes: list[str] = []
        self.version = 0
        self.gone = False

    async def send(self, request: HttpRequest) -> HttpResponse:
        if self.gone:
            raise TransportError("gone")
        if request.method == "GET":
            found = self.objects.get(request.path)
            return _answer(200, found) if found else _answer(404, {"kind": "Status", "reason": "NotFound", "code": 404})
        body = json.loads(request.body or b"{}")
        path = request.path if request.method == "PUT" else f"{request.path}/{body['metadata']['name']}"
        self.writes.append(path)
        self.version += 1
        body["metadata"]["resourceVersion"] = str(self.version)
        self.objects[path] = body
        return _answer(200, body)

    def stream(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpStream]:
        raise NotImplementedError

    async def close(self) -> None:
        raise AssertionError("a client that was given is not closed by the manager")


def _answer(status: int, body: dict[str, Any]) -> HttpResponse:
    return HttpResponse(status=status, headers={}, body=json.dumps(body).encode())


class FakeProblem:
    sentence = "may not list pods"


class FakeWatch:
    kind: type = Pod

    def __init__(self) -> None:
        self.synced = False
        self.problem: Problem | None = None

    def watch_age(self) -> float:
        return 1.0

    def past_deadline(self) -> bool:
        return False


class FakeCache:
    def __init__(self, client: Client) -> None:
        self.client = client
        self.watch = FakeWatch()
        self.in_sync = asyncio.Event()
        self.kinds: list[type] = []
        self.running = False

    async def run(self) -> None:
        self.running = True
        try:
            await asyncio.Event().wait()
        finally:
            self.running = False

    async def wait_for_sync(self) -> None:
        await self.in_sync.wait()
        self.watch.synced = True

    def problems(self) -> Iterable[Problem]:
        return [self.watch.problem] if self.watch.problem is not None else []

    def informers(self) -> Iterable[WatchHealth]:
        return [self.watch]

    def informer(self, kind: type[Any]) -> WatchHealth:
        self.kinds.append(kind)
        return self.watch


def in_sync(client: Client) -> FakeCache:
    cache = FakeCache(client)
    cache.in_sync.set()
    return cache


class Controller:
    """A runnable that writes while it runs."""

    needs_leader = True
    kinds = (Pod, ConfigMap)

    def __init__(self, name: str = "web") -> None:
        self.name = name
        self.started = asyncio.Event()
        self.ended = False

    async def run(self) -> None:
        self.started.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.ended = True


def options(**more: Any) -> ManagerOptions:
    quiet = {"name": "shop", "health_address": "0", "metrics_address": "0", "block_limit": 0.0}
    return ManagerOptions(**{**quiet, **more})


def manager(server: Server, clock: VirtualClock, *runnables: Any, cache: Any = in_sync, **more: Any) -> Manager:
    return Manager(
        *runnables, client=Client(server, namespace="home-ns"), options=options(**more), cache=cache, clock=clock
    )


async def test_controllers_run_after_the_caches_and_stop_before_them() -> None:
    clock, controller = VirtualClock(), Controller()
    caches: list[FakeCache] = []

    def make(client: Client) -> FakeCache:
        caches.append(FakeCache(client))
        return caches[-1]

    shop = manager(Server(), clock, controller, cache=make)
    running = asyncio.create_task(shop.run())
    await clock.settle()
    assert caches[0].running
    assert caches[0].kinds == [Pod, ConfigMap]
    assert not controller.started.is_set()
    assert shop.state == "starting"

    caches[0].in_sync.set()
    await controller.started.wait()
    await clock.settle()
    assert shop.state == "running"
    shop.stop()
    await running

    assert controller.ended
    assert not caches[0].running
    assert shop.state == "stopped"


async def test_a_kind_that_may_not_be_listed_does_not_keep_the_others_from_working() -> None:
    clock, controller = VirtualClock(), Controller()
    shop = manager(Server(), clock, controller, cache=FakeCache)
    running = asyncio.create_task(shop.run())
    await clock.advance(5)
    assert not controller.started.is_set()

    assert isinstance(shop.cache, FakeCache)
    shop.cache.watch.problem = FakeProblem()
    await clock.advance(1)

    assert controller.started.is_set()
    shop.stop()
    await running


async def test_a_sync_that_takes_too_long_is_an_error_that_says_why() -> None:
    clock = VirtualClock()
    shop = manager(Server(), clock, cache=FakeCache, sync_timeout=60.0)
    running = asyncio.create_task(shop.run())

    await clock.advance(60)

    with pytest.raises(KubewrightError, match="the caches were not in sync after 60 s: not in sync yet: Pod"):
        await running
    assert shop.state == "stopped"


async def test_stop_while_starting_ends_it() -> None:
    clock = VirtualClock()
    shop = manager(Server(), clock, cache=FakeCache)
    running = asyncio.create_task(shop.run())
    await clock.settle()

    shop.stop()
    await running

    assert shop.state == "stopped"


async def test_the_first_failure_stops_all_and_is_raised() -> None:
    async def fail() -> None:
        raise ValueError("broken")

    clock, controller = VirtualClock(), Controller()
    shop = manager(Server(), clock, controller, fail)

    with pytest.raises(ValueError, match="broken"):
        await shop.run()

    assert controller.ended


async def test_a_failure_is_not_lost_when_nobody_waits_for_it() -> None:
    clock = VirtualClock()

    async def fail() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        async with manager(Server(), clock, fail):
            await clock.settle()


async def test_the_state_and_the_readiness_say_that_something_has_failed() -> None:
    clock, breaks = VirtualClock(), asyncio.Event()

    async def fail() -> None:
        await breaks.wait()
        raise ValueError("broken")

    shop = manager(Server(), clock, fail)
    await shop.__aenter__()
    states = [shop.state]
    breaks.set()
    await clock.settle()
    states.append(shop.state)
    assert await shop._lifecycle.started() == "something that must run has ended: broken"
    with pytest.raises(ValueError, match="broken"):
        await shop.__aexit__(None, None, None)

    assert [*states, shop.state] == ["running", "failed", "stopped"]


async def test_the_start_ends_or_fails_with_that_of_what_may_fail_at_its_start() -> None:
    class Starting(Controller):
        def __init__(self) -> None:
            super().__init__()
            self.begins = asyncio.Event()

        async def wait_started(self) -> None:
            await self.begins.wait()

    class Failing(Starting):
        async def run(self) -> None:
            await self.begins.wait()
            raise ValueError("no index")

    clock, good, bad = VirtualClock(), Starting(), Failing()
    shop = manager(Server(), clock, good)
    starting = asyncio.create_task(shop.__aenter__())
    await clock.settle()
    assert shop.state == "running"  # and ready to be asked
    assert not starting.done()
    good.begins.set()
    await starting
    await shop.__aexit__(None, None, None)

    starting = asyncio.create_task(manager(Server(), clock, bad).__aenter__())
    await clock.settle()
    bad.begins.set()
    bad.begins = asyncio.Event()
    with pytest.raises(ValueError, match="no index"):
        await starting


async def test_one_added_later_runs_at_once_and_a_manager_runs_once() -> None:
    clock, late = VirtualClock(), Controller("late")
    async with manager(Server(), clock) as shop:
        shop.add(late)
        await late.started.wait()

    assert late.ended
    with pytest.raises(KubewrightError, match="is stopped; it runs once"):
        async with shop:
            pass
    with pytest.raises(KubewrightError, match="is stopping"):
        shop.add(Controller())


async def test_who_does_not_stop_in_time_is_named() -> None:
    release = asyncio.Event()

    async def deaf() -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    clock = VirtualClock()
    shop = manager(Server(), clock, deaf)
    running = asyncio.create_task(shop.run())
    await clock.settle()
    shop.stop()
    await clock.advance(31)

    with pytest.raises(KubewrightError, match=r"deaf did not end within the grace period of 30 s"):
        await running
    release.set()
    await clock.settle()


LEASE = "/apis/coordination.k8s.io/v1/namespaces/home-ns/leases/shop"


async def test_only_the_leader_runs_its_controllers_and_the_standby_is_warm() -> None:
    server, clock = Server(), VirtualClock()
    one, two = Controller("one"), Controller("two")
    everywhere = Controller("everywhere")
    everywhere.needs_leader = False
    first = manager(server, clock, one, leader_election=True)
    second = manager(server, clock, two, everywhere, leader_election=True)
    async with first:
        await clock.settle()
        async with second:
            await clock.advance(20)
            assert one.started.is_set()
            assert not two.started.is_set()
            assert everywhere.started.is_set()
            assert isinstance(second.cache, FakeCache)
            assert second.cache.running
            assert second.cache.kinds[:2] == [Pod, ConfigMap]


async def test_stopping_gives_the_lease_back_after_the_controllers_have_ended() -> None:
    server, clock = Server(), VirtualClock()
    story: list[str] = []

    class Last(Controller):
        async def run(self) -> None:
            try:
                await super().run()
            finally:
                story.append(server.objects[LEASE]["spec"]["holderIdentity"])

    last = Last()
    shop = manager(server, clock, last, leader_election=True)
    async with shop:
        await last.started.wait()
        assert shop.elector is not None
        assert server.objects[LEASE]["spec"]["holderIdentity"] == shop.elector.identity

    assert story == [shop.elector.identity]
    assert server.objects[LEASE]["spec"]["holderIdentity"] == ""


async def test_the_lease_is_kept_renewed_while_the_controllers_finish() -> None:
    server, clock = Server(), VirtualClock()
    work = asyncio.Event()

    class Slow(Controller):
        async def run(self) -> None:
            try:
                await super().run()
            finally:
                await work.wait()

    slow = Slow()
    shop = manager(server, clock, slow, leader_election=True)
    running = asyncio.create_task(shop.run())
    await slow.started.wait()
    shop.stop()

    await clock.advance(25)

    assert shop.elector is not None
    assert shop.elector.is_leader
    work.set()
    await running


async def test_a_lost_lease_ends_the_controllers_at_once_and_no_write_leaves_any_more() -> None:
    server, clock = Server(), VirtualClock()
    refused: list[float] = []

    class Writer(Controller):
        async def run(self) -> None:
            self.started.set()
            try:
                await self.write()
            finally:
                await asyncio.Event().wait()  # it has no time for this

        async def write(self) -> None:
            number = 0
            while True:
                number += 1
                try:
                    await shop.client.create(ConfigMap.named(f"c-{number}", "x"))
                except LeadershipLost:
                    refused.append(clock.monotonic())
                except TransportError:
                    pass
                await clock.sleep(0.5)

    shop = manager(server, clock, Writer(), leader_election=True)
    running = asyncio.create_task(shop.run())
    await clock.advance(5)
    server.gone = True
    await clock.advance(3)
    server.gone = False
    # Only the lease cannot be written: everything else would go through.
    original = server.send

    async def send(request: HttpRequest) -> HttpResponse:
        if "leases" in request.path:
            raise TransportError("gone")
        return await original(request)

    server.send = send  # type: ignore[method-assign]  # a fault of one path
    await clock.advance(15)

    with pytest.raises(LeadershipLost):
        await running
    count = len(server.writes)
    await clock.advance(30)
    assert len(server.writes) == count
    assert refused == [14.0]


async def test_several_managers_and_clusters_live_in_one_process() -> None:
    clock = VirtualClock()
    home, edge = Server(), Server()
    first = manager(home, clock, metrics_address="127.0.0.1:0")
    cluster = first.add_cluster("edge", client=Client(edge), cache=in_sync)
    second = manager(home, clock, metrics_address="127.0.0.1:0")
    async with first, second:
        await cluster.client.create(ConfigMap.named("x", "y"))

        assert first.port("metrics") != second.port("metrics")
        assert edge.writes
        assert not home.writes
        assert isinstance(cluster.cache, FakeCache)
        assert cluster.cache.running
        assert set(first.clusters) == {"default", "edge"}
    with pytest.raises(ConfigError, match="has a cluster 'edge' already"):
        first.add_cluster("edge", client=Client(edge))
    with pytest.raises(ConfigError, match="no cluster 'moon'"):
        first.add(Controller(), cluster="moon")


def reconciler(name: str, kind: type[Any] = ConfigMap) -> Declaration[Any]:
    @controller(kind, name=name)
    async def reconcile(obj: Any, ctx: Any) -> None: ...

    return reconcile


async def test_two_controllers_of_one_name_for_one_kind_are_refused() -> None:
    shop = Manager(reconciler("web"), client=Client(Server()), options=options())
    shop.add_cluster("edge", client=Client(Server()))

    shop.add(reconciler("web", Pod))
    shop.add(reconciler("other"))
    shop.add(reconciler("web"), cluster="edge")
    with pytest.raises(ConfigError, match=r"two controllers named web for ConfigMap; .* give one of them another name"):
        shop.add(reconciler("web"))


async def test_a_cluster_is_named_once() -> None:
    config, client = Config(server="https://127.0.0.1:9"), Client(Server())
    with pytest.raises(ConfigError, match="a config and a client"):
        Manager(config=config, client=client, options=options())
    with pytest.raises(ConfigError, match="the cluster 'edge' has no address"):
        Manager(client=client, options=options()).add_cluster("edge")


async def test_what_cannot_run_is_refused() -> None:
    with pytest.raises(ConfigError, match="cannot run None; give it a controller"):
        Manager(None, client=Client(Server()), options=options())  # type: ignore[arg-type]


async def test_options_that_are_not_given_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBEWRIGHT_NAME", "from-outside")
    monkeypatch.setenv("KUBEWRIGHT_HEALTH_ADDRESS", "0")
    monkeypatch.setenv("KUBEWRIGHT_METRICS_ADDRESS", "0")

    assert Manager(client=Client(Server())).options.name == "from-outside"
    assert Manager(client=Client(Server()), options=options()).options.name == "shop"


async def test_who_is_added_at_run_time_has_its_kinds_followed_also_where_it_does_not_lead() -> None:
    clock = VirtualClock()
    server = Server()
    leader = manager(server, clock, leader_election=True)
    standby = manager(server, clock, leader_election=True)
    async with leader:
        await leader.elected()
        async with standby:
            late = Controller("late")
            standby.add(late)

            assert isinstance(standby.cache, FakeCache)
            assert standby.cache.kinds == [Pod, ConfigMap]
            assert not late.started.is_set()


async def ask(port: int, target: str) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    answer = (await reader.read()).decode()
    writer.close()
    await writer.wait_closed()
    return answer.partition("\r\n\r\n")[2]


async def test_the_servers_answer_from_the_start_and_tell_what_is_missing() -> None:
    clock = VirtualClock()
    addresses = {f"{name}_address": "127.0.0.1:0" for name in ("health", "metrics", "debug")}
    shop = manager(Server(), clock, Controller(), cache=FakeCache, block_limit=1.0, leader_election=True, **addresses)
    shop.add_healthz_check("mine", lambda: None)

    async def not_mine() -> str:
        return "bad weather"

    shop.add_readyz_check("theirs", not_mine)
    running = asyncio.create_task(shop.run())
    for server in shop._parts.endpoints._servers:
        await server.wait_ready()

    assert await ask(shop.port("health"), "/readyz") == (
        "[-]caches failed: not in sync yet: Pod\n[-]started failed: the process is starting\n"
        "[-]theirs failed: bad weather\nreadyz check failed\n"
    )
    assert (await ask(shop.port("health"), "/healthz?verbose")).splitlines() == [
        "[+]watches ok",
        "[+]loop ok",
        "[+]leader-election ok",
        "[+]mine ok",
        "healthz check passed",
    ]
    assert isinstance(shop.cache, FakeCache)
    shop.cache.in_sync.set()
    await clock.advance(1)
    assert await ask(shop.port("health"), "/readyz?exclude=theirs") == "ok"
    assert 'leader_election_master_status{name="shop"} 1.0' in await ask(shop.port("metrics"), "/metrics")
    debug = json.loads(await ask(shop.port("debug"), "/debug"))
    assert debug["leader_election"]["leading"] is True
    assert debug["caches"][0][0]["kind"] == "Pod"
    assert any("web" in name for name in debug["runnables"])
    shop.stop()
    await running


async def test_metrics_are_served_over_tls_with_a_certificate_of_its_own_or_of_a_folder(tmp_path: Path) -> None:
    clock = VirtualClock()
    async with manager(
        Server(), clock, namespace="home", metrics_address="127.0.0.1:0", metrics_certificates="self"
    ) as shop:
        trusting = ssl.create_default_context()
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        _, writer = await asyncio.open_connection("127.0.0.1", shop.port("metrics"), ssl=trusting)
        shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        await writer.wait_closed()

    hosts = certificate_info(ssl.DER_cert_to_PEM_cert(shown).encode()).hosts
    assert {"localhost", "shop-controller-manager-metrics-service.home.svc"} <= hosts
    with pytest.raises(ConfigError, match=r"no folder with a tls.crt; mount one, or write self"):
        manager(Server(), clock, metrics_address="127.0.0.1:0", metrics_certificates=str(tmp_path))


async def test_a_taken_port_fails_the_start_with_one_sentence_and_leaves_nothing_behind() -> None:
    clock, controller = VirtualClock(), Controller()
    async with manager(Server(), clock, health_address="127.0.0.1:0") as first:
        second = manager(Server(), clock, controller, health_address=f"127.0.0.1:{first.port('health')}")
        with pytest.raises(ConfigError, match="the health server cannot listen on"):
            await second.run()

    assert not controller.started.is_set()
    assert second.state == "stopped"
    with pytest.raises(ConfigError, match="the debug server is off"):
        first.port("debug")


def open_files() -> int:
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.is_dir() else 0


async def test_nothing_is_left_after_many_starts_and_stops() -> None:
    clock = VirtualClock()
    before = asyncio.all_tasks()
    files = open_files()
    for _ in range(20):
        async with manager(Server(), clock, Controller(), health_address="127.0.0.1:0", leader_election=True) as shop:
            shop.recorder("web")
            await clock.advance(1)
    await clock.settle()

    assert asyncio.all_tasks() == before
    assert open_files() <= files + 1


async def test_cancelling_the_run_stops_everything_and_stays_a_cancellation() -> None:
    clock, controller = VirtualClock(), Controller()
    running = asyncio.create_task(manager(Server(), clock, controller).run())
    await controller.started.wait()

    await cancel_and_wait(running)

    assert running.cancelled()
    assert controller.ended


async def test_cancelling_the_start_at_any_moment_leaves_nothing_behind() -> None:
    before, moment, entered = asyncio.all_tasks(), 0, False
    while not entered:
        clock, part = VirtualClock(), Controller()
        entering = asyncio.create_task(manager(Server(), clock, part).__aenter__())
        for _ in range(moment):
            await asyncio.sleep(0)
        if entered := entering.done():
            await (await entering).__aexit__(None, None, None)
        await cancel_and_wait(entering)
        await clock.settle()
        moment += 1

        assert asyncio.all_tasks() == before
        assert part.ended or not part.started.is_set()

    assert moment > 3


async def test_who_is_put_into_an_earlier_group_does_not_wait_for_the_lease() -> None:
    server, clock, leader, other = Server(), VirtualClock(), Controller("leader"), Controller("other")
    server.gone = True  # so that nobody leads
    async with manager(server, clock, leader, leader_election=True) as shop:
        shop.add(other, group=RunnableGroup.OTHERS)
        await other.started.wait()
        await clock.advance(60)
        assert not leader.started.is_set()

    assert other.ended


SCRIPT = """
import asyncio, sys
from kubewright.client.client import Client
from kubewright.client.config.config import Config
from kubewright.manager.manager import Manager
from kubewright.manager.options import ManagerOptions

class Deaf:
    name = "deaf"
    async def run(self):
        print("running", flush=True)
        try:
            await asyncio.Event().wait()
        finally:
            print("ending", flush=True)
            if "deaf" in sys.argv:
                await asyncio.Event().wait()

class Wire:
    async def close(self): pass

async def main():
    options = ManagerOptions(health_address="0", metrics_address="0")
    one, two = (Manager(Deaf(), client=Client(Wire()), options=options) for _ in range(2))
    await asyncio.gather(one.run(), two.run())
    print("stopped", flush=True)

asyncio.run(main())
"""


def start(*arguments: str) -> subprocess.Popen[str]:
    child = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "running\n"
    assert child.stdout.readline() == "running\n"
    return child


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_every_manager_of_the_process(number: signal.Signals) -> None:
    child = start()

    child.send_signal(number)
    output, errors = child.communicate()

    assert output == "ending\nending\nstopped\n"
    assert child.returncode == 0, errors


def test_a_second_signal_ends_the_process_at_once() -> None:
    child = start("deaf")
    assert child.stdout is not None
    child.send_signal(signal.SIGTERM)
    assert child.stdout.readline() == "ending\n"

    child.send_signal(signal.SIGTERM)
    child.communicate()

    assert child.returncode == 1
