"""rbac: permissions that an operator needs beyond what its declarations show.

    rbac(Secret, verbs=("get", "list", "watch"))
    rbac("pods/log", verbs="get")
    rbac("deployments/scale", group="apps", verbs=("get", "update"), namespace="shop")
    rbac(urls="/metrics", verbs="get")

    @rbac(Namespace, verbs="get")
    @controller(Cache, owns=[Deployment])
    async def reconcile(cache: Cache, ctx: Context) -> None: ...

The kinds that a controller reconciles, owns and watches need no `rbac`: `kubewright generate rbac` knows them from the
declaration. A permission belongs to the operator whose module declares it, as a statement of its own or as a decorator;
nothing is checked at run time.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final, TypeVar, final

import msgspec

from kubewright.api.resource import KubeObject, definition_of
from kubewright.errors import ConfigError

__all__ = ("Permission", "permissions_in", "rbac")

T = TypeVar("T")

_VERBS: Final = frozenset(
    (
        "*",
        "approve",
        "attest",
        "bind",
        "create",
        "delete",
        "deletecollection",
        "escalate",
        "get",
        "impersonate",
        "list",
        "patch",
        "sign",
        "update",
        "use",
        "watch",
    )
)
_URL_VERBS: Final = frozenset(("*", "delete", "get", "head", "options", "patch", "post", "put"))
_DECLARED: Final = "__permissions__"


@final
class Permission(msgspec.Struct, frozen=True, kw_only=True):
    """A policy rule: verbs on resources, or on paths of the API server."""

    verbs: tuple[str, ...]
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    """Only objects of these names; any if empty."""
    urls: tuple[str, ...] = ()
    namespace: str = ""
    """Only in this namespace; in the whole cluster if empty."""
    namespaced: bool | None = None
    """Whether the resources are namespaced; None where only their names are known."""

    def __call__(self, target: T) -> T:
        """Used as a decorator, it returns its target as it is."""
        return target


def rbac(
    *what: type[KubeObject] | str,
    verbs: str | Sequence[str],
    group: str = "",
    subresources: str | Sequence[str] = (),
    names: str | Sequence[str] = (),
    urls: str | Sequence[str] = (),
    namespace: str = "",
) -> Permission:
    """Declare permissions on kinds, on resources by their plural name (with their `group`), or on `urls`.

    `subresources` of the kinds are named instead of the kinds themselves: `rbac(Pod, subresources="log", verbs="get")`.
    """
    found = tuple(name for item in what for name in _resources(item, _words(subresources)))
    groups = {definition_of(item).gvk.group if isinstance(item, type) else group for item in what}
    if len(groups) > 1:
        raise ConfigError("rbac(...): the kinds are of different groups; say it once for each group")
    scopes = {definition_of(item).namespaced if isinstance(item, type) else None for item in what}
    permission = Permission(
        verbs=_words(verbs),
        groups=tuple(groups),
        resources=found,
        names=_words(names),
        urls=_words(urls),
        namespace=namespace,
        namespaced=scopes.pop() if len(scopes) == 1 else None,
    )
    _check(permission)
    # As collections.namedtuple finds its module: a statement of its own leaves nothing else behind to be found by.
    sys._getframe(1).f_globals.setdefault(_DECLARED, []).append(permission)
    return permission


def permissions_in(module: object) -> tuple[Permission, ...]:
    """The permissions that a module declares, in order, each once."""
    return tuple(dict.fromkeys(getattr(module, _DECLARED, ())))


def _resources(item: type[KubeObject] | str, subresources: tuple[str, ...]) -> tuple[str, ...]:
    plural = definition_of(item).plural if isinstance(item, type) else item
    return tuple(f"{plural}/{name}" for name in subresources) if subresources else (plural,)


def _words(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _check(permission: Permission) -> None:
    subject = f"rbac({', '.join(permission.resources or permission.urls)})"
    if bool(permission.resources) == bool(permission.urls):
        raise ConfigError(f"{subject}: say either what resources or what urls it is about")
    if not permission.verbs:
        raise ConfigError(f'{subject}: there is no verb; give some, as in verbs=("get", "list", "watch")')
    if permission.urls and (permission.names or permission.namespace):
        raise ConfigError(f"{subject}: an address has neither a name nor a namespace; leave them out")
    known = _URL_VERBS if permission.urls else _VERBS
    for verb in permission.verbs:
        if verb not in known:
            raise ConfigError(f"{subject}: {verb!r} is no verb; use one of {', '.join(sorted(known))}")
    for name in permission.resources:
        if not name or name != name.lower() or "." in name:
            raise ConfigError(f"{subject}: {name!r} is no resource; write its plural name, and its group with group=")
