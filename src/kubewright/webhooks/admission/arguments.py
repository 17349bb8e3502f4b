"""The arguments of an admission handler: a handler gets what its parameters name.

    async def validate_cache(cache: Cache, old: Cache | None, client: Client, errors: FieldErrors) -> None: ...

| parameter | what |
| --- | --- |
| `obj`, or a first parameter of any other name | the new object; on DELETE the stored one |
| `new` | the new object; None on DELETE |
| `old` | the stored object; None on CREATE |
| `request` | the `AdmissionRequest`: operation, user, namespace, dry-run, subresource |
| `errors` | `FieldErrors` to add to |
| `warnings` | `Warnings` to add to |
| `audit` | a dict whose entries go to the audit log |
| `client` | a client of the cluster; in a dry-run its writes are dry-runs too |
| `cached` | a `CacheReader` for the kinds that the declaration `reads`; the handler is called once they are in sync |

A parameter with a default of its own and another name keeps its default. `declarations` reads the parameters when a
handler is declared, so that a wrong one fails at import and not at the first request.
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

__all__ = ("Arguments", "Parameters")

_NAMES: Final = ("obj", "new", "old", "request", "errors", "warnings", "audit", "client", "cached")


@final
class Arguments:
    """Every value a handler can ask for, in one admission request."""

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
class Parameters:
    """The parameters of one handler, each with the name of the value it gets."""

    __slots__ = ("_keyword", "_positional", "names")

    def __init__(self, handler: Callable[..., Any], *, what: str) -> None:
        self._positional: list[str] = []
        self._keyword: list[tuple[str, str]] = []
        signature = inspect.signature(handler).parameters
        for position, parameter in enumerate(signature.values()):
            source = _source(parameter, first=position == 0, named=signature, what=what)
            if source is None:
                continue
            if parameter.kind is parameter.POSITIONAL_ONLY:
                self._positional.append(source)
            else:
                self._keyword.append((parameter.name, source))
        self.names = frozenset((*self._positional, *(source for _, source in self._keyword)))
        """The values that the handler asks for."""

    def call(self, handler: Callable[..., Any], arguments: Arguments) -> Any:  # hot
        """Call the handler: its result, or its coroutine."""
        named = {name: getattr(arguments, source) for name, source in self._keyword}
        return handler(*(getattr(arguments, source) for source in self._positional), **named)


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
