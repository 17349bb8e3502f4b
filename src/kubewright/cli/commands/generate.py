"""`kubewright generate`: write generated files, or check that they are up to date.

A thin layer over `kubewright.generate`. `--check` writes nothing, prints what is stale and exits with 1, for CI.
Without a subcommand it writes everything under `config` that follows from the operator's classes and declarations.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kubewright.cli.reports import print_json
from kubewright.cli.targets import load_config
from kubewright.cli.terminals import visible

if TYPE_CHECKING:
    from kubewright.generate.crds.schema_changes import BreakingChange
    from kubewright.generate.models.openapi import Documents
    from kubewright.generate.project import Part
    from kubewright.generate.rbac.audit import AuditedRequest, Deviation
    from kubewright.manager.operator import Operator

__all__ = ("generate",)

F = TypeVar("F", bound=Callable[..., Any])

_PATH = click.Path(exists=True, path_type=Path)
_OPERATOR = click.option(
    "--operator", metavar="PACKAGE", help="The operator's package or its path; else as pyproject.toml says."
)
_OUTPUT = click.option(
    "--output", type=click.Path(file_okay=False, path_type=Path), default="config", show_default=True,
    help="The folder of the manifests.",
)  # fmt: skip
_CHECK = click.option("--check", is_flag=True, help="Write nothing; fail if the files are not up to date.")
_FORMAT = click.option(
    "-o",
    "--format",
    "output_format",
    type=click.Choice(["text", "json"]),
    default="text",
    help="How the outcome is printed.",
)
_CONTEXT = click.option("--context", metavar="NAME", help="The context of the kubeconfig.")


def _for_operator(command: F) -> F:
    """The options of every command about an operator."""
    return _OPERATOR(_OUTPUT(_CHECK(_FORMAT(command))))


@click.group(invoke_without_command=True)
@_for_operator
@click.pass_context
def generate(ctx: click.Context, *, operator: str | None, output: Path, check: bool, output_format: str) -> None:
    """Generate manifests and classes.

    Without a subcommand it writes everything for the operator: CRDs, RBAC and webhook manifests.
    """
    if ctx.invoked_subcommand is None:
        _write(_operator(operator), output, ("crds", "rbac", "webhooks"), check=check, output_format=output_format)
    elif operator or check or output != Path("config") or output_format != "text":
        raise click.UsageError(f"Put the options behind the word {ctx.invoked_subcommand}.")


@generate.command()
@_for_operator
@click.option("--check-compat", "old", type=_PATH, metavar="OLD", help="Compare with these CRDs instead of writing.")
@click.option("--against-cluster", is_flag=True, help="Try the new schemas on the objects in the cluster instead.")
@_CONTEXT
def crds(
    *,
    operator: str | None,
    output: Path,
    check: bool,
    old: Path | None,
    against_cluster: bool,
    context: str | None,
    output_format: str,
) -> None:
    """Write the CustomResourceDefinitions of the operator's kinds.

    With --check-compat or --against-cluster nothing is written: the command lists the changes that break stored
    objects or clients, and fails if there are any.
    """
    loaded = _operator(operator)
    if context and not against_cluster:
        raise click.UsageError("--context goes with --against-cluster.")
    if old is None and not against_cluster:
        _write(loaded, output, ("crds",), check=check, output_format=output_format)
        return
    found: list[Any] = []
    if old is not None:
        found += _breaking_changes(loaded, old)
    if against_cluster:
        found += asyncio.run(_check_stored(loaded, context))
    _print_findings(found, output_format, otherwise="nothing would break", problem="problems found: {}")


@generate.command(short_help="Write the roles that the operator needs.")
@_for_operator
@click.option(
    "--from-audit", "audit", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
    help="Print the least role that an audit log proves; with --check compare it with the declared one.",
)  # fmt: skip
@click.option("--user", metavar="NAME", help="Whose requests in the audit log; the operator's account if not given.")
def rbac(
    *, operator: str | None, output: Path, check: bool, audit: Path | None, user: str | None, output_format: str
) -> None:
    """Write the roles that the operator's declarations need, its account, and roles for its users."""
    loaded = _operator(operator)
    if audit is None:
        if user:
            raise click.UsageError("--user goes with --from-audit.")
        _write(loaded, output, ("rbac",), check=check, output_format=output_format)
    elif check:
        _print_findings(
            _deviations(loaded, audit, user), output_format,
            otherwise="the declared role is what the log proves", problem="deviations of the declared role: {}",
        )  # fmt: skip
    else:
        click.echo(_least_role(loaded, audit, user), nl=False)


