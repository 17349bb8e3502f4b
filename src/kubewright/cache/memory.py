"""Take what is loaded out of the garbage collector's sight, once, when it is there to stay.

A full collection walks everything that is tracked. After the first sync that is mostly classes and caches that live as
long as the process; walking them again and again is a pause for nothing. The manager calls this when everything is in
sync.
"""

from __future__ import annotations

import gc

__all__ = ("freeze_loaded",)


def freeze_loaded() -> int:
    """Collect once, then exempt all that is left from future collections. Returns how many objects that are."""
    gc.collect()
    gc.freeze()
    return gc.get_freeze_count()
