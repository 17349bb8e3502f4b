"""Which kinds the calls in a function are about."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubewright._base import yaml
from kubewright.generate.rbac.code_calls import calls_in
from kubewright.generate.rbac.grants import grants_of
from kubewright.generate.rbac.permissions import access_of
from kubewright.generate.rbac.roles import rbac_files
from kubewright.manager.operator import Operator, load_operator

START = """
from __future__ import annotations
import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Optional, TypeVar
from kubewright import Context, Resource, Spec, Status, controller
from kubewright.api import KubeObject, copy_of
from kubewright.k8s.apps.v1 import Deployment
from kubewright.k8s.core.v1 import ConfigMap, Pod, Service
import kubewright.k8s.batch.v1 as batch

K = TypeVar("K", bound=KubeObject)
EITHER = TypeVar("EITHER", Pod, Service)

class Web(Resource[Spec, Status], group="web.example.io", version="v1"):
    pass

@dataclass
class Parts:
    pod: Pod
    services: dict[str, Service]

    @property
    def first(self) -> Service | None:
        return None

def desired(web: Web) -> Deployment: ...
async def pods_of(web: Web) -> list[Pod]: ...
def same(one: K) -> K: ...
def newest(some: Iterable[K]) -> K: ...
def parts_of(web): ...

@controller(Web, owns=[Deployment, Pod, Service, ConfigMap])
"""


def operator_of(folder: Path, name: str, text: str) -> Operator:
    (folder / f"{name}.py").write_text(START + text)
    return load_operator(str(folder / f"{name}.py"))


def deleted(operator: Operator) -> list[str]:
    calls = [call for call in calls_in(operator.modules) if call.method == "delete"]
    return sorted("unknown" if call.kind is None else call.kind.__name__ for call in calls)


@pytest.mark.parametrize(
    ("arguments", "line", "kinds"),
    [
        ("pod: Pod", "ctx.delete(pod)", "Pod"),
        ("pod: 'Pod | None'", "ctx.delete(pod)", "Pod"),
        ("pod: Optional[Pod]", "ctx.delete(pod)", "Pod"),
        ("pod: Annotated[Pod, 'the first']", "ctx.delete(pod)", "Pod"),
        ("job: batch.Job", "ctx.delete(job)", "Job"),
        ("one: Pod | Service", "ctx.delete(one)", "Pod Service"),
        ("one: EITHER", "ctx.delete(one)", "Pod Service"),
        ("one: K", "ctx.delete(one)", "unknown"),
        ("one: KubeObject", "ctx.delete(one)", "unknown"),
        ("one", "ctx.delete(one)", "unknown"),
        ("one: Unheard", "ctx.delete(one)", "unknown"),
        ("*pods: Pod", "ctx.delete(pods[0])", "unknown"),
        ("pods: list[Pod]", "ctx.delete(pods[0])", "Pod"),
        ("pods: list[Pod]", "[ctx.delete(pod) for pod in pods[1:]]", "Pod"),
        ("pods: list[Pod]", "ctx.delete(max(pods, key=str))", "Pod"),
        ("pods: dict[str, Pod]", "ctx.delete(pods['a'])", "Pod"),
        ("pods: dict[str, Pod]", "[ctx.delete(pod) for pod in sorted(pods.values())]", "Pod"),
        ("pods: dict[str, Pod]", "[ctx.delete(pod) for name, pod in pods.items()]", "Pod"),
        ("pairs: list[tuple[Pod, Service]]", "[ctx.delete(service) for _, service in pairs]", "Service"),
        ("parts: Parts", "ctx.delete(parts.pod)", "Pod"),
        ("parts: Parts", "ctx.delete(parts.first)", "Service"),
        ("parts: Parts", "asyncio.gather(*(ctx.delete(each) for each in parts.services.values()))", "Service"),
        ("pod: Pod", "asyncio.gather(*map(lambda: ctx.delete(pod), [1]))", "Pod"),
        ("pods: list[Pod], found: list", "found.remove(pods[0])", ""),
    ],
)
def test_annotations_tell_the_kind(
    tmp_path: Path, request: pytest.FixtureRequest, arguments: str, line: str, kinds: str
) -> None:
    name = f"annotated_operator_{request.node.callspec.indices['line']}"
    code = f"async def reconcile(web, ctx): ...\nasync def clean_up(ctx: Context, {arguments}):\n    {line}\n"

    assert deleted(operator_of(tmp_path, name, code)) == kinds.split()


@pytest.mark.parametrize(
    ("lines", "kinds"),
    [
        ("child = Deployment.named('a')\nawait ctx.delete(child)", "Deployment"),
        ("child = desired(web)\nawait ctx.delete(child)", "Deployment"),
        ("await ctx.delete(desired(web))", "Deployment"),
        ("await ctx.delete(web)", "Web"),
        ("await ctx.delete(same(web))", "Web"),
        ("await ctx.delete(copy_of(web))", "Web"),
        ("await ctx.delete(newest(await pods_of(web)))", "Pod"),
        ("child: Deployment = parts_of(web)\nawait ctx.delete(child)", "Deployment"),
        ("child = await ctx.client.find(ConfigMap, 'a')\nif child: await ctx.delete(child)", "ConfigMap"),
        ("if child := await ctx.client.find(ConfigMap, 'a'): await ctx.delete(child)", "ConfigMap"),
        ("child = await ctx.apply(desired(web))\nawait ctx.delete(child)", "Deployment"),
        (
            "child = await ctx.apply(desired(web))\nchild = await ctx.patch(child)\nawait ctx.delete(child)",
            "Deployment",
        ),
        ("for pod in await ctx.client.list(Pod): await ctx.delete(pod)", "Pod"),
        ("pods = await pods_of(web)\nfor pod in pods: await ctx.delete(pod)", "Pod"),
        ("one = web if web.spec else desired(web)\nawait ctx.delete(one)", "Deployment Web"),
        ("one, other = web, desired(web)\nawait ctx.delete(other)", "Deployment"),
        ("for one in [*(await pods_of(web)), desired(web)]: await ctx.delete(one)", "Deployment Pod"),
        ("child = None\nawait ctx.delete(child)", "unknown"),
        ("child = desired(web)\nchild = parts_of(web)\nawait ctx.delete(child)", "unknown"),
        ("for one, other in parts_of(web): await ctx.delete(one)", "unknown"),
        ("with parts_of(web) as child: await ctx.delete(child)", "unknown"),
        ("Pod = parts_of(web)\nawait ctx.client.delete(Pod)", "unknown"),
        ("await session.delete('https://vault.example.io/web')", ""),
        ("await session.delete(f'{vault}/web')", ""),
        ("url = vault + '/web'\nasync with session.delete(url) as answer: answer.raise_for_status()", ""),
    ],
)
def test_assignments_tell_the_kind(tmp_path: Path, request: pytest.FixtureRequest, lines: str, kinds: str) -> None:
    name = f"assigning_operator_{request.node.callspec.indices['lines']}"
    body = lines.replace("\n", "\n    ")

    operator = operator_of(tmp_path, name, f"async def reconcile(web, ctx):\n    {body}\n")

    assert deleted(operator) == kinds.split()


def test_methods_of_a_controller_know_themselves(tmp_path: Path) -> None:
    code = """
