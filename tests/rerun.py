"""Reruns tests that failed on the real servers, on fresh ones: a pytest plugin that `make test` loads after a failure.

etcd, kube-apiserver and kube-controller-manager do things in an order of their own, and thousands of tests watch them.
The plugin runs a few failed tests once more, alone, and names those that pass now as flaky; each is a fault to mend.
It reruns nothing else: Kubewright decides the order of what the embedded control plane does, so there one failure is
enough. So it is in tests/scenarios, which show what must not happen even once, and if many tests fail. Decision 13.
"""

from __future__ import annotations

import pytest

MOST = 3
STRICT = frozenset({"scenarios", "controller_manager", "simulated_nodes", "workloads"})
"""Folders whose tests are never rerun: parts of Kubewright do the work there, on a real API server."""


def may_be_flaky(item: pytest.Item) -> bool:
    """Whether a test runs on the real control plane (by its mark, a fixture or a parameter) and outside of `STRICT`."""
    chosen = getattr(item, "callspec", None)
    return STRICT.isdisjoint(item.path.relative_to(item.config.rootpath).parts) and (
        item.get_closest_marker("real") is not None
        or "real_binaries" in getattr(item, "fixturenames", ())
        or (chosen is not None and "real" in chosen.params.values())
    )


def pytest_collection_finish(session: pytest.Session) -> None:
    """Refuse to rerun what must never fail; `--last-failed` has left only what failed."""
    ours = [item.nodeid for item in session.items if not may_be_flaky(item)]
    if ours:
        pytest.exit(f"no rerun: {len(ours)} failed that must never, such as {ours[0]}", returncode=1)
    if len(session.items) > MOST:
        pytest.exit(f"no rerun: {len(session.items)} tests failed, more than {MOST}", returncode=1)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name what passed only now."""
    failed = {report.nodeid for outcome in ("failed", "error") for report in terminalreporter.getreports(outcome)}
    passed = {report.nodeid for report in terminalreporter.getreports("passed")}
    for nodeid in sorted(passed - failed):
        terminalreporter.line(f"FLAKY {nodeid}: failed among others, passed alone on fresh servers; mend it")
