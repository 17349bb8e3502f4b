"""@setup_with_manager: what an operator says about its manager, said once for every way of starting it.

    @setup_with_manager(scopes={Secret: Scope(labels="app=shop")}, defaults=ManagerOptions(leader_election=True))
    def setup(manager: Manager) -> None:
        manager.add(poll_prices)
        manager.add_readyz_check("database", database_answers)

It is SetupWithManager of controller-runtime, for the whole operator. The decorator only records; `operator` finds what
it recorded as it finds controllers, and `manager` calls the function. Which controllers there are is not said here:
all that the package declares.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final, final, overload

import msgspec

from kubewright.api.resource import KubeObject
from kubewright.cache.scope import Scope
from kubewright.errors import ConfigError
from kubewright.manager.options import ManagerOptions

__all__ = ("ManagerSetup", "setup_with_manager", "single_setup")

SetUp = Callable[[Any], None]

_OF_THE_PROJECT: Final = {"name": "name", "namespace": "namespace", "watch_namespaces": "namespaces"}
"""Options that the generated manifests have to know, and what they are called in pyproject.toml."""


@final
class ManagerSetup:
    """What `setup_with_manager` recorded. Calling it calls the function."""

    def __init__(self, function: SetUp, *, scopes: Mapping[type[KubeObject], Scope], defaults: ManagerOptions) -> None:
        self.scopes = dict(scopes)
        self.defaults = _given(defaults)
        """The options that are not as `ManagerOptions` has them."""
        self._function = _checked(function)
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__
        self.__module__ = function.__module__
        for option, key in _OF_THE_PROJECT.items():
            if option in self.defaults:
                raise ConfigError(
                    f"{self}: {option} is said with {key} under [tool.kubewright] in pyproject.toml, or with "
                    f"--{option.replace('_', '-')}; leave it out of the defaults"
                )

    def __call__(self, manager: Any) -> None:
        self._function(manager)

    def __str__(self) -> str:
        return f"{self.__module__}.{self.__name__}"


@overload
def setup_with_manager(function: SetUp, /) -> ManagerSetup: ...


@overload
def setup_with_manager(
    *, scopes: Mapping[type[KubeObject], Scope] | None = None, defaults: ManagerOptions | None = None
) -> Callable[[SetUp], ManagerSetup]: ...


def setup_with_manager(
    function: SetUp | None = None,
    /,
    *,
    scopes: Mapping[type[KubeObject], Scope] | None = None,
    defaults: ManagerOptions | None = None,
) -> Any:
    """Declare a plain function `def setup(manager: Manager) -> None` that gives the manager what else it runs.

    It is called before the manager starts, however the operator is started: by `kubewright run` and `kubewright dev`,
    by `python -m` of its package, or in a test with `running`. They find it in the package; a program of one file gives
    it to `run` with its controllers. An operator has one.

    Args:
        scopes: What the cache watches and keeps of single kinds, where a controller declares nothing else.
        defaults: Options of the manager. The file, the environment and flags say otherwise, and ports and certificates
            are those of the place: outside a container and in a test no port is opened unless it is asked for there.
    """

    def record(function: SetUp) -> ManagerSetup:
        return ManagerSetup(function, scopes=scopes or {}, defaults=defaults or ManagerOptions())

    return record if function is None else record(function)


def single_setup(found: list[ManagerSetup]) -> ManagerSetup | None:
    """The only one, or None. ConfigError if there are several: no order between them would be anybody's choice."""
    if len(found) > 1:
        raise ConfigError(
            f"the manager is set up twice, by {found[0]} and by {found[1]}; make one function of them, which may call "
            "others"
        )
    return found[0] if found else None


def _given(options: ManagerOptions) -> dict[str, Any]:
    fields = msgspec.structs.fields(ManagerOptions)
    return {field.name: value for field in fields if (value := getattr(options, field.name)) != field.default}


def _checked(function: SetUp) -> SetUp:
    name = getattr(function, "__name__", repr(function))
    if not inspect.isfunction(function):
        raise ConfigError(f"@setup_with_manager is written above a function; {name} is none")
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise ConfigError(
            f"{name} is async, but it is called before the event loop has anything to wait for; make it a plain "
            "function, and give what waits to manager.add"
        )
    try:
        inspect.signature(function).bind(None)
    except TypeError as exc:
        raise ConfigError(f"{name} gets one argument, the manager: {exc}; write def {name}(manager)") from None
    return function
