"""The PROJECT file: the options of every command so far, in the format of kubebuilder's version 3.

Every file of a project can be rendered from it again, so the commands change only this. It is YAML that tools write and
people read; an invalid edit is an error with the field and the way out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, final

import msgspec

from kubewright._base import yaml
from kubewright._base.version import __version__
from kubewright.api.names import dns1123_label_errors
from kubewright.errors import ConfigError
from kubewright.scaffold import names

__all__ = ("FILE", "Kind", "KindWebhooks", "Project", "load_project")

FILE: Final = "PROJECT"
_LAYOUT: Final = "python.kubewright.io/v1"
_HEADER: Final = (
    "# How this project was made: `kubewright update` renders it again from here.\n"
    "# Change it with the commands (init, create, edit), not by hand.\n"
)
_OPERATIONS: Final = ("create", "update", "delete", "connect")


@final
class KindWebhooks(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The webhooks of a kind."""

    defaulting: bool = False
    validation: bool = False
    conversion: bool = False
    defaulting_operations: tuple[str, ...] = ("create", "update")
    validation_operations: tuple[str, ...] = ("create", "update")


@final
class Kind(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """A kind of the project: its own, or a built-in one."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True
    resource: bool = False
    """It is the project's own: there is a class and a CRD."""
    controller: bool = False
    core: bool = False
    """Kubernetes itself has it."""
    storage: bool = True
    """Of several versions, the one that is stored."""
    webhooks: KindWebhooks = KindWebhooks()

    @property
    def module(self) -> str:
        return names.module_name(self.kind)

    @property
    def has_webhooks(self) -> bool:
        return self.webhooks.defaulting or self.webhooks.validation or self.webhooks.conversion


@final
class Project(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True
):
    """The content of a PROJECT file."""

    project_name: str
    domain: str
    package: str
    version: str = msgspec.field(default="3")
    cli_version: str = ""
    layout: tuple[str, ...] = (_LAYOUT,)
    owner: str = ""
    namespace: str = ""
    """Where the operator runs; `<name>-system` if empty."""
    namespaced: bool = False
    """It works only in its own namespace."""
    namespaces: tuple[str, ...] = ()
    """It works only in these."""
    resources: tuple[Kind, ...] = ()

    @classmethod
    def new(
        cls,
        *,
        name: str,
        domain: str,
        owner: str = "",
        namespace: str = "",
        namespaced: bool = False,
        namespaces: tuple[str, ...] = (),
    ) -> Project:
        """A project without kinds; its names are checked."""
        names.check_domain(domain)
        names.check_project_name(name)
        return cls(
            project_name=name,
            domain=domain,
            package=names.package_name(name),
            owner=owner,
            namespace=namespace,
            namespaced=namespaced,
            namespaces=namespaces,
        ).validated()

    @property
    def home(self) -> str:
        """The operator's namespace."""
        return self.namespace or f"{self.project_name}-system"

    @property
    def watched(self) -> tuple[str, ...]:
        """The namespaces that it works in; empty for all."""
        return self.namespaces or ((self.home,) if self.namespaced else ())

    def full_group(self, kind: Kind) -> str:
        """The API group of a kind on the API server; empty for core."""
        if kind.core:
            return "" if kind.group == "core" else kind.group
        return f"{kind.group}.{self.domain}" if kind.group else self.domain

    def find(self, group: str, version: str, kind: str) -> Kind | None:
        """The entry of a kind."""
        for entry in self.resources:
            if (entry.group, entry.version, entry.kind) == (group, version, kind):
                return entry
        return None

    def with_kind(self, kind: Kind) -> Project:
        """With a kind added, or replaced."""
        others = [entry for entry in self.resources if not _same(entry, kind)]
        place = next((i for i, entry in enumerate(self.resources) if _same(entry, kind)), len(others))
        return msgspec.structs.replace(self, resources=(*others[:place], kind, *others[place:])).validated()

    def validated(self) -> Project:
        """Itself; a ConfigError if anything in it is invalid."""
        names.check_domain(self.domain)
        names.check_project_name(self.project_name)
        names.check_package(self.package)
        if not self.owner.isprintable():
            raise ConfigError(f"the owner {self.owner!r} cannot be used: it is one line of visible characters")
        for namespace in (self.home, *self.namespaces):
            if problems := dns1123_label_errors(namespace):
                raise ConfigError(f"the namespace {namespace!r} cannot be used: {problems[0]}")
        owners: dict[str, Kind] = {}
        for entry in self.resources:
            _check_entry(entry, self.domain)
            # The modules of controllers and tests are called after the kind alone.
            first = owners.setdefault(entry.module, entry)
            if (self.full_group(first), first.kind) != (self.full_group(entry), entry.kind):
                raise ConfigError(
                    f"{entry.kind} in {self.full_group(entry) or 'core'} and {first.kind} in "
                    f"{self.full_group(first) or 'core'} would be one module; give one of the two kinds another name"
                )
        return self

    def dump(self) -> str:
        """The text of the file."""
        tree = msgspec.to_builtins(msgspec.structs.replace(self, cli_version=__version__))
        tree["version"], tree["layout"] = self.version, list(self.layout)
        return _HEADER + yaml.dump(dict(sorted(tree.items())))


def load_project(folder: Path) -> Project:
    """The project in a folder."""
    file = folder / FILE
    advice = "restore it from version control, or make the change with the commands"
    try:
        tree: Any = yaml.load(file.read_bytes())
    except FileNotFoundError:
        raise ConfigError(
            f"there is no project in {folder.absolute()}; go to its folder, or start one with `kubewright init`"
        ) from None
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise ConfigError(f"{file} is no YAML: {error}; {advice}") from None
    try:
        project = msgspec.convert(tree, Project)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{file} is invalid: {error}; {advice}") from None
    if project.version != "3" or project.layout != (_LAYOUT,):
        raise ConfigError(f"{file} is of another tool or version ({', '.join(project.layout)}); {advice}")
    try:
        return project.validated()
    except ConfigError as error:
        raise ConfigError(f"{file} is invalid: {error}; {advice}") from None


def _same(one: Kind, other: Kind) -> bool:
    return (one.group, one.version, one.kind) == (other.group, other.version, other.kind)


def _check_builtin(entry: Kind) -> None:
    """The group of a built-in kind becomes an import, so it is one that Kubewright has."""
    definition = names.builtin_definition(entry.group, entry.version, entry.kind)
    if definition is None or entry.group != (definition.gvk.group or "core") or entry.resource:
        raise ConfigError(
            f"{entry.kind} in {entry.group!r}/{entry.version} is no kind of Kubernetes, and core says it is"
        )


def _check_entry(entry: Kind, domain: str) -> None:
    names.check_kind(entry.kind)
    names.check_version(entry.version)
    names.check_plural(entry.plural)
    if entry.core:
        _check_builtin(entry)
    elif entry.group:
        names.check_group(entry.group, domain)
    for operation in (*entry.webhooks.defaulting_operations, *entry.webhooks.validation_operations):
        if operation not in _OPERATIONS:
            raise ConfigError(f"{operation!r} is no operation; choose from {', '.join(_OPERATIONS)}")
