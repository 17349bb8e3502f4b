"""The benchmark's operator on Kubewright, as a user would write it.

Run as `python -m bench.peers.kubewright_operator --kubeconfig FILE`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from bench.widgets import NAMESPACE, Widget
from kubewright import Config, Context, ManagerOptions, controller, run
from kubewright.k8s.core.v1 import ConfigMap

__all__ = ("main",)


@controller(Widget, owns=[ConfigMap], concurrency=16)
async def reconcile(widget: Widget, ctx: Context) -> None:
    """One ConfigMap with the size; ready once it is there."""
    if widget.spec.paused:
        return
    await ctx.apply(ConfigMap.named(widget.metadata.name, data={"size": str(widget.spec.size)}))
    widget.status.ready = True
    widget.status.observed_generation = widget.metadata.generation


def main() -> None:
    """Run until a signal ends the process."""
    parser = argparse.ArgumentParser(description="The benchmark's operator on Kubewright.")
    parser.add_argument("--kubeconfig", type=Path, required=True)
    config = Config.load(kubeconfig=parser.parse_args().kubeconfig)
    options = ManagerOptions(name="widgets", health_address="0", metrics_address="0", log_level="warning")
    run(reconcile, config=config, namespaces=[NAMESPACE], options=options)


if __name__ == "__main__":
    main()
