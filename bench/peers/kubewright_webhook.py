"""The benchmark's mutating webhook for Pods on Kubewright.

Usage: python -m bench.peers.kubewright_webhook --port=PORT --certificates=FOLDER
"""

from __future__ import annotations

import argparse

from kubewright import mutate, run
from kubewright.k8s.core.v1 import Pod
from kubewright.webhooks import FileCertificates, WebhookRouter, WebhookServer

__all__ = ("mark",)


@mutate(Pod)
def mark(pod: Pod) -> None:
    pod.metadata.labels["marked"] = "yes"


async def serve(port: int, certificates: str) -> None:
    await WebhookServer(WebhookRouter([mark]), FileCertificates(certificates), host="127.0.0.1", port=port).run()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--certificates", required=True)
    options = parser.parse_args()
    run(serve(options.port, options.certificates))


if __name__ == "__main__":
    main()