class Webs:
    async def reconcile(self, web, ctx):
        await ctx.delete(self.wanted(web))
        await ctx.client.patch(web)
    def wanted(self, web) -> Service: ...
"""
    calls = calls_in(operator_of(tmp_path, "methodical_operator", code).modules)

    assert {(call.method, call.kind.__name__ if call.kind else "") for call in calls} == {
        ("delete", "Service"),
        ("patch", "Web"),
    }


def test_only_what_is_deleted_may_be_deleted(tmp_path: Path) -> None:
    code = "async def reconcile(web, ctx):\n    for pod in await ctx.client.list(Pod): await ctx.delete(pod)\n"
    access = access_of(operator_of(tmp_path, "narrowing_operator", code))

    assert {grant.resource for grant in access.cluster if grant.verb == "delete"} == {"pods"}
    assert "patch" not in {grant.verb for grant in access.cluster if grant.resource == "webs"}
    assert access.notes == ()


def test_a_guess_is_noted_in_the_role(tmp_path: Path) -> None:
    code = """
async def reconcile(web, ctx):
    await ctx.delete(parts_of(web))
    await ctx.patch(web)
    await ctx.patch(parts_of(web))
"""
    operator = operator_of(tmp_path, "guessing_operator", code)
    access = access_of(operator)
    text = rbac_files(operator)["role.yaml"]

    assert {grant.resource for grant in access.cluster if grant.verb == "delete"} == {
        "configmaps", "deployments", "pods", "services",
    }  # fmt: skip
    assert access.notes == (
        "guessing_operator.reconcile calls delete for an object whose kind the code does not show, so delete on "
        "configmaps, delete on deployments in apps, delete on pods, delete on services is granted; annotate the object "
        "to have only what it needs",
    ), "that it patches webs is known anyhow"
    assert text.startswith(f"# {access.notes[0]}.\n")
    assert grants_of(yaml.load(text)["rules"]) == access.cluster
