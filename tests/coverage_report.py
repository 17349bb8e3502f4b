"""How much of each module the tests run, branches included: `make coverage` calls this after them.

It prints the modules below the floor and the total, and fails where such a module has no reason beside its name in
coverage_reasons.txt, or where that file names a module that is not there. It measures nothing itself: coverage.py has.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
REASONS = Path(__file__).with_name("coverage_reasons.txt")
FLOOR = 70.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to print, and whether it is a failure."""

    lines: list[str]
    failed: bool


def reasons_in(text: str) -> dict[str, str]:
    """`module: reason` lines; empty ones and those that begin with # say nothing."""
    lines = [line.strip() for line in text.splitlines()]
    pairs = [line.partition(":") for line in lines if line and not line.startswith("#")]
    found = {module.strip(): reason.strip() for module, _, reason in pairs}
    if wrong := [module for module, reason in found.items() if not reason]:
        raise SystemExit(f"{REASONS.name}: no reason beside {', '.join(wrong)}; write `module: reason`")
    return found


def module_of(path: Path) -> str:
    """`src/kubewright/cli/main.py` -> `kubewright.cli.main`."""
    parts = path.with_suffix("").parts
    start = len(parts) - 1 - parts[::-1].index("kubewright")
    return ".".join(parts[start:]).removesuffix(".__init__")


def check(percents: dict[str, float], total: float, reasons: dict[str, str]) -> Verdict:
    """Modules with their percentages, the total, and the excuses."""
    low = {module: percent for module, percent in sorted(percents.items()) if percent < FLOOR}
    lines = [f"{percents[module]:6.1f} %  {module}: {reasons.get(module, 'NO REASON')}" for module in low]
    unknown = sorted(reasons.keys() - percents.keys())
    lines += [f"{REASONS.name} names {module}, which is not there" for module in unknown]
    lines += [
        f"{module} has {percents[module]:.1f} % and needs no reason any more"
        for module in sorted(reasons.keys() & percents.keys() - low.keys())
    ]
    without = sorted(low.keys() - reasons.keys())
    if without:
        lines.append(
            f"{len(without)} below {FLOOR:.0f} % without a reason: test them, or say in {REASONS.name} why not"
        )
    lines.append(f"{total:6.1f} %  of {len(percents)} modules, lines and branches")
    return Verdict(lines, failed=bool(without or unknown))


def main() -> int:
    """Read what was measured."""
    command = [sys.executable, "-m", "coverage", "json", "--quiet", "-o", "-"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(done.stdout, done.stderr, file=sys.stderr)
        return done.returncode
    report: dict[str, Any] = json.loads(done.stdout)
    percents = {
        module_of(Path(name)): float(entry["summary"]["percent_covered"])
        for name, entry in report["files"].items()
        if entry["summary"]["num_statements"]
    }
    verdict = check(percents, float(report["totals"]["percent_covered"]), reasons_in(REASONS.read_text()))
    print("\n".join(verdict.lines))
    return int(verdict.failed)


if __name__ == "__main__":
    sys.exit(main())
