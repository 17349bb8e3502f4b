"""How little the operator does: nothing when nothing happens, and each thing once."""

import asyncio
from collections import Counter
from typing import Any

import pytest
from kubewright import Cluster, Context, ObjectKey, Result, Scope
from kubewright.api import KubeObject
from kubewright.k8s.apps.v1 import Deployment
from kubewright.k8s.core.v1 import ConfigMap, Service
from kubewright.testing import running, time_limit

from application.api.v1alpha1.application import Application, ConfigReference
from application.config import hash_of
from application.controllers.application import ApplicationController
from tests.home import Home


class Journal:
    """Why each Application was looked at."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.causes: Counter[tuple[ObjectKey, str]] = Counter()
        self._more = asyncio.Event()
        reconcile: Any = ApplicationController.reconcile

        async def noting(application: Application, ctx: Context) -> Result | None:
            result: Result | None = await reconcile(application, ctx)
            self.causes.update({(application.key, f"{cause.source} {cause.event}") for cause in ctx.causes})
            self._more.set()
            return result

        monkeypatch.setattr(ApplicationController, "reconcile", noting)

    async def reach(self, key: ObjectKey, cause: str, times: int) -> None:
        async with time_limit(60):
            while self.causes[key, cause] < times:
                self._more.clear()
                await self._more.wait()


async def test_ten_resyncs_with_nothing_changed_write_nothing(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(monkeypatch)
    kinds: tuple[type[KubeObject], ...] = (Application, Deployment, Service, ConfigMap)
    often = dict.fromkeys(kinds, Scope(resync=0.2))
    async with running("application", on=cluster, scopes=often) as operator:
        home = await Home.made(operator)
        await home.config(GREETING="hello")
        await home.ready(port=8080, config_ref=ConfigReference(name="settings"))
        for child in ("Deployment", "Service"):  # events are written when there is nothing else to do
            await home.event("Created", f"{child} web")
        seen = journal.causes[home.key(), "Application resync"]
        since = len(home.faults.requests)

        await journal.reach(home.key(), "Application resync", seen + 10)

        assert [str(request) for request in home.faults.requests[since:] if request.method != "GET"] == []


async def test_a_configuration_of_fifty_wakes_those_fifty_once_each(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running("application", on=cluster) as operator:
        home = await Home.made(operator)
        config = await home.config(GREETING="hello")
        names = [f"web-{number}" for number in range(50)]
        settings = ConfigReference(name="settings")
        for start in range(0, len(names), 10):  # not all at once: a webhook has five seconds for each, however many ask
            some = names[start : start + 10]
            await asyncio.gather(*(home.make(name=name, replicas=0, config_ref=settings) for name in some))
        await home.make(name="other", replicas=0)
        await home.all_until(names, lambda seen: seen.status.config_hash == hash_of(config))
        journal = Journal(monkeypatch)

        changed = await home.config(GREETING="goodbye")
        await home.all_until(names, lambda seen: seen.status.config_hash == hash_of(changed))

        woken = {key.name: count for (key, cause), count in journal.causes.items() if cause.startswith("ConfigMap")}
        assert woken == dict.fromkeys(names, 1)
