"""The kubectl script: every chapter, in the order they are run."""

from __future__ import annotations

from tests.kubectl import cases_objects, cases_server, cases_workloads

__all__ = ("CHAPTERS",)

CHAPTERS = (*cases_objects.CHAPTERS, *cases_server.CHAPTERS, *cases_workloads.CHAPTERS)
