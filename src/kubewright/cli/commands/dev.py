"""`kubewright dev`: run the operator on an embedded cluster, and restart it within a second of every change of its
code.

The cluster and its objects stay; the operator's modules are imported again, changed CRDs are applied, and its
controllers reconcile every object again. Watches of built-in kinds stay open; those of the operator's own kinds start
again with their new classes. Code that cannot be imported is reported, and the next change is tried. Each reconcile is
one line: which object, why, how long, and the result. `dev_cluster` runs the cluster, `dev_definitions` applies CRDs.

The code is the project in this folder, or a package, or a single file with whatever it imports from its folder.
"""

from __future__ import annotations

import asyncio
import shlex
import sys
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, final

import click
import msgspec

from kubewright._base.extras import optional
from kubewright._base.tasks import cancel_and_wait
from kubewright.cli.commands.run import assemble_manager, local_options, without_conversion
from kubewright.cli.namespaces import create_namespaces, place_sample, print_namespaces, watched_by
from kubewright.cli.reconcile_log import ReconcileLog
from kubewright.cli.reports import count_noun
from kubewright.cli.targets import operator_argument, port_option
from kubewright.cli.terminals import visible
from kubewright.errors import ConfigError, KubewrightError
from kubewright.manager.flags import Flags

if TYPE_CHECKING:
    from kubewright.api.resource import KubeObject
    from kubewright.cache.cache import Cache
    from kubewright.cli.dev_definitions import DevDefinitions
    from kubewright.client.client import Client
    from kubewright.client.config.config import Config
    from kubewright.manager.manager import Manager
    from kubewright.manager.operator import Operator
    from kubewright.manager.options import ManagerOptions

__all__ = ("dev",)

_POLL_SECONDS = 0.3
"""Seconds between two polls of the files, where the system cannot watch them."""


@click.command()
@operator_argument
@click.option("--samples", is_flag=True, help="Apply the objects in config/samples.")
@port_option
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep the cluster's objects in this folder; without it, all are gone when the cluster stops.",
)
@click.option("--merge", is_flag=True, help="Add the cluster to your own kubeconfig and make it the current context.")
@click.option("--no-webhooks", is_flag=True, help="Do not serve webhooks.")
def dev(*, operator: str | None, samples: bool, port: int, data: Path | None, merge: bool, no_webhooks: bool) -> None:
    """Run the operator on an embedded cluster, and again after each change of its code.

    FILE is a Python file with controllers, or a package; without it the project in this folder is meant.
    """
    from kubewright._base.loop import run as run_loop
    from kubewright.manager.options import ManagerOptions

    optional("watchfiles", extra="cli", purpose="Watching for changes")
    code = _find_code(operator)
    # Two edits within a second may leave a file with the same size and time, so that Python would use stale bytecode.
    sys.dont_write_bytecode = True
    session = _Session(code, webhooks=not no_webhooks)
    _configure_logs(ManagerOptions.load(), session.telling)  # until the operator is loaded, which may say more
    data = None if data is None else data.expanduser().absolute()
    run_loop(session.run(samples=samples, port=port, data=data, merge=merge))


def _configure_logs(options: ManagerOptions, telling: ReconcileLog) -> None:
    from kubewright._base.logs import configure

    # Text for people by default, even if the output is no terminal.
    output_format = "text" if options.log_format == "auto" else options.log_format
    configure(level=options.log_level, format=output_format, only=telling)


@final
class _Code(msgspec.Struct, frozen=True, kw_only=True):
    """The files of the operator's code."""

    operator: str
    """What is loaded."""
    package: str
    folder: Path
    """What belongs to the operator besides its code is below this folder."""
    watched: Path
    alone: bool = False
    """It is a single file, and `watched` is the folder that it is in."""

    def owns(self, module: str) -> bool:
        """Whether a module is the operator's: in its package, or for a single file, in its folder."""
        if f"{module}.".startswith(f"{self.package}."):
            return True
        file = getattr(sys.modules.get(module), "__file__", None)
        return self.alone and file is not None and Path(file).parent == self.watched

    def is_affected_by(self, paths: Iterable[str]) -> bool:
        """Whether a change of these files affects the operator."""
        own = {getattr(sys.modules[name], "__file__", None) for name in list(sys.modules) if self.owns(name)}
        return not self.alone or not own.isdisjoint(paths)


