"""The official client's informer: every event it hears is one line of JSON on standard output."""

# The packages these programs are about are untyped, or typed more narrowly than their documentation.
# mypy: ignore-errors

from __future__ import annotations

import json
import sys
import threading
from typing import Any

from kubernetes import client, config
from kubernetes.informer import ADDED, DELETED, ERROR, MODIFIED, SharedInformer


def main(namespace: str) -> None:
    """Run until standard input ends."""
    config.load_kube_config()
    api = client.CoreV1Api()
    informer = SharedInformer(api.list_namespaced_config_map, namespace=namespace, label_selector="told=yes")
    lock = threading.Lock()

    def say(**facts: Any) -> None:
        with lock:
            print(json.dumps(facts), flush=True)

    for event in (ADDED, MODIFIED, DELETED):
        informer.add_event_handler(
            event, lambda obj, event=event: say(event=event, name=obj.metadata.name, data=obj.data)
        )
    informer.add_event_handler(ERROR, lambda problem: say(event=ERROR, status=getattr(problem, "status", str(problem))))
    informer.start()
    for _ in sys.stdin:
        say(event="CACHE", names=sorted(obj.metadata.name for obj in informer.cache.list()))


if __name__ == "__main__":
    main(sys.argv[1])
