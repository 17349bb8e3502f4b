"""`kubewright doctor`: check the project, the connection to the cluster, the CRDs, the webhooks and the permissions.

Every finding is one line with what to do about it. It changes nothing; exit code 1 if anything is wrong. What the user
may not look at is a hint, and all else is checked.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, final

import click
import msgspec

from kubewright.cli.reports import count_noun, output_option, print_json, stale_sentence
from kubewright.cli.tables import print_table
from kubewright.cli.targets import cluster_options, load_config
from kubewright.errors import Forbidden, KubewrightError, NotFound

if TYPE_CHECKING:
    from kubewright.api.dynamic import DynamicObject
    from kubewright.client.client import Client
    from kubewright.client.config.config import Config
    from kubewright.generate.rbac.grants import Grant
    from kubewright.manager.operator import Operator
    from kubewright.webhooks.registration.calls import CallProblem, WebhookCall

__all__ = ("doctor",)

_COLOURS: Final = {"good": "green", "hint": "yellow", "wrong": "red"}


@final
class _Finding(msgspec.Struct, frozen=True):
    about: str
    result: Literal["good", "hint", "wrong"]
    text: str


@click.command()
@cluster_options
@click.option("--no-cluster", is_flag=True, help="Look at the project alone.")
@output_option
def doctor(*, kubeconfig: str | None, context: str | None, no_cluster: bool, output_format: str) -> int:
    """Check the project, the cluster, the CRDs, the webhooks and the permissions."""
    folder = Path()
    findings = list(_project_findings(folder))
    # A folder without a project has no operator to check.
    operator = _load_operator(folder, findings) if (folder / "pyproject.toml").exists() else None
    if operator is not None:
        findings += _manifest_findings(folder, operator)
        findings += _declaration_findings(operator)
    if not no_cluster:
        findings += _check_cluster(kubeconfig, context, operator)
    if output_format == "json":
        print_json(findings)
    else:
        print_table(
            ("RESULT", "ABOUT", "FINDING"),
            [(found.result, found.about, found.text) for found in findings],
            colours=[_COLOURS[found.result] for found in findings],
        )
    return 1 if any(found.result == "wrong" for found in findings) else 0


def _project_findings(folder: Path) -> Iterator[_Finding]:
    from kubewright.scaffold.changes import last_rendered, plan
    from kubewright.scaffold.project import load_project

    try:
        project = load_project(folder)
        base = last_rendered(folder)
        changes = plan(folder, project) if base else None
    except KubewrightError as error:
        yield _Finding("project", "wrong", str(error))
        return
    yield _Finding("project", "good", f"{project.project_name}, {count_noun(len(project.resources), 'kind')}")
    if changes is None:
        yield _Finding("templates", "wrong", "what was rendered is not known; restore .kubewright from version control")
    elif changes.writes:
        names = ", ".join(changes.writes)
        yield _Finding("templates", "hint", f"{names} would change; `kubewright update` brings the newer templates")
    else:
        yield _Finding("templates", "good", "up to date")


def _load_operator(folder: Path, findings: list[_Finding]) -> Operator | None:
    from kubewright.manager.operator import load_operator

    try:
        operator = load_operator(str(folder.absolute()))
    except KubewrightError as error:
        findings.append(_Finding("operator", "wrong", str(error)))
        return None
    counts = {"kind": operator.kinds, "controller": operator.controllers, "webhook": operator.webhooks}
    text = ", ".join(count_noun(len(found), noun) for noun, found in counts.items())
    findings.append(_Finding("operator", "good" if any(counts.values()) else "hint", text))
    return operator


def _manifest_findings(folder: Path, operator: Operator) -> Iterator[_Finding]:
    from kubewright.generate.project import stale_files

    try:
        stale = stale_files(operator, folder / "config")
    except KubewrightError as error:
        yield _Finding("manifests", "wrong", str(error))
        return
    if stale:
        yield _Finding("manifests", "wrong", stale_sentence(stale))
    else:
        yield _Finding("manifests", "good", "up to date")


def _declaration_findings(operator: Operator) -> Iterator[_Finding]:
    """Declarations that are valid but probably a mistake."""
    from kubewright.generate.project import large_crds
    from kubewright.generate.rbac.code_calls import calls_in
    from kubewright.manager.operator import foreign_kinds

    for note in foreign_kinds(operator):
        yield _Finding("group", "hint", note)
    for note in large_crds(operator):
        yield _Finding("CRD", "hint", note)
    watched = {kind for declaration in operator.controllers for kind in declaration.kinds}
    made = {call.kind for call in calls_in(operator.modules) if call.method in ("create", "apply")}
    for name in sorted(kind.__name__ for kind in made - watched if kind is not None):
        text = f"the code makes objects of {name}, which no controller has in owns= or watches="
        yield _Finding("children", "hint", f"{text}: their changes reconcile nothing")


def _check_cluster(kubeconfig: str | None, context: str | None, operator: Operator | None) -> list[_Finding]:
    try:
        config = load_config(kubeconfig, context)
        return asyncio.run(_cluster_findings(config, operator))
    except KubewrightError as error:
        return [_Finding("cluster", "wrong", str(error))]


async def _cluster_findings(config: Config, operator: Operator | None) -> list[_Finding]:
    from kubewright.client.connection import connect
    from kubewright.generate.rbac.permissions import HOME, access_of

    async with connect(config) as client:
        version = json.loads((await client.request("GET", "/version", timeout=5)).body)["gitVersion"]
        findings = [_Finding("cluster", "good", f"{config.server}, Kubernetes {version.removeprefix('v')}")]
        if operator is None:
            return findings
        findings += await _crd_findings(client, operator)
        findings += await _webhook_findings(client, operator)
        access = access_of(operator)
        places = {"": access.cluster, **access.namespaces}
        grants = [
            (grant, operator.namespace if place == HOME else place)
            for place, granted in places.items()
            for grant in sorted(granted)
        ]
        allowed = await asyncio.gather(*(_is_allowed(client, grant, place) for grant, place in grants))
    denied = [
        f"{grant} in the namespace {place}" if place else str(grant)
        for (grant, place), may in zip(grants, allowed, strict=True)
        if not may
    ]
    if denied:
        text = f"you may not {'; '.join(denied)}: `kubewright run` would be refused; ask for a role that grants it"
        findings.append(_Finding("permissions", "wrong", text))
    else:
        findings.append(_Finding("permissions", "good", f"{len(grants)} of {len(grants)} that the operator needs"))
    return findings


async def _crd_findings(client: Client, operator: Operator) -> list[_Finding]:
    from kubewright.cli.definitions import CRD as KIND
    from kubewright.cli.definitions import definitions_of
    from kubewright.cluster.install import CRD

    findings = []
    for wanted in definitions_of(operator, Path()):
        if wanted["kind"] != KIND:
            continue
        name = wanted["metadata"]["name"]
        try:
            found = await client.get(CRD, name)
        except NotFound:
            findings.append(_Finding("CRD", "wrong", f"{name} is not installed; run `kubewright install`"))
            continue
        except Forbidden as error:
            findings.append(_Finding("CRD", "hint", f"{name} cannot be looked at: {error.message}"))
            continue
        served = {version["name"]: version.get("schema") for version in found["spec"]["versions"]}
        ours = {version["name"]: version.get("schema") for version in wanted["spec"]["versions"]}
        if served == ours:
            findings.append(_Finding("CRD", "good", f"{name} is installed"))
        else:
            findings.append(_Finding("CRD", "wrong", f"{name} is of another version; run `kubewright install`"))
    return findings


async def _webhook_findings(client: Client, operator: Operator) -> list[_Finding]:
    """Call each webhook that is asked about the operator's kinds, or that a process outside the cluster has left."""
    from kubewright.webhooks.registration.calls import calls_of
    from kubewright.webhooks.registration.targets import CRD, KINDS

    found: list[DynamicObject] = []
    try:
        for kind in KINDS.values():
            found += [obj for obj in await client.list(kind) if _concerns(obj, operator)]
        for name in operator.by_crd:
            if (crd := await client.find(CRD, name)) is not None:
                found.append(crd)
    except Forbidden as error:
        return [_Finding("webhooks", "hint", f"they cannot be looked at: {error.message}")]
    calls = [(obj, call) for obj in found for call in calls_of(obj)]
    problems = await asyncio.gather(*(call.problem(client) for _, call in calls))
    findings = [
        _webhook_finding(obj, call, problem)
        for (obj, call), problem in zip(calls, problems, strict=True)
        if problem is not None
    ]
    if calls and not findings:
        findings.append(_Finding("webhooks", "good", f"{count_noun(len(calls), 'webhook')} answered"))
    return findings