def _find_code(name: str | None) -> _Code:
    """The code of the named operator, or of the project in this folder."""
    from kubewright.manager.operator import project_settings

    place = Path(name or ".").resolve()
    operator, package, roots = str(place), place.stem, [place.parent]
    if (place / "pyproject.toml").is_file() or name is None:
        package, roots = project_settings(place).operator, [place / "src", place]
    elif place.suffix != ".py" and not place.is_dir():
        operator = package = name
        roots = [Path.cwd() / "src", Path.cwd()]
    if not package:
        raise ConfigError(
            f"there is no project in {place}; go to its folder, name the file of an operator, or start a project with "
            "`kubewright init`"
        )
    for root in roots:
        found = root / package.replace(".", "/")
        if place.suffix != ".py" and found.is_dir():
            return _Code(operator=operator, package=package, folder=roots[-1], watched=found)
        if found.with_suffix(".py").is_file():
            return _Code(operator=operator, package=package, folder=roots[-1], watched=root, alone=True)
    raise ConfigError(f"there is no {place.name if place.suffix else f'package {package}'} in {roots[-1]}")


async def changed_files(folder: Path, *, stop: asyncio.Event, recursive: bool) -> AsyncIterator[set[str]]:
    """The Python files in a folder that have changed, again and again.

    The operating system reports changes if it can. Its number of watches is limited (inotify's instances), and editors,
    containers and API servers use many; then the files are polled several times a second instead.
    """
    from watchfiles import PythonFilter, awatch

    watching = awatch(folder, watch_filter=PythonFilter(), stop_event=stop, debounce=100, step=20, recursive=recursive)
    try:
        async for batch in watching:
            yield {path for _, path in batch}
    except RuntimeError as error:
        click.secho(f"the system cannot watch the files, so they are polled: {error}", fg="yellow", err=True)
        async for paths in _poll_files(folder, stop, recursive=recursive):
            yield paths


async def _poll_files(folder: Path, stop: asyncio.Event, *, recursive: bool) -> AsyncIterator[set[str]]:
    """Poll the files. The polling of watchfiles misses the second of two changes within a second."""
    before = _stamps(folder, recursive=recursive)
    while True:
        with suppress(TimeoutError):
            async with asyncio.timeout(_POLL_SECONDS):
                await stop.wait()
                return
        after = _stamps(folder, recursive=recursive)
        if changed := {path for path in before.keys() | after if before.get(path) != after.get(path)}:
            yield changed
        before = after


def _stamps(folder: Path, *, recursive: bool) -> dict[str, tuple[int, int, int]]:
    """Size, time and inode of each file, to detect a change."""
    stamps = {}
    for path in folder.rglob("*.py") if recursive else folder.glob("*.py"):
        with suppress(OSError):  # deleted since it was listed
            found = path.stat()
            stamps[str(path)] = (found.st_mtime_ns, found.st_size, found.st_ino)
    return stamps


async def _outlives(manager: Manager, change: asyncio.Future[set[str] | None]) -> bool:
    """Wait for the change; False if the operator fails before it, which is told, and the rest of it stopped."""
    failure = asyncio.ensure_future(manager.wait())
    await asyncio.wait((failure, change), return_when=asyncio.FIRST_COMPLETED)
    failed = failure.done() and not failure.cancelled() and failure.exception() is not None
    await cancel_and_wait(failure)
    if failed:
        await _stop(manager)
    return not failed


async def _stop(manager: Manager) -> None:
    """Stop a generation of the operator. What it failed of is told, and no reason to end with it."""
    try:
        await manager.__aexit__(None, None, None)
    except Exception as error:
        _tell(error)


def _tell(error: Exception) -> None:
    words = str(error) if isinstance(error, KubewrightError) else f"{type(error).__name__}: {error}"
    click.secho(visible(words), fg="red", err=True)


