"""The kubectl script: every chapter, in the order they are run."""

from __future__ import annotations

from tests.kubectl import chapters_objects, chapters_server, chapters_workloads

__all__ = ("CHAPTERS",)

CHAPTERS = (*chapters_objects.CHAPTERS, *chapters_server.CHAPTERS, *chapters_workloads.CHAPTERS)
