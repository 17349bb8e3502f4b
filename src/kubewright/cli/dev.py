"""`kubewright dev`: the operator on an embedded cluster, started again within a second of every change of its code.

The cluster and its objects stay; the operator's modules are imported anew, changed CRDs are applied, and its
controllers look at every object again. Watches of built-in kinds stay warm; those of the operator's own kinds begin
anew with their classes. Code that cannot be imported is told, and the next change tried. Each run of a
reconciler is one line: which object, why, how long, and how it ended.
"""

from __future__ import annotations

import asyncio
import shlex
import socket
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import click

from kubewright._base.extras import optional
from kubewright.cli.run import assembled, local_options
from kubewright.errors import ConfigError, KubewrightError

if TYPE_CHECKING:
    from kubewright.cache.cache import Cache
    from kubewright.client.client import Client
    from kubewright.client.config import Config
    from kubewright.generate.operator import Operator
    from kubewright.manager.manager import Manager

__all__ = ("dev",)


@click.command()
@click.option("--samples", is_flag=True, help="Apply the objects in config/samples.")
@click.option("--port", default=0, metavar="N", help="Where the embedded API server listens; any free port by default.")
@click.option("--no-webhooks", is_flag=True, help="Do not serve webhooks.")
def dev(*, samples: bool, port: int, no_webhooks: bool) -> None:
    """Run the operator on an embedded cluster, and again after each change of its code."""
    from kubewright._base.logs import configure
    from kubewright._base.loop import run as run_loop
    from kubewright.generate.operator import project_settings

    optional("watchfiles", extra="cli", purpose="Watching for changes")
    folder = Path()
    package = project_settings(folder).operator
    if not package:
        raise ConfigError("there is no project here; go to its folder, or start one with `kubewright init`")
    # Two edits within a second may leave a file of the same size and time: compiled code could not be told stale.
    sys.dont_write_bytecode = True
    configure(level="warning")
    run_loop(_Session(folder.absolute(), package, webhooks=not no_webhooks).run(samples=samples, port=port))


