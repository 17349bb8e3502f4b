"""A handler takes what it names: its parameters say what it wants to know.

    async def validate_cache(cache: Cache, old: Cache | None, client: Client, errors: FieldErrors) -> None: ...

| parameter | what |
| --- | --- |
| `obj`, or a first parameter of any other name | the object; what is stored of it when it is being deleted |
| `new` | the object as it is to be; None when it is being deleted |
| `old` | the object as it is stored; None when it is being created |
| `request` | the `AdmissionRequest`: operation, user, namespace, dry-run, subresource |
| `errors` | `FieldErrors` to add to |
| `warnings` | `Warnings` to add to |
| `audit` | a dict whose entries go to the audit log |
| `client` | a client of the cluster; in a dry-run its writes are dry-runs too |
| `cached` | a `CacheReader` for the kinds that the declaration `reads`; the handler is called once they are in sync |

A parameter with a default of its own and another name is left alone. What cannot be given is refused when the handler
is declared, not when the first request comes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final, final

from kubewright.cache.reader import CacheReader
from kubewright.client.client import Client
from kubewright.errors import ConfigError
from kubewright.webhooks.admission.field_errors import FieldErrors, Warnings
from kubewright.webhooks.admission.requests import AdmissionRequest

__all__ = ("Arguments", "Given")

_NAMES: Final = ("obj", "new", "old", "request", "errors", "warnings", "audit", "client", "cached")


@final
class Given:
    """Everything a handler can ask for, in one admission."""

    __slots__ = _NAMES

    def __init__(
        self,
        *,
        obj: Any,
        new: Any = None,
        old: Any = None,
        request: AdmissionRequest | None = None,
        client: Client | None = None,
        cached: CacheReader | None = None,
    ) -> None:
        self.obj = obj
        self.new = new
        self.old = old
        self.request = request
        self.client = client
        self.cached = cached
        self.errors = FieldErrors()
        self.warnings = Warnings()
        self.audit: dict[str, str] = {}


@final
class Arguments:
    """Which of them one handler names."""

    __slots__ = ("_by_name", "_by_place", "names")

    def __init__(self, handler: Callable[..., Any], *, what: str) -> None:
        self._by_place: list[str] = []
        self._by_name: list[tuple[str, str]] = []
        taken = inspect.signature(handler).parameters
        for place, parameter in enumerate(taken.values()):
            source = _source(parameter, first=place == 0, named=taken, what=what)
            if source is None:
                continue
            if parameter.kind is parameter.POSITIONAL_ONLY:
                self._by_place.append(source)
            else:
                self._by_name.append((parameter.name, source))
        self.names = frozenset((*self._by_place, *(source for _, source in self._by_name)))
        """What is asked for."""

    def call(self, handler: Callable[..., Any], given: Given) -> Any:  # hot
        """The handler's answer, or its coroutine."""
        named = {name: getattr(given, source) for name, source in self._by_name}
        return handler(*(getattr(given, source) for source in self._by_place), **named)


def _source(parameter: inspect.Parameter, *, first: bool, named: Any, what: str) -> str | None:
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        raise ConfigError(f"{what}: *{parameter.name} says nothing about what it wants; name the parameters")
    if parameter.name in _NAMES:
        return parameter.name
    if first and parameter.kind is not parameter.KEYWORD_ONLY and "obj" not in named and "new" not in named:
        return "obj"
    if parameter.default is not parameter.empty:
        return None
    raise ConfigError(
        f"{what}: there is nothing called {parameter.name!r} to give; a handler takes {', '.join(_NAMES)}"
    )
