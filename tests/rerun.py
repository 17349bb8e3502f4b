"""A second look at what failed on the real servers, on fresh ones: a pytest plugin for `make test` after a failure.

etcd, kube-apiserver and kube-controller-manager do things in an order of their own, and thousands of tests watch them.
A few that fail there are run once more, alone; those that pass now are named as unsteady, and each is a fault to mend.
It is not for the embedded control plane or for tests without a server: their order of doings is ours, so one failure is
enough. Nor for tests/scenarios, which show what must not happen even once, nor for many failures at once. Decision 13.
"""

from __future__ import annotations

import pytest

MOST = 3
STRICT = frozenset({"scenarios", "controller_manager", "simulated_nodes", "workloads"})
"""Folders in which parts of Kubewright do the work on a real API server: the order of what they do is ours."""


def may_be_luck(item: pytest.Item) -> bool:
    """Whether a test has the real control plane under it (marked so, started so, or one of a pair) and no invariant."""
    chosen = getattr(item, "callspec", None)
    return STRICT.isdisjoint(item.path.parts) and (
        item.get_closest_marker("real") is not None
        or "real_binaries" in getattr(item, "fixturenames", ())
        or (chosen is not None and "real" in chosen.params.values())
    )


def pytest_collection_finish(session: pytest.Session) -> None:
    """Refuse what deserves no second look; `--last-failed` has left only what failed."""
    ours = [item.nodeid for item in session.items if not may_be_luck(item)]
    if ours:
        pytest.exit(f"no second look: {len(ours)} failed that must never, such as {ours[0]}", returncode=1)
    if len(session.items) > MOST:
        pytest.exit(f"no second look: {len(session.items)} tests failed, more than {MOST}", returncode=1)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name what passed only now."""
    failed = {report.nodeid for outcome in ("failed", "error") for report in terminalreporter.getreports(outcome)}
    passed = {report.nodeid for report in terminalreporter.getreports("passed")}
    for nodeid in sorted(passed - failed):
        terminalreporter.line(f"UNSTEADY {nodeid}: failed among others, passed alone on fresh servers; mend it")