def _concerns(obj: DynamicObject, operator: Operator) -> bool:
    """Whether a webhook configuration is a local process's, or has a rule for one of the operator's kinds."""
    from kubewright.webhooks.certificates.trust import LOCAL_LABEL

    if LOCAL_LABEL in obj.metadata.labels:
        return True
    kinds = {(kind.__definition__.gvk.group, kind.__definition__.plural) for kind in operator.kinds}
    rules = [rule for webhook in obj.get("webhooks") or () for rule in webhook.get("rules") or ()]
    return any(
        {group, "*"} & {*rule.get("apiGroups", ())} and {plural, "*", "*/*"} & {*rule.get("resources", ())}
        for rule in rules
        for group, plural in kinds
    )


def _webhook_finding(obj: DynamicObject, call: WebhookCall, problem: CallProblem) -> _Finding:
    from kubewright.webhooks.certificates.trust import LOCAL_LABEL
    from kubewright.webhooks.registration.local_processes import PROCESS
    from kubewright.webhooks.registration.targets import CRD

    if not problem.certain:
        return _Finding("webhooks", "hint", f"{call.name} of {obj.metadata.name}, at {call.target}: {problem.text}")
    if type(obj) is CRD and "service" in call.config:  # as `install` leaves it, before the operator runs
        text = f"nobody answers for {call.name} at {call.target} yet: {problem.text}; run or deploy the operator"
        return _Finding("webhooks", "hint", f"{text}: until then its objects are refused in other versions")
    effect = "requests go on without it" if call.ignored else "every request that it is asked about is refused"
    text = f"{call.name} of {obj.kind} {obj.metadata.name} is dead: {call.target}: {problem.text}; {effect}"
    if LOCAL_LABEL in obj.metadata.labels:
        machine = obj.metadata.annotations.get(PROCESS, "").rpartition("/")[0] or "its machine"
        advice = (
            f"`kubewright run` on {machine} removes what an ended process has left, and so does `kubewright uninstall`"
        )
    elif "service" in call.config:
        advice = "see whether the operator's pods are ready, or remove it with `kubewright undeploy`"
    else:
        advice = "start what serves it, or delete the configuration"
    return _Finding("webhooks", "hint" if call.ignored else "wrong", f"{text}; {advice}")


async def _is_allowed(client: Client, grant: Grant, namespace: str) -> bool:
    """Whether the caller may do it there, everywhere if no namespace is named, by a SelfSubjectAccessReview."""
    from kubewright.k8s.authorization.v1 import (
        NonResourceAttributes,
        ResourceAttributes,
        SelfSubjectAccessReview,
        SelfSubjectAccessReviewSpec,
    )

    if grant.url:
        spec = SelfSubjectAccessReviewSpec(
            non_resource_attributes=NonResourceAttributes(path=grant.url, verb=grant.verb)
        )
    else:
        resource, _, part = grant.resource.partition("/")
        spec = SelfSubjectAccessReviewSpec(
            resource_attributes=ResourceAttributes(
                group=grant.group,
                resource=resource,
                subresource=part,
                verb=grant.verb,
                name=grant.name,
                namespace=namespace,
            )
        )
    review = await client.create(SelfSubjectAccessReview(spec=spec))
    return bool(review.status and review.status.allowed)
