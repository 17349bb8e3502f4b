"""The benchmark's operator on kopf: handlers for creation, change and restart, status through kopf's own patch.

Written as kopf's documentation advises, and cheaply where it leaves a choice: uvloop, a plain aiohttp session for the
child, no per-object log lines. It watches no ConfigMap, because kopf has no notion of owned objects, and so does
less than the others. Nor does it keep the Widgets themselves: kopf would do so in an index, which took 9.5 s of
CPU for 2 000 objects present at start and 104 s for 5 000: too slow for the benchmark of caches.
Run as `python -m bench.peers.kopf_operator --kubeconfig FILE`, in a Python with kopf.
"""

# kopf lives outside the environment that is type-checked, so neither it nor its decorators are known there.
# mypy: disable-error-code="import-not-found,untyped-decorator"

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aiohttp
import kopf
import uvloop

from bench.peers.kubeconfig import read_kubeconfig

__all__ = ("main",)

WIDGETS = ("bench.example.io", "v1", "widgets")


def _wanted(spec: Mapping[str, Any], **_: Any) -> bool:
    return not spec.get("paused")


@kopf.on.login()
def log_in(**facts: Any) -> Any:
    """From $KUBECONFIG; kopf's default looks for client libraries instead, and there are none."""
    return kopf.login_with_kubeconfig(**facts)


@kopf.on.startup()
async def start(memo: kopf.Memo, **_: Any) -> None:
    """Open the session that children are written with."""
    url, tls = read_kubeconfig(Path(os.environ["KUBECONFIG"]))
    memo.session = aiohttp.ClientSession(url, connector=aiohttp.TCPConnector(ssl=tls))


@kopf.on.cleanup()
async def stop(memo: kopf.Memo, **_: Any) -> None:
    """Close it."""
    await memo.session.close()


@kopf.on.resume(*WIDGETS, when=_wanted)
@kopf.on.create(*WIDGETS, when=_wanted)
@kopf.on.update(*WIDGETS, field="spec", when=_wanted)
async def reconcile(
    spec: Mapping[str, Any],
    meta: Mapping[str, Any],
    name: str,
    namespace: str | None,
    patch: kopf.Patch,
    memo: kopf.Memo,
    **_: Any,
) -> None:
    """Apply the child, then let kopf write the status."""
    child = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {"size": str(spec.get("size", 0))},
    }
    kopf.append_owner_reference(child)
    async with memo.session.patch(
        f"/api/v1/namespaces/{namespace}/configmaps/{name}?fieldManager=bench&force=true",
        data=json.dumps(child),
        headers={"Content-Type": "application/apply-patch+yaml"},
    ) as answer:
        text = await answer.text()
        if answer.status >= 300:
            raise kopf.TemporaryError(f"ConfigMap {name} was not applied: {text}", delay=1)
    patch.status["ready"] = True
    patch.status["observedGeneration"] = meta["generation"]


def main() -> None:
    """Run until a signal ends the process."""
    parser = argparse.ArgumentParser(description="The benchmark's operator on kopf.")
    parser.add_argument("--kubeconfig", type=Path, required=True)
    # Where kopf's login looks for it.
    os.environ["KUBECONFIG"] = str(parser.parse_args().kubeconfig)
    uvloop.run(kopf.operator(standalone=True, namespaces=["bench"]))


if __name__ == "__main__":
    main()
