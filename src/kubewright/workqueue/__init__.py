"""Work queues: each key once, never twice at a time, higher priorities first.

    queue = WorkQueue[str]()
    queue.add("shop/web", cause="spec changed")

    async for item in queue:  # one such loop per worker; ends after `queue.shut_down()`
        try:
            await reconcile(item.key)
        except Exception:
            queue.add_rate_limited(item.key, priority=item.priority)
        else:
            queue.forget(item.key)
        finally:
            queue.done(item.key)

The names below are the package's public ones. It knows nothing of Kubernetes: a key is anything hashable, and
so is a cause.
"""

from __future__ import annotations

from kubewright.workqueue.item import Item
from kubewright.workqueue.observer import QueueObserver
from kubewright.workqueue.queue import WorkQueue
from kubewright.workqueue.rate_limiters import (
    BucketRateLimiter,
    ExponentialFailureRateLimiter,
    FastSlowRateLimiter,
    MaxOfRateLimiter,
    RateLimiter,
)

__all__ = (
    "BucketRateLimiter",
    "ExponentialFailureRateLimiter",
    "FastSlowRateLimiter",
    "Item",
    "MaxOfRateLimiter",
    "QueueObserver",
    "RateLimiter",
    "WorkQueue",
)
