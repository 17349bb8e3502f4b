"""The kubeconfig format: read it, merge several files as kubectl does, select a context, write one.

Plain data in and out: no connection, no environment, and no secret is used here. `config.config` decides which files to
read and makes a `Config` from the result of `select`; `kubewright.cluster` writes the kubeconfig of a local control
plane. Every error is a `ConfigError` that names the file and the field.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar, final

import msgspec

from kubewright._base.files import write_private
from kubewright.errors import ConfigError

__all__ = (
    "Cluster",
    "Context",
    "Entry",
    "Exec",
    "Kubeconfig",
    "Selection",
    "User",
    "decode_base64",
    "kubeconfig_tree",
    "merge",
    "merge_into",
    "parse",
    "read",
    "select",
    "write",
)

T = TypeVar("T")


class _Extension(msgspec.Struct, frozen=True):
    name: str = ""
    extension: Any = None


class Cluster(msgspec.Struct, frozen=True, rename="kebab"):
    """The address of a cluster, and how to verify it."""

    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    proxy_url: str = ""
    disable_compression: bool = False
    extensions: tuple[_Extension, ...] = ()

    def __repr__(self) -> str:
        # Without the proxy, whose URL may contain a password, and the extensions, which may contain anything.
        return f"Cluster(server={self.server!r})"


class _Variable(msgspec.Struct, frozen=True):
    name: str = ""
    value: str = ""

    def __repr__(self) -> str:
        return f"_Variable(name={self.name!r})"


class Exec(msgspec.Struct, frozen=True, rename="camel"):
    """A program that prints credentials."""

    command: str = ""
    api_version: str = ""
    args: tuple[str, ...] = ()
    env: tuple[_Variable, ...] = ()
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""

    def __repr__(self) -> str:
        return f"Exec(command={self.command!r})"


class _AuthProvider(msgspec.Struct, frozen=True):
    name: str = ""


class User(
    msgspec.Struct,
    frozen=True,
    rename=lambda name: "tokenFile" if name == "token_file" else name.rstrip("_").replace("_", "-"),
):
    """The credentials of a user."""

    token: str = ""
    token_file: str = ""
    username: str = ""
    password: str = ""
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    as_: str = ""
    as_uid: str = ""
    as_groups: tuple[str, ...] = ()
    as_user_extra: dict[str, tuple[str, ...]] = {}
    auth_provider: _AuthProvider | None = None
    exec_: Exec | None = None

    def __repr__(self) -> str:
        return "User(***)"


class Context(msgspec.Struct, frozen=True):
    """A cluster, a user and a namespace that go together."""

    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _NamedCluster(msgspec.Struct, frozen=True):
    name: str = ""
    cluster: Cluster = Cluster()


class _NamedUser(msgspec.Struct, frozen=True):
    name: str = ""
    user: User = User()


class _NamedContext(msgspec.Struct, frozen=True):
    name: str = ""
    context: Context = Context()


class _File(msgspec.Struct, frozen=True, rename="kebab"):
    kind: str = ""
    clusters: tuple[_NamedCluster, ...] = ()
    users: tuple[_NamedUser, ...] = ()
    contexts: tuple[_NamedContext, ...] = ()
    current_context: str = ""


@final
class Entry(msgspec.Struct, Generic[T], frozen=True):
    """One cluster, user or context, with the file and field it comes from."""

    value: T
    source: str
    """The name of the file, for messages."""
    folder: Path
    """The folder that relative paths are relative to."""
    at: str
    """The field of the file, such as `clusters[0].cluster`."""

    def field(self, name: str) -> str:
        """The name of a field of this entry, for messages."""
        return f"{self.source}: {self.at}.{name}"

    def path(self, text: str) -> Path:
        """A path of this entry, made absolute."""
        return self.folder / text


@final
class Kubeconfig(msgspec.Struct, frozen=True):
    """One kubeconfig file, or several merged."""

    sources: tuple[str, ...]
    clusters: Mapping[str, Entry[Cluster]]
    users: Mapping[str, Entry[User]]
    contexts: Mapping[str, Entry[Context]]
    current_context: str = ""

    @property
    def title(self) -> str:
        """Its name in messages."""
        return ", ".join(self.sources)


@final
class Selection(msgspec.Struct, frozen=True):
    """The cluster, user and namespace of one context."""

    context: str
    namespace: str
    cluster: Entry[Cluster]
    user: Entry[User]


def read(path: Path) -> Kubeconfig:
    """The kubeconfig in a file."""
    source = f"kubeconfig {path}"
    tree = _load_yaml(path, source)
    # An empty file has no entries, so that `touch` makes a file that can be part of $KUBECONFIG.
    return parse({} if tree is None else tree, source=source, folder=path.absolute().parent)


def parse(tree: Any, *, source: str, folder: Path) -> Kubeconfig:
    """A kubeconfig from its JSON tree; relative paths in it are relative to the folder."""
    if not isinstance(tree, dict):
        raise ConfigError(f"{source} is no kubeconfig: it must be a mapping with clusters, users and contexts")
    try:
        file = msgspec.convert(_without_nulls(tree), _File)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{source}: {_sentence(str(error))}") from None
    if file.kind not in ("", "Config"):
        raise ConfigError(f"{source} is no kubeconfig: its kind is {file.kind!r} and not 'Config'")

    def entries(field: str, named: Sequence[tuple[str, T]], inner: str) -> dict[str, Entry[T]]:
        found: dict[str, Entry[T]] = {}
        for index, (name, value) in enumerate(named):
            if not name:
                raise ConfigError(f"{source}: {field}[{index}].name is missing; every entry needs one")
            if name in found:
                raise ConfigError(f"{source}: {field}[{index}].name {name!r} is taken by an entry before it")
            found[name] = Entry(value, source, folder, f"{field}[{index}].{inner}")
        return found

    return Kubeconfig(
        sources=(source,),
        clusters=entries("clusters", [(one.name, one.cluster) for one in file.clusters], "cluster"),
        users=entries("users", [(one.name, one.user) for one in file.users], "user"),
        contexts=entries("contexts", [(one.name, one.context) for one in file.contexts], "context"),
        current_context=file.current_context,
    )


def merge(configs: Sequence[Kubeconfig]) -> Kubeconfig:
    """Several kubeconfigs as one: the first file that has an entry, or a current context, wins.

    As in client-go: tools/clientcmd/loader.go, ClientConfigLoadingRules.Load.
    """

    def first(maps: Iterator[Mapping[str, T]]) -> dict[str, T]:
        found: dict[str, T] = {}
        for one in maps:
            found = {**one, **found}
        return found

    return Kubeconfig(
        sources=tuple(source for config in configs for source in config.sources),
        clusters=first(config.clusters for config in configs),
        users=first(config.users for config in configs),
        contexts=first(config.contexts for config in configs),
        current_context=next((config.current_context for config in configs if config.current_context), ""),
    )


def select(config: Kubeconfig, context: str | None = None) -> Selection:
    """The cluster and the user of a context; without a name, of the current one."""
    name = context or config.current_context
    names = ", ".join(config.contexts) or "none"
    if not name:
        raise ConfigError(f"{config.title} has no current-context; set it, or name a context (there: {names})")
    found = config.contexts.get(name)
    if found is None:
        field = "has no context" if context else "has no such context as its current-context"
        raise ConfigError(f"{config.title} {field} {name!r}; there: {names}")
    cluster = _lookup(config.clusters, found, "cluster", found.value.cluster)
    user = _lookup(config.users, found, "user", found.value.user)
    namespace = found.value.namespace or "default"
    if not re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", namespace):
        raise ConfigError(f"{found.field('namespace')} {namespace!r} cannot be the name of a namespace")
    return Selection(context=name, namespace=namespace, cluster=cluster, user=user)


def decode_base64(entry: Entry[Any], field: str, text: str) -> bytes:
    """The bytes of a base64 field."""
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        raise ConfigError(f"{entry.field(field)} is not valid base64; write it without line breaks") from None


def kubeconfig_tree(
    *,
    name: str,
    server: str,
    ca_data: bytes | None = None,
    client_certificate: bytes | None = None,
    client_key: bytes | None = None,
    token: str | None = None,
    user: str | None = None,
    namespace: str | None = None,
    tls_server_name: str | None = None,
    insecure_skip_tls_verify: bool = False,
) -> dict[str, Any]:
    """A kubeconfig with one context; it and its cluster have the name, and so has the user unless given."""
    user = user or name
    cluster = {
        "server": server,
        "certificate-authority-data": _encode_base64(ca_data),
        "tls-server-name": tls_server_name,
        "insecure-skip-tls-verify": insecure_skip_tls_verify or None,
    }
    secrets = {
        "client-certificate-data": _encode_base64(client_certificate),
        "client-key-data": _encode_base64(client_key),
        "token": token,
    }
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": _without_nulls(cluster)}],
        "users": [{"name": user, "user": _without_nulls(secrets)}],
        "contexts": [
            {"name": name, "context": _without_nulls({"cluster": name, "user": user, "namespace": namespace})}
        ],
        "current-context": name,
    }


def write(path: Path, tree: Mapping[str, Any]) -> None:
    """Write a kubeconfig that only its owner can read, atomically."""
    from kubewright._base import yaml  # see _tree

    try:
        write_private(path, yaml.dump(tree).encode())
    except OSError as error:
        raise ConfigError(f"cannot write kubeconfig {path}: {error.strerror or error}") from error


def merge_into(path: Path, tree: Mapping[str, Any]) -> None:
    """Put the entries of a kubeconfig into a file, in place of those with the same names; use its context.

    Everything else in the file is kept, except its comments. The file need not exist.
    """
    path = path.resolve()
    source = f"kubeconfig {path}"
    with _lock_file(path):
        old = (_load_yaml(path, source) if path.exists() else None) or {}
        parse(old, source=source, folder=path.parent)
        new: dict[str, Any] = {"apiVersion": "v1", "kind": "Config"} | old
        for field in ("clusters", "users", "contexts"):
            added = {entry["name"]: entry for entry in tree.get(field) or ()}
            kept = [added.pop(entry["name"], entry) for entry in old.get(field) or ()]
            new[field] = [*kept, *added.values()]
        new["current-context"] = tree.get("current-context") or old.get("current-context") or ""
        write(path, new)


@contextlib.contextmanager
def _lock_file(path: Path) -> Iterator[None]:
    """Hold the lock file that kubectl also takes while it changes the file (client-go: tools/clientcmd/loader.go)."""
    lock = path.with_name(f"{path.name}.lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock.touch(mode=0o600, exist_ok=False)
    except FileExistsError:
        raise ConfigError(
            f"kubeconfig {path} is being changed by another program; if there is none, remove {lock}"
        ) from None
    except OSError as error:
        raise ConfigError(f"cannot write kubeconfig {path}: {error.strerror or error}") from error
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)


def _load_yaml(path: Path, source: str) -> Any:
    from kubewright._base import yaml  # it takes more than 1 MB, and an operator in a cluster does not need it

    try:
        return yaml.load(path.read_bytes())
    except FileNotFoundError:
        raise ConfigError(f"{source} does not exist") from None
    except OSError as error:
        raise ConfigError(f"{source} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise ConfigError(f"{source} is not YAML: {error}") from None


def _lookup(entries: Mapping[str, Entry[T]], context: Entry[Context], field: str, name: str) -> Entry[T]:
    found = entries.get(name)
    if found is not None:
        return found
    if not name:
        raise ConfigError(f"{context.field(field)} is missing; name one of: {', '.join(entries) or 'none'}")
    known = ", ".join(entries) or "none"
    raise ConfigError(f"{context.field(field)} names {name!r}, which is not among the {field}s ({known})")


def _without_nulls(tree: Any) -> Any:
    """The tree without keys that are null: kubectl writes `users: null` for none."""
    if isinstance(tree, dict):
        return {key: _without_nulls(value) for key, value in tree.items() if value is not None}
    if isinstance(tree, list):
        return [_without_nulls(value) for value in tree]
    return tree


def _sentence(problem: str) -> str:
    """msgspec's `Expected ..., got ... - at $.a[...].b` with the field in front."""
    match = re.fullmatch(r"Expected `(.+?)`, got `(.+?)`(?: - at `\$\.?(.*)`)?", problem)
    if match is None:
        return problem
    wanted, got, field = match.groups()
    names = {
        "str": "text",
        "bool": "true or false",
        "int": "a number",
        "float": "a number",
        "object": "a mapping",
        "array": "a list",
        "null": "empty",
    }
    return f"{field or 'the file'} must be {names.get(wanted, wanted)} and is {names.get(got, got)}"


def _encode_base64(content: bytes | None) -> str | None:
    return None if content is None else base64.b64encode(content).decode()