@final
class _Session:
    """A cluster, and one generation of the operator after the other."""

    def __init__(self, folder: Path, package: str, *, webhooks: bool) -> None:
        self._folder = folder
        self._package = package
        self._webhooks = webhooks
        self._installed: dict[str, Any] = {}
        self._cache: Cache | None = None
        self._stop = asyncio.Event()

    async def run(self, *, samples: bool, port: int) -> None:
        from kubewright.client.config import Config
        from kubewright.cluster.embedded import EmbeddedCluster
        from kubewright.manager.signals import stop_on_signal

        async with EmbeddedCluster(port=port) as cluster:
            config = Config.load(kubeconfig=cluster.kubeconfig)
            click.echo(f"An embedded cluster is ready at {config.server}. Ctrl-C stops it.", err=True)
            click.echo(f"export KUBECONFIG={shlex.quote(str(cluster.kubeconfig))}")
            with stop_on_signal(self._stop.set):
                await self._generations(config, cluster.client, samples=samples)

    async def _generations(self, config: Config, client: Client, *, samples: bool) -> None:
        from watchfiles import PythonFilter, awatch

        root = next((path for path in (self._folder / "src", self._folder) if (path / self._package).is_dir()), None)
        if root is None:
            raise ConfigError(f"there is no package {self._package} in {self._folder}")
        changes = awatch(
            root / self._package, watch_filter=PythonFilter(), stop_event=self._stop, debounce=100, step=20
        )
        change = asyncio.ensure_future(anext(changes, None))
        while not self._stop.is_set():
            manager = await self._start(config, client)
            if samples and manager is not None:
                samples = not await self._apply_samples(client)
            found = await change
            begun = time.monotonic()
            if manager is not None:
                await manager.__aexit__(None, None, None)
            if found is None:
                return
            self._let_go()
            change = asyncio.ensure_future(anext(changes, None))
            names = ", ".join(sorted({Path(path).name for _, path in found}))
            click.secho(f"{names} changed; starting again", fg="cyan", err=True)
            self._begun = begun

    _begun: float | None = None

    async def _start(self, config: Config, client: Client) -> Manager | None:
        """The next generation at work; None if it could not be started."""
        from kubewright.cluster.install import install_crds
        from kubewright.generate.operator import load_operator
        from kubewright.generate.project import operator_crds

        for name in [name for name in sys.modules if f"{name}.".startswith(f"{self._package}.")]:
            del sys.modules[name]
        try:
            operator = load_operator(str(self._folder))
            crds = operator_crds(operator)
            for name, crd in crds.items():
                # Conversion is pointed here by the webhooks' own registration.
                wanted = {**crd, "spec": {key: part for key, part in crd["spec"].items() if key != "conversion"}}
                if self._installed.get(name) != wanted:
                    await install_crds(client, wanted)
                    self._installed[name] = wanted
            warm = len(self._cache.informers()) if self._cache is not None else 0
            manager = self._manager(operator, config, client)
            await manager.__aenter__()
        except KubewrightError as error:
            click.secho(f"{error}", fg="red", err=True)
            return None
        kept = f", watches kept warm: {warm}" if warm else ""
        took = f" in {time.monotonic() - self._begun:.2f} s" if self._begun is not None else ""
        counts = {"controller": len(operator.controllers), "webhook": len(operator.webhooks)}
        words = ", ".join(f"{count} {noun}{'s' if count > 1 else ''}" for noun, count in counts.items() if count)
        click.secho(f"started{took}: {words}{kept}", fg="cyan", err=True)
        return manager

    def _manager(self, operator: Operator, config: Config, client: Client) -> Manager:
        from msgspec.structs import replace

        from kubewright.cache.cache import Cache
        from kubewright.cache.scope import Scope

        for declaration in operator.controllers:
            declaration.reconcile = told(declaration.name, declaration.reconcile)
        options = replace(local_options(operator, webhooks=self._webhooks), webhook_port=_free_port())
        if self._cache is None:
            self._cache = Cache(client, default_scope=Scope(namespaces=operator.namespaces))
        kept = self._cache
        return assembled(operator, options, config, client, address="127.0.0.1", cache=lambda _: kept)

    def _let_go(self) -> None:
        """End what the last generation has made of the cache: its own classes, and indexes by its functions."""
        cache = self._cache
        for informer in cache.informers() if cache is not None else ():
            if informer.kind.__module__.startswith("kubewright.k8s.") and not informer.store.index_names:
                continue
            while cache is not None and informer in cache.informers():
                cache.release(informer)

    async def _apply_samples(self, client: Client) -> bool:
        from kubewright._base import yaml
        from kubewright.api.codec import from_tree
        from kubewright.api.dynamic import Dynamic

        files = [file for file in sorted((self._folder / "config/samples").glob("*.yaml")) if "kustom" not in file.name]
        try:
            for file in files:
                for tree in yaml.load_all(file.read_text(encoding="utf-8")):
                    await client.apply(from_tree(Dynamic(tree["apiVersion"], tree["kind"]), tree), force=True)
        except (KubewrightError, OSError, ValueError) as error:
            click.secho(f"the samples cannot be applied: {error}", fg="red", err=True)
            return False
        return True


def told(name: str, reconcile: Any) -> Any:
    """The same reconciler, each run of which is told in one line."""
    import inspect

    def line(obj: Any, ctx: Any, begun: float, error: BaseException | None) -> None:
        causes = ", ".join(dict.fromkeys(str(cause) for cause in ctx.causes)) or "it is time"
        end = (
            click.style("ok", fg="green")
            if error is None
            else click.style(f"{type(error).__name__}: {error}", fg="red")
        )
        took = (time.monotonic() - begun) * 1000
        click.echo(f"{time.strftime('%H:%M:%S')} {name} {obj.key}  {took:.1f} ms  {end}  because: {causes}", err=True)

    async def awaited(obj: Any, ctx: Any) -> Any:
        begun, error = time.monotonic(), None
        try:
            return await reconcile(obj, ctx)
        except BaseException as exc:
            error = exc
            raise
        finally:
            line(obj, ctx, begun, error)

    def called(obj: Any, ctx: Any) -> Any:
        begun, error = time.monotonic(), None
        try:
            return reconcile(obj, ctx)
        except BaseException as exc:
            error = exc
            raise
        finally:
            line(obj, ctx, begun, error)

    return awaited if inspect.iscoroutinefunction(reconcile) else called


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
