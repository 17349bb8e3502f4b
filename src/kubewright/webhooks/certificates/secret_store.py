"""SecretStore: webhook certificates as the data of a Secret, written with optimistic concurrency.

| key | what |
| --- | --- |
| tls.crt, tls.key | the serving certificate, as every Secret of type kubernetes.io/tls has it |
| ca.crt | all authorities to trust |
| signer.crt, signer.key | the authority that signs now |
| successor.crt, successor.key, announced-at | the authority that will sign next, and when it was announced |
| retired-until | how long the other authorities in ca.crt stay |

A Secret without the operator's label is never changed. `certificates.rotation` decides what to write,
`certificates.secret` when.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, final

from kubewright._base.certificates import KeyPair, certificate_info, certificates_in, matches_key
from kubewright.api.codec import copy_of
from kubewright.api.metadata import ObjectMeta
from kubewright.client.client import Client
from kubewright.errors import ConfigError, DecodeError
from kubewright.k8s.core.v1 import Secret
from kubewright.webhooks.certificates.rotation import CertificateState

__all__ = ("OWNER_LABEL", "SecretStore", "secret_data", "state_from_secret")

OWNER_LABEL: Final = "kubewright.io/webhook-certificates"
_TYPE: Final = "kubernetes.io/tls"


def secret_data(state: CertificateState) -> dict[str, bytes]:
    """The data of the Secret for a state."""
    data = {
        "ca.crt": state.bundle,
        "signer.crt": state.signer.certificate,
        "signer.key": state.signer.key,
        "tls.crt": state.serving.certificate,
        "tls.key": state.serving.key,
    }
    if state.successor is not None:
        data["successor.crt"] = state.successor.certificate
        data["successor.key"] = state.successor.key
    for key, time in (("announced-at", state.announced_at), ("retired-until", state.retired_until)):
        if time is not None:
            data[key] = time.astimezone(UTC).isoformat().encode()
    return data


def state_from_secret(data: Mapping[str, bytes]) -> CertificateState:
    """The state in the data of a Secret; DecodeError, naming the key, if it is incomplete."""
    signer, serving = _pair(data, "signer"), _pair(data, "tls")
    successor = _pair(data, "successor") if "successor.crt" in data else None
    if certificate_info(serving.certificate).issuer != certificate_info(signer.certificate).subject:
        raise DecodeError("tls.crt is not signed by signer.crt")
    active = {signer.certificate, *(() if successor is None else (successor.certificate,))}
    trusted = certificates_in(data.get("ca.crt", b""))
    for certificate in trusted:
        certificate_info(certificate)
    return CertificateState(
        signer=signer,
        serving=serving,
        successor=successor,
        announced_at=_time(data, "announced-at"),
        retired=tuple(certificate for certificate in trusted if certificate not in active),
        retired_until=_time(data, "retired-until"),
    )


def _pair(data: Mapping[str, bytes], name: str) -> KeyPair:
    for key in (f"{name}.crt", f"{name}.key"):
        if not data.get(key):
            raise DecodeError(f"{key} is missing")
    pair = KeyPair(data[f"{name}.crt"], data[f"{name}.key"])
    if not matches_key(pair):
        raise DecodeError(f"{name}.crt and {name}.key cannot be read or do not belong together")
    return pair


def _time(data: Mapping[str, bytes], key: str) -> datetime | None:
    text = data.get(key, b"").decode("ascii", "replace")
    if not text:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise DecodeError(f"{key} is {text!r}, which is no time") from None
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


@final
class SecretStore:
    """The Secret of one operator."""

    def __init__(self, client: Client, *, name: str, namespace: str, owner: str) -> None:
        self.name = name
        self.namespace = namespace
        self._client = client
        self._owner = owner

    def check_owner(self, secret: Secret) -> None:
        """ConfigError if the Secret does not carry this operator's label."""
        if secret.metadata.labels.get(OWNER_LABEL) != self._owner:
            raise ConfigError(
                f"the Secret {self.namespace}/{self.name} does not belong to {self._owner}, so it is not changed; "
                "delete it, give the webhook certificates another name, or serve from files"
            )

    async def create(self, state: CertificateState) -> Secret:
        """Create the Secret; AlreadyExists if another replica created it first."""
        metadata = ObjectMeta(name=self.name, namespace=self.namespace, labels={OWNER_LABEL: self._owner})
        return await self._client.create(Secret(metadata=metadata, type=_TYPE, data=secret_data(state)))

    async def replace(self, secret: Secret, state: CertificateState) -> Secret:
        """Write the state that follows the one read; Conflict if another replica wrote first."""
        wanted = copy_of(secret)
        wanted.data = secret_data(state)
        return await self._client.update(wanted)
