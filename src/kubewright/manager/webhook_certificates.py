"""Where the certificate of the webhooks comes from, as the options and the place say.

| `webhook_certificates` | certificate | webhooks are registered by |
| --- | --- | --- |
| a folder | tls.crt and tls.key in it, such as cert-manager's | generated manifests |
| `secret` | made by the operator, kept in a Secret, rotated | generated manifests; the operator injects the CA |
| `local` | made for this process | the process itself, for as long as it runs |
| `auto` | the folder that controllers in Go use, if it holds a certificate; in a pod `secret`, else `local` | |

`webhooks` serves with it. A manager that has no webhooks asks only whether they would be registered by such a process:
then it removes what others like it have left. So this module is light.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from kubewright.client.config.config import Config
from kubewright.errors import ConfigError
from kubewright.manager.options import ManagerOptions

__all__ = ("certificate_choice", "registers_itself")

# The default CertDir of controller-runtime. A fixed path: Go projects mount their certificates there.
_GO_FOLDER: Final = Path("/tmp/k8s-webhook-server/serving-certs")  # noqa: S108 - only read, and filled by a mount


def certificate_choice(options: ManagerOptions, config: Config | None) -> str:
    """`secret`, `local`, or a folder."""
    if options.webhook_certificates != "auto":
        return options.webhook_certificates
    if (_GO_FOLDER / "tls.crt").exists():
        return str(_GO_FOLDER)
    if os.environ.get("KUBERNETES_SERVICE_HOST"):
        return "secret"
    if config is None and not options.webhook_address:
        raise ConfigError(
            "the webhooks have no certificate and no address at which the cluster could call them: give the manager a "
            "Config instead of a client, or its certificates, or set webhook_address"
        )
    return "local"


def registers_itself(options: ManagerOptions, config: Config | None) -> bool:
    """Whether webhooks of this process are, or would be, registered by itself, from outside the cluster."""
    try:
        return certificate_choice(options, config) == "local"
    except ConfigError:
        return False
