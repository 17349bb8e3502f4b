"""A kind whose CRD nobody has installed: whatever is asked of it, the answer names the CRD and how to install it.

Covers: kubewright.client, kubewright.controllers
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from tests.planes import Plane

from kubewright import Client, Context, Resource, Spec, Status, controller
from kubewright.api import KubeObject
from kubewright.errors import ConfigError, NotFound
from kubewright.k8s.core.v1 import ConfigMap
from kubewright.testing import running, until


class Absent(Resource[Spec, Status], group="absent.example.io", version="v1"):
    """Not installed."""


class Homeless(Resource[Spec, Status], group="homeless", version="v1"):
    """In a group that is no domain."""


async def _watch(client: Client) -> None:
    async with client.watch(Absent) as events:
        await anext(events)


@pytest.mark.parametrize(
    "ask",
    [
        lambda client: client.get(Absent, "web"),
        lambda client: client.list(Absent),
        lambda client: client.create(Absent.named("web")),
        lambda client: client.apply(Absent.named("web"), field_manager="test"),
        lambda client: client.patch_by_name(Absent, "web", {"spec": {}}),
        lambda client: client.delete(Absent, "web"),
        _watch,
    ],
)
async def test_every_verb_names_the_crd_and_the_command(
    client: Client, ask: Callable[[Client], Awaitable[object]]
) -> None:
    with pytest.raises(NotFound) as error:
        await ask(client)

    assert error.value.message == (
        "the server has no absents in absent.example.io/v1; install the CRD absents.absent.example.io with this "
        "version, as `kubewright install` does"
    )


async def test_a_reconciler_that_applies_one_is_told_too(plane: Plane, namespace: str) -> None:
    told: list[str] = []

    @controller(ConfigMap, name="absentee")
    async def reconcile(config: ConfigMap, ctx: Context) -> None:
        if config.metadata.namespace != namespace or config.metadata.name != "asks":
            return
        child: KubeObject = Absent.named("web")
        try:
            await ctx.apply(child)
        except NotFound as error:
            told.append(error.message)
            await ctx.client.patch_by_name(ConfigMap, config.key, {"data": {"told": "yes"}})

    async with running(reconcile, on=plane, admin=True) as operator:
        await operator.client.create(ConfigMap.named("asks", namespace))
        await until(operator.client, ConfigMap, "asks", lambda seen: seen.data, namespace=namespace)

    assert "install the CRD absents.absent.example.io" in told[0]


async def test_a_kind_in_a_group_without_a_dot_is_refused_before_anything_is_done(plane: Plane) -> None:
    @controller(Homeless)
    async def reconcile(homeless: Homeless, ctx: Context) -> None: ...

    with pytest.raises(ConfigError, match="has the group 'homeless', which is no domain; put it into one of yours"):
        async with running(reconcile, on=plane):
            pytest.fail("it has started")


async def test_what_is_no_controller_and_no_cluster_is_refused_in_a_sentence(plane: Plane, client: Client) -> None:
    async def bare(config: ConfigMap, ctx: Context) -> None: ...

    with pytest.raises(ConfigError, match=r"bare is no controller and no webhook; write @controller\(Kind\) above it"):
        async with running(bare, on=plane):  # type: ignore[arg-type]  # the mistake
            pass
    with pytest.raises(ConfigError, match=r"running\(on=...\) takes a cluster, as in Cluster.embedded\(\)"):
        async with running(controller(ConfigMap)(bare), on=client):  # type: ignore[arg-type]  # the mistake
            pass
    with pytest.raises(ConfigError, match=r"the argument graceperiod is unknown; did you mean grace_period"):
        async with running(controller(ConfigMap)(bare), on=plane, graceperiod=3):
            pass
