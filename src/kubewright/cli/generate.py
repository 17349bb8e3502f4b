"""`kubewright generate`: write files that follow from something else, or check that they still do.

A thin skin over `kubewright.generate`. `--check` writes nothing, prints what is stale and exits with 1, for
CI.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from kubewright.generate.openapi import Documents

__all__ = ("generate",)

_PATH = click.Path(exists=True, path_type=Path)


@click.group()
def generate() -> None:
    """Write classes and manifests that follow from something else."""


@generate.command()
@click.option(
    "--crd", "crds", type=_PATH, multiple=True, help="A file or folder with CustomResourceDefinitions; repeatable."
)
@click.option("--openapi", type=_PATH, help="A file or folder with OpenAPI v3 documents, as saved from /openapi/v3.")
@click.option("--cluster", is_flag=True, help="Ask the cluster of the kubeconfig.")
@click.option("--context", metavar="NAME", help="The context of the kubeconfig, with --cluster.")
@click.option("--output", required=True, type=click.Path(file_okay=False, path_type=Path), help="The package's folder.")
@click.option("--package", metavar="NAME", help="The package's name for imports; the folder's name if not given.")
@click.option("--check", is_flag=True, help="Write nothing; fail if the files are not up to date.")
def models(
    *,
    crds: tuple[Path, ...],
    openapi: Path | None,
    cluster: bool,
    context: str | None,
    output: Path,
    package: str | None,
    check: bool,
) -> None:
    """Write Python classes for kinds, one module per group-version.

    The kinds come from CRD manifests, from saved OpenAPI documents or from a cluster. Kinds Kubewright has
    classes for already are left out.
    """
    from kubewright.generate.models import generate_models

    if (bool(crds), openapi is not None, cluster).count(True) != 1:
        raise click.UsageError("Say where the kinds come from: one of --crd, --openapi and --cluster.")
    if context and not cluster:
        raise click.UsageError("--context goes with --cluster.")
    name = package or output.absolute().name
    if not all(part.isidentifier() for part in name.split(".")):
        raise click.UsageError(f"{name!r} is no name of a Python package; give one with --package.")
    documents = _documents(crds, openapi, context, builtin=name == "kubewright.k8s")
    _finish(output, generate_models(documents, package=name), check=check)


def _documents(crds: tuple[Path, ...], openapi: Path | None, context: str | None, *, builtin: bool) -> Documents:
    from kubewright.generate.sources import read_crds, read_openapi

    if crds:
        return read_crds(crds)
    if openapi is not None:
        return read_openapi(openapi)
    return asyncio.run(_ask_cluster(context, builtin=builtin))


async def _ask_cluster(context: str | None, *, builtin: bool) -> Documents:
    from kubewright.client.connect import connect
    from kubewright.generate.cluster_documents import cluster_documents

    async with connect(context=context) as client:
        return await cluster_documents(client, builtin=builtin)


def _finish(folder: Path, files: Mapping[str, bytes], *, check: bool) -> None:
    from kubewright.generate.output import differences, write_files

    if not check:
        changed = write_files(folder, files)
        click.echo(f"{folder}: {len(files)} files, {len(changed)} of them changed.", err=True)
        return
    stale = differences(folder, files)
    for text in stale:
        click.echo(text)
    if stale:
        raise click.ClickException(f"{len(stale)} files in {folder} are stale; run the command without --check.")
