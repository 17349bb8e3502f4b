"""Exempt what is loaded from Python's garbage collector, once the caches are in sync.

A full collection walks every tracked object. After the first sync those are mostly classes and caches that live as long
as the process; walking them again and again is a pause for nothing. The manager calls this when everything is in sync.
"""

from __future__ import annotations

import gc

__all__ = ("freeze_loaded",)


def freeze_loaded() -> int:
    """Collect once, then exempt all that is left from future collections. Returns how many objects that are."""
    gc.collect()
    gc.freeze()
    return gc.get_freeze_count()
