"""run(): an operator as the whole of a process.

    run(reconcile, check)            # controllers, webhooks and functions under a manager, until SIGINT or SIGTERM

A program calls it once, at its end. It starts the event loop; inside a running loop, `await manager.run()` instead.
"""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from inspect import iscoroutine
from typing import Any, TypeVar, overload

from kubewright._base.loop import run as run_loop
from kubewright.client.config.config import Config
from kubewright.errors import ConfigError
from kubewright.manager.manager import Addable, Manager
from kubewright.manager.options import ManagerOptions
from kubewright.manager.setup import ManagerSetup

__all__ = ("run",)

T = TypeVar("T")


@overload
def run(
    *runnables: Addable | ManagerSetup,
    options: ManagerOptions | None = None,
    config: Config | None = None,
    namespaces: Sequence[str] = (),
) -> None: ...


@overload
def run(manager: Manager, /) -> None: ...


@overload
def run(coroutine: Coroutine[Any, Any, T], /) -> T: ...


def run(
    *given: Any, options: ManagerOptions | None = None, config: Config | None = None, namespaces: Sequence[str] = ()
) -> Any:
    """Run controllers, webhooks and async functions in this process until SIGINT or SIGTERM, on the fastest loop.

    They get one `Manager`; `options`, `config` and `namespaces` are its arguments, and what is not given comes from the
    environment. More about the manager is said below `setup_with_manager`, whose function is given here as well: then
    `kubewright dev` and tests find it in the module, too. Or make the manager, and call `run(manager)`. A program that
    is no operator calls `run(main())`: the coroutine runs to its end on the same loop, and `run` returns its result.

    The loop is uvloop's where that is installed, else asyncio's own.
    """
    alone = given[0] if len(given) == 1 and (isinstance(given[0], Manager) or iscoroutine(given[0])) else None
    if alone is None:
        return run_loop(_managed(*given, options=options, config=config, namespaces=namespaces))
    if options is not None or config is not None or namespaces:
        if iscoroutine(alone):
            alone.close()
        raise ConfigError("run() passes options, config and namespaces to a manager it makes; leave them out here")
    return run_loop(alone.run() if isinstance(alone, Manager) else alone)


async def _managed(*runnables: Addable | ManagerSetup, **arguments: Any) -> None:
    await Manager(*runnables, **arguments).run()
