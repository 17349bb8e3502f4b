"""Adds kinds and webhooks to a project. Pure functions from project to project, for `kubewright create`.

Names are checked here, before anything is rendered. A built-in kind of that name is used, unless the user asks for a
resource of their own.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kubewright.api.kinds import pluralize
from kubewright.errors import ConfigError
from kubewright.scaffold import names
from kubewright.scaffold.project import Kind, KindWebhooks, Project

__all__ = ("add_api", "add_webhook", "builtin_kind")


def builtin_kind(group: str, version: str, kind: str) -> Kind | None:
    """The entry of a built-in kind, without controller and webhooks; None if there is no such kind."""
    definition = names.builtin_definition(group, version, kind)
    if definition is None:
        if group == "core":
            raise ConfigError(f"Kubernetes has no {kind} in core/{version}; check the version and the spelling")
        return None
    word = definition.gvk.group or "core"
    return Kind(
        group=word, version=version, kind=kind, plural=definition.plural, namespaced=definition.namespaced, core=True
    )


def add_api(
    project: Project,
    *,
    group: str,
    version: str,
    kind: str,
    plural: str = "",
    namespaced: bool | None = None,
    resource: bool | None = None,
    controller: bool | None = None,
    overwrite: bool = False,
) -> Project:
    """Add a kind: with a class unless it is built in, and a controller.

    `resource` is True for a kind of the project's own, False for a built-in one, None for whichever it is. With
    `overwrite` a kind that exists already is written again; what it has, it keeps. A plural and a scope that are not
    given are those that the kind has in the project. One version has the controller: the first, if it is not said.
    """
    names.check_version(version)
    names.check_kind(kind)
    builtin = None if resource else builtin_kind(group, version, kind)
    if builtin is None and resource is False:
        raise ConfigError(
            f"{kind} in {group}/{version} is no kind of Kubernetes, so it needs a class; leave --resource=false out"
        )
    others = [] if builtin is not None else _other_versions(project, group, version, kind)
    if controller is None:
        controller = not any(other.controller for other in others)
    if builtin is not None and not controller:
        raise ConfigError(f"{kind} is a kind of Kubernetes: without a controller there is nothing to write")
    present = project.find(group, version, kind)
    alike = next((entry for entry in (present, *others) if entry is not None and entry.resource), None)
    if namespaced is None:
        namespaced = alike.namespaced if alike is not None else True
    entry = builtin or Kind(
        group=group,
        version=version,
        kind=kind,
        plural=plural or (alike.plural if alike is not None else pluralize(kind)),
        namespaced=namespaced,
        resource=True,
        storage=not others,
    )
    entry = msgspec.structs.replace(entry, controller=controller)
    return _with_api(project, entry, overwrite=overwrite)


def _with_api(project: Project, entry: Kind, *, overwrite: bool) -> Project:
    known = project.find(entry.group, entry.version, entry.kind)
    if known is not None:
        if not overwrite and (known.controller or not entry.controller):
            raise ConfigError(
                f"{entry.kind} in {entry.version} is in the project already; use --force to write its files again"
            )
        controller = known.controller or entry.controller
        entry = msgspec.structs.replace(entry, webhooks=known.webhooks, storage=known.storage, controller=controller)
    for other in _other_versions(project, entry.group, entry.version, entry.kind):
        if other.namespaced != entry.namespaced or other.plural != entry.plural:
            raise ConfigError(
                f"{entry.kind} in {other.version} has another scope or plural; all versions of a kind have the same"
            )
        if other.controller and entry.controller:
            raise ConfigError(
                f"{entry.kind} has a controller in {other.version} already, and one is enough for all versions; "
                "add --controller=false"
            )
    return project.with_kind(entry)


def add_webhook(
    project: Project,
    *,
    group: str,
    version: str,
    kind: str,
    defaulting: bool = False,
    validation: bool = False,
    conversion: bool = False,
    operations: Sequence[str] = (),
    overwrite: bool = False,
) -> Project:
    """Add webhooks for a kind of the project or a built-in one; existing webhooks stay."""
    if not (defaulting or validation or conversion):
        raise ConfigError("which webhook? add --defaulting, --validation or --conversion")
    names.check_version(version)
    names.check_kind(kind)
    entry = project.find(group, version, kind) or builtin_kind(group, version, kind)
    if entry is not None and entry.core:
        entry = project.find(entry.group, version, kind) or entry
    if entry is None:
        raise ConfigError(
            f"there is no {kind} in version {version} of group {group!r}; make it first with "
            f"`kubewright create api --group {group} --version {version} --kind {kind}`"
        )
    hooks = entry.webhooks
    asked = {"defaulting": defaulting, "validation": validation, "conversion": conversion}
    doubles = [name for name, wanted in asked.items() if wanted and getattr(hooks, name)]
    if doubles and not overwrite:
        raise ConfigError(f"{kind} has a {doubles[0]} webhook already; use --force to write its files again")
    if conversion:
        _check_conversion(project, entry)
    chosen = tuple(operations) or ("create", "update")
    return project.with_kind(
        msgspec.structs.replace(
            entry,
            webhooks=KindWebhooks(
                defaulting=hooks.defaulting or defaulting,
                validation=hooks.validation or validation,
                conversion=hooks.conversion or conversion,
                defaulting_operations=chosen if defaulting else hooks.defaulting_operations,
                validation_operations=chosen if validation else hooks.validation_operations,
            ),
        )
    )


def _check_conversion(project: Project, entry: Kind) -> None:
    others = _other_versions(project, entry.group, entry.version, entry.kind)
    if not others:
        raise ConfigError(
            f"{entry.kind} has one version, so there is nothing to convert; add another with `kubewright create api`"
        )
    for other in others:
        if other.webhooks.conversion:
            raise ConfigError(f"{entry.kind} is converted in {other.version} already; one place is enough")


def _other_versions(project: Project, group: str, version: str, kind: str) -> list[Kind]:
    return [
        other
        for other in project.resources
        if other.resource and (other.group, other.kind) == (group, kind) and other.version != version
    ]