@final
class _Session:
    """A cluster, and one generation of the operator after the other."""

    def __init__(self, code: _Code, *, webhooks: bool) -> None:
        self.telling = ReconcileLog(code.watched)
        self._code = code
        self._webhooks = webhooks
        self._cache: Cache | None = None
        self._watched: tuple[str, ...] | None = None
        self._cached: tuple[object, ...] = ()
        """The namespaces and scopes that the cache was made for."""
        self._stop = asyncio.Event()

    async def run(self, *, samples: bool, port: int, data: Path | None, merge: bool) -> None:
        from kubewright.cli.dev_cluster import dev_cluster
        from kubewright.cli.dev_definitions import DevDefinitions
        from kubewright.client.config.config import Config
        from kubewright.manager.signals import stop_on_signal

        async with dev_cluster(self._code.package, port=port, data=data, merge=merge) as cluster:
            config = Config.load(kubeconfig=cluster.kubeconfig)
            fresh = "stop this one with Ctrl-C, and start again with a fresh cluster"
            if data is not None:
                fresh += f" after `kubewright cluster reset --data {shlex.quote(str(data))}`"
            self._definitions = DevDefinitions(cluster.client, fresh=fresh)
            with stop_on_signal(self._stop.set):
                await self._generations(config, cluster.client, samples=samples)

    async def _generations(self, config: Config, client: Client, *, samples: bool) -> None:
        code = self._code
        # The folder of a single file may be anything, such as a home folder, so it is not watched recursively.
        batches = changed_files(code.watched, stop=self._stop, recursive=not code.alone)
        changes = (batch async for batch in batches if self._broken or code.is_affected_by(batch))
        change = asyncio.ensure_future(anext(changes, None))
        while not self._stop.is_set():
            manager = await self._start(config, client)
            if samples and manager is not None:
                samples = not await self._apply_samples(client)
            if manager is not None and not await _outlives(manager, change):
                manager = None
                self._broken = True
            found = await change
            begun = time.monotonic()
            if manager is not None:
                await _stop(manager)
            if found is None:
                return
            self._drop_stale_informers()
            change = asyncio.ensure_future(anext(changes, None))
            names = ", ".join(sorted({Path(path).name for path in found}))
            click.secho(f"{names} changed; starting again", fg="cyan", err=True)
            self._begun = begun

    _definitions: DevDefinitions
    _begun: float | None = None
    _kinds: tuple[type[KubeObject], ...] = ()
    _broken = False
    """The last start failed; what would mend it may be in a file that was not even imported."""

    async def _start(self, config: Config, client: Client) -> Manager | None:
        """Start the next generation; None if it failed."""
        from kubewright.generate.project import operator_crds
        from kubewright.manager.operator import load_operator

        for name in [name for name in sys.modules if self._code.owns(name)]:
            del sys.modules[name]
        try:
            operator = load_operator(self._code.operator)
            options = self._options(operator)
            # A large schema takes a while: the cluster goes on meanwhile.
            crds = await asyncio.to_thread(operator_crds, operator, webhooks=options.webhooks)
            # LocalWebhooks points the conversion here.
            await self._definitions.update({name: without_conversion(crd) for name, crd in crds.items()})
            await self._make_namespaces(operator, options, client)
            manager = self._manager(operator, options, config, client)
            self.telling.attend(manager.controllers)
            warm = len(self._cache.informers()) if self._cache is not None else 0
            await manager.__aenter__()
        except KubewrightError as error:
            _tell(error)
            self._broken = True
            return None
        self._broken = False
        kept = f", watches kept open: {warm}" if warm else ""
        took = f" in {time.monotonic() - self._begun:.2f} s" if self._begun is not None else ""
        counts = {"controller": len(operator.controllers), "webhook": len(operator.webhooks) if options.webhooks else 0}
        words = ", ".join(count_noun(count, noun) for noun, count in counts.items() if count)
        words = words or "no controller and no webhook yet; write one below @controller"
        click.secho(f"started{took}: {words}{kept}", fg="cyan", err=True)
        return manager

    async def _make_namespaces(self, operator: Operator, options: ManagerOptions, client: Client) -> None:
        """Those that it works in, and say so once: an object elsewhere would wait for ever."""
        watched = watched_by(operator, options)
        await create_namespaces(client, watched)
        if watched != self._watched:
            print_namespaces(watched)
        self._watched, self._kinds = watched, operator.kinds

    def _options(self, operator: Operator) -> ManagerOptions:
        from msgspec.structs import replace

        flags = Flags(options={} if self._webhooks else {"webhooks": False})
        # Any port: the last generation of the operator may still hold its own.
        return replace(local_options(operator, flags, webhook_address="127.0.0.1"), webhook_port=0)

    def _manager(self, operator: Operator, options: ManagerOptions, config: Config, client: Client) -> Manager:
        from kubewright.cache.cache import Cache
        from kubewright.cache.scope import Scope

        self.telling.follow(operator.controllers)
        _configure_logs(options, self.telling)
        namespaces = watched_by(operator, options)
        # What changes in the scope of a kind changes which objects are to be forgotten: all are read again.
        if self._cache is None or self._cached != (namespaces, operator.scopes):
            self._cache = Cache(client, scopes=operator.scopes, default_scope=Scope(namespaces=namespaces))
            self._cached = (namespaces, operator.scopes)
        kept = self._cache
        return assemble_manager(operator, options, config, cache=lambda _: kept)

    def _drop_stale_informers(self) -> None:
        """Drop the informers of the last generation's classes, and the indexes by its functions."""
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

        folder = self._code.folder / "config/samples"
        files = [file for file in sorted(folder.glob("*.yaml")) if "kustom" not in file.name]
        if not files:
            click.secho(f"there are no samples: put manifests into {visible(str(folder))}", fg="yellow", err=True)
        try:
            for file in files:
                for found in yaml.load_all(file.read_text(encoding="utf-8")):
                    tree = place_sample(found, self._kinds, self._watched or ())
                    await client.apply(from_tree(Dynamic(tree["apiVersion"], tree["kind"]), tree), force=True)
        except (KubewrightError, OSError, ValueError) as error:
            click.secho(f"the samples cannot be applied: {visible(str(error))}", fg="red", err=True)
            return False
        return True
