"""Events expire one hour after their last write, and nothing else does."""

from __future__ import annotations

from kubewright.apiserver.server import ApiServer
from kubewright.testing.clock import VirtualClock


def event(name: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": "default"},
        "involvedObject": {"kind": "Pod", "name": "web", "namespace": "default"},
        "reason": "Started",
    }


async def test_an_event_goes_an_hour_after_its_last_write() -> None:
    clock = VirtualClock()
    server = ApiServer(clock=clock)
    await server.loopback.ensure({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}})
    server.events.start()
    await server.loopback.ensure(event("first"))
    await clock.advance(1800)
    await server.loopback.ensure(event("second"))
    await clock.advance(1799)
    assert server.events.remove_due() == 0

    await clock.advance(1)
    assert server.events.remove_due() == 1
    assert [entry.key for entry in server.store.table("/events").entries()] == ["default/second"]
    assert len(server.store.table("/namespaces")) == 1