@generate.command(short_help="Write webhook configurations and their Service.")
@_for_operator
def webhooks(*, operator: str | None, output: Path, check: bool, output_format: str) -> None:
    """Write webhook configurations, the Service before them and their certificates' wiring."""
    loaded = _operator(operator)
    if not loaded.webhooks:
        raise click.ClickException(f"{loaded.package} declares no webhook; see @default, @validate and @convert.")
    _write(loaded, output, ("webhooks",), check=check, output_format=output_format)


@generate.command()
@click.option(
    "--crd", "crds", type=_PATH, multiple=True, help="A file or folder with CustomResourceDefinitions; repeatable."
)
@click.option("--openapi", type=_PATH, help="A file or folder with OpenAPI v3 documents, as saved from /openapi/v3.")
@click.option("--cluster", is_flag=True, help="Ask the cluster of the kubeconfig.")
@click.option("--context", metavar="NAME", help="The context of the kubeconfig, with --cluster.")
@click.option("--output", required=True, type=click.Path(file_okay=False, path_type=Path), help="The package's folder.")
@click.option("--package", metavar="NAME", help="The package's name for imports; the folder's name if not given.")
@_CHECK
@_FORMAT
def models(
    *,
    crds: tuple[Path, ...],
    openapi: Path | None,
    cluster: bool,
    context: str | None,
    output: Path,
    package: str | None,
    check: bool,
    output_format: str,
) -> None:
    """Write Python classes for kinds, one module per group-version.

    The kinds come from CRD manifests, from saved OpenAPI documents or from a cluster. Kinds Kubewright has
    classes for already are left out.
    """
    from kubewright.generate.models.modules import generate_models

    if (bool(crds), openapi is not None, cluster).count(True) != 1:
        raise click.UsageError("Say where the kinds come from: one of --crd, --openapi and --cluster.")
    if context and not cluster:
        raise click.UsageError("--context goes with --cluster.")
    name = package or output.absolute().name
    if not all(part.isidentifier() for part in name.split(".")):
        raise click.UsageError(f"{name!r} is no name of a Python package; give one with --package.")
    documents = _documents(crds, openapi, context, builtin=name == "kubewright.k8s")
    _finish(output, generate_models(documents, package=name), check=check, output_format=output_format)


def _operator(name: str | None) -> Operator:
    from kubewright.manager.operator import load_operator, project_settings

    name = name or project_settings(Path()).operator
    if not name:
        raise click.UsageError(
            'Which operator? Give --operator, or write operator = "package" under [tool.kubewright] in pyproject.toml.'
        )
    return load_operator(name)


def _write(operator: Operator, folder: Path, parts: Sequence[Part], *, check: bool, output_format: str) -> None:
    from kubewright.generate.project import large_crds, project_files, stale_files, write_project
    from kubewright.generate.rbac.permissions import access_of
    from kubewright.manager.operator import foreign_kinds

    if "crds" in parts and not check:
        for note in (*foreign_kinds(operator), *large_crds(operator)):
            click.echo(f"{note}.", err=True)
    if not (files := project_files(operator, folder, parts=parts)):
        raise click.ClickException(
            f"{operator.package} declares nothing to generate from; "
            "it needs a class with a group of yours and a version."
        )
    if check:
        _print_stale(folder, len(files), stale_files(operator, folder, parts=parts), output_format)
        return
    if "rbac" in parts:
        for note in access_of(operator).notes:
            click.echo(f"{note}.", err=True)
    done = write_project(operator, folder, parts=parts)
    for path in done.removed:
        click.echo(f"{folder / path} is removed: nothing makes it any more.", err=True)
    for sentence in done.left_over:
        click.echo(f"{sentence}.", err=True)
    _print_written(folder, done.files, done.changed, output_format, removed=list(done.removed))


def _breaking_changes(operator: Operator, old: Path) -> Iterable[BreakingChange]:
    from kubewright.generate.crds.compatibility import breaking_changes, crds_in
    from kubewright.generate.crds.schema_changes import BreakingChange
    from kubewright.generate.project import operator_crds

    new = operator_crds(operator)
    for name, crd in crds_in(old).items():
        if name not in new:
            yield BreakingChange(name, "kind removed", "no class makes it any more")
            continue
        for found in breaking_changes(crd, new[name]):
            yield BreakingChange(f"{name}: {found.path}", found.change, found.detail, found.affects)


