"""The kubectl script: every case, in the order they are run."""

from __future__ import annotations

from tests.kubectl import cases_objects, cases_server, cases_workloads

__all__ = ("CASES",)

CASES = (*cases_objects.CASES, *cases_server.CASES, *cases_workloads.CASES)
