"""run_operator(): what `python -m` of an operator's package calls, in an image and anywhere else.

    if __name__ == "__main__":
        run_operator("podset")

It reads the command line (`manager.flags`), imports the package, and runs all that is declared in it under one manager.
A program that puts its own manager together calls `run` instead.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from msgspec.structs import replace

from kubewright.errors import ConfigError
from kubewright.manager.flags import parse_flags
from kubewright.manager.operator import load_operator
from kubewright.manager.process import run

__all__ = ("run_operator",)


def run_operator(
    package: str, *, name: str = "", namespaced: bool = False, arguments: Sequence[str] | None = None
) -> None:
    """Run every controller and webhook of a package until SIGINT or SIGTERM, as the command line says.

    What the package says about its manager with `setup_with_manager` counts.

    `name` is the operator's, unless a flag, the environment or the file gives another; `namespaced` says that it works
    in its own namespace alone: the option `namespace`, or the pod's; `watch_namespaces` names others. `arguments` are
    those of the process if not given.
    A wrong flag ends the process with exit code 2 and the usage, a wrong option or kubeconfig with 1 and a sentence.
    """
    given = sys.argv[1:] if arguments is None else arguments
    flags = parse_flags(given, program=f"python -m {package}", name=name or package)
    try:
        config = flags.load_config()
        operator = load_operator(package)
        if namespaced:
            operator = replace(operator, scope="namespace")
        options = flags.load_options(**{**operator.option_defaults, "name": name or operator.name})
    except ConfigError as error:
        sys.exit(str(error))
    pod = config.namespace if os.environ.get("KUBERNETES_SERVICE_HOST") else ""
    run(
        *operator.runnables,
        options=options,
        config=config,
        namespaces=operator.watched_namespaces(options.namespace or pod),
    )