async def _check_stored(operator: Operator, context: str | None) -> list[Any]:
    from kubewright.cli.progress import display
    from kubewright.client.connection import connect
    from kubewright.generate.crds.stored_objects import check_stored_objects
    from kubewright.generate.project import operator_crds

    async with connect(load_config(None, context)) as client:
        crds, checks = operator_crds(operator), []
        with display(after=1.0) as progress:
            for done, (name, crd) in enumerate(crds.items()):
                progress(f"checking the objects of {name}", done, len(crds))
                checks.append(await check_stored_objects(client, crd))
    click.echo(f"Objects checked: {sum(check_result.objects for check_result in checks)}.", err=True)
    return [invalid for check_result in checks for invalid in check_result.invalid]


def _least_role(operator: Operator, audit: Path, user: str | None) -> str:
    from kubewright._base import yaml
    from kubewright.generate.rbac.audit import least_access
    from kubewright.generate.rbac.permissions import roles_of

    return yaml.dump_all(roles_of(least_access(_audited_requests(operator, audit, user), home=operator.namespace)))


def _deviations(operator: Operator, audit: Path, user: str | None) -> list[Deviation]:
    from kubewright.generate.rbac.audit import deviations
    from kubewright.generate.rbac.permissions import access_of
    from kubewright.generate.rbac.roles import services_grants

    asked = _audited_requests(operator, audit, user)
    return deviations(access_of(operator).everywhere, asked, services=services_grants(operator))


def _audited_requests(operator: Operator, audit: Path, user: str | None) -> frozenset[AuditedRequest]:
    from kubewright.generate.rbac.audit import read_audit
    from kubewright.generate.rbac.roles import ACCOUNT

    account = f"system:serviceaccount:{operator.namespace}:{operator.name}-{ACCOUNT}"
    with audit.open(encoding="utf-8", errors="replace") as lines:
        return read_audit(lines, user=user or account, source=str(audit))


def _print_findings(found: Sequence[Any], output_format: str, *, otherwise: str, problem: str) -> None:
    """Print findings; fail if there are any."""
    if output_format == "json":
        print_json(list(found))
    else:
        for finding in found:
            click.echo(visible(str(finding)))
    if found:
        raise click.ClickException(problem.format(len(found)))
    click.echo(f"{otherwise.capitalize()}.", err=True)


def _documents(crds: tuple[Path, ...], openapi: Path | None, context: str | None, *, builtin: bool) -> Documents:
    from kubewright.generate.models.sources import read_crds, read_openapi

    if crds:
        return read_crds(crds)
    if openapi is not None:
        return read_openapi(openapi)
    return asyncio.run(_ask_cluster(context, builtin=builtin))


async def _ask_cluster(context: str | None, *, builtin: bool) -> Documents:
    from kubewright.cli.progress import display
    from kubewright.client.connection import connect
    from kubewright.generate.models.cluster_documents import cluster_documents

    async with connect(load_config(None, context)) as client:
        with display() as progress:
            progress("asking the cluster for its kinds")
            return await cluster_documents(client, builtin=builtin)


def _finish(folder: Path, files: Mapping[str, bytes], *, check: bool, output_format: str) -> None:
    from kubewright.generate.output import differences, write_files

    if not check:
        _print_written(folder, len(files), write_files(folder, files), output_format)
        return
    stale = {str(folder / path): text for path in sorted(files) for text in differences(folder, {path: files[path]})}
    _print_stale(folder, len(files), stale, output_format)


def _print_written(folder: Path, files: int, changed: Sequence[str], output_format: str, **more: list[str]) -> None:
    click.echo(f"{folder}: {files} files, {len(changed)} of them changed.", err=True)
    if output_format == "json":
        print_json({"folder": str(folder), "files": files, "changed": list(changed), **more})


def _print_stale(folder: Path, files: int, stale: Mapping[str, str], output_format: str) -> None:
    if output_format == "json":
        found = [{"file": file, "difference": text} for file, text in stale.items()]
        print_json({"folder": str(folder), "files": files, "stale": found})
    else:
        for text in stale.values():
            click.echo(text)
    if stale:
        raise click.ClickException(f"{len(stale)} files in {folder} are stale; run the command without --check.")
