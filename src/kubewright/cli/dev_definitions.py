"""DevDefinitions: the CRDs of one session of `kubewright dev`, applied again when the code changes them.

A cluster that has objects does not follow every change: the API server refuses some, others leave objects behind that
the new schema does not allow, or kinds that nobody declares any more. Such a change is applied as far as it can be, and
told, with how to begin with a fresh cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, final

import click

from kubewright.cli.reports import count_noun
from kubewright.cli.terminals import visible
from kubewright.client.client import Client
from kubewright.errors import ApiError, ConfigError, Invalid

__all__ = ("DevDefinitions",)

_SHOWN = 3


@final
class DevDefinitions:
    """What is installed, by name."""

    def __init__(self, client: Client, *, fresh: str) -> None:
        """`fresh` says what to do for a fresh cluster."""
        self._client = client
        self._fresh = fresh
        self._installed: dict[str, Mapping[str, Any]] = {}

    async def update(self, crds: Mapping[str, Mapping[str, Any]]) -> None:
        """Install those that have changed. ConfigError if the server refuses one as it has objects of the old form."""
        from kubewright.cluster.install import install_crds
        from kubewright.generate.crds.stored_objects import check_stored_objects

        for name, crd in crds.items():
            if self._installed.get(name) == crd:
                continue
            invalid: tuple[object, ...] = ()
            with suppress(ApiError):  # objects that cannot be listed, as their converter is gone, are not judged
                invalid = (await check_stored_objects(self._client, crd)).invalid
            try:
                await install_crds(self._client, crd)
            except Invalid as error:
                raise ConfigError(f"the cluster cannot follow the change of {name}: {error}; {self._fresh}") from error
            self._installed[name] = crd
            if invalid:
                self._tell_invalid([str(one) for one in invalid])
        for name in self._installed.keys() - crds.keys():
            del self._installed[name]
            self._tell(
                f"the code declares {name} no more, and the cluster still has it; delete it with "
                f"`kubectl delete crd {name}`, or {self._fresh}"
            )

    def _tell_invalid(self, problems: list[str]) -> None:
        more = len(problems) - _SHOWN
        shown = "\n  ".join([*problems[:_SHOWN], *([f"and {more} more"] if more > 0 else [])])
        self._tell(
            f"{count_noun(len(problems), 'finding')} in objects that were made before the schema changed; correct or "
            f"delete them, or {self._fresh}:\n  {shown}"
        )

    def _tell(self, words: str) -> None:
        click.secho(visible(words), fg="yellow", err=True)
