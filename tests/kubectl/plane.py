"""A control plane that kubectl is run against."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path

from tests.kubectl.normalized_output import Output
from tests.kubectl.steps import Case, Step

from kubewright.testing import time_limit

__all__ = ("Plane",)

_LONGEST = 60.0


@dataclass(frozen=True, slots=True)
class Plane:
    """One of the two: its name and its administrator's kubeconfig."""

    name: str
    kubectl: Path
    kubeconfig: Path

    async def run(self, step: Step, case: Case, folder: Path) -> Output:
        """Run a command to its end."""
        child = await self.start(step, case, folder)
        try:
            async with time_limit(_LONGEST):
                out, err = await child.communicate(step.stdin.encode())
        except TimeoutError:
            child.kill()
            out, err = await child.communicate()
            err += f"\nended after {_LONGEST:.0f} s".encode()
        assert child.returncode is not None
        return child.returncode, out.decode(), err.decode()

    async def start(self, step: Step, case: Case, folder: Path) -> asyncio.subprocess.Process:
        """Start a command."""
        environment = {
            "PATH": os.environ["PATH"],
            # Not in the folder, whose files are the case's. What kubectl remembers of the server would be out of
            # date in the next case, which is not told when kinds go.
            "HOME": str(folder.with_suffix(".home")),
            "KUBECONFIG": str(self.kubeconfig),
            "KUBE_EDITOR": str(folder / "editor"),
            "TZ": "UTC",
            "GOGC": "off",  # it ends before its garbage is worth collecting
        }
        return await asyncio.create_subprocess_exec(
            self.kubectl,
            f"--namespace={case.namespace}",
            *step.arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=folder,
            env=environment,
        )
