"""Webhook certificates in a Secret: what stands under which key, and writes that never overwrite another replica's.

| key | what |
| --- | --- |
| tls.crt, tls.key | the serving certificate, as every Secret of type kubernetes.io/tls has it |
| ca.crt | all authorities to trust |
| signer.crt, signer.key | the authority that signs now |
| successor.crt, successor.key, announced-at | the one that will sign next, and since when it is trusted |
| retired-until | until when the other authorities in ca.crt stay |

A Secret that does not carry the label is somebody else's and is never touched. When to write what is decided in
`rotation`, by whom in `secret_certificates`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, final

from kubewright._base.certificates import KeyPair, certificates_in, facts_of, matches_key
from kubewright.api.codec import copy_of
from kubewright.api.metadata import ObjectMeta
from kubewright.client.client import Client
from kubewright.errors import ConfigError, DecodeError
from kubewright.k8s.core.v1 import Secret
from kubewright.webhooks.certificates.rotation import Material

__all__ = ("OWNER_LABEL", "SecretStore", "data_of", "material_in")

OWNER_LABEL: Final = "kubewright.io/webhook-certificates"
_TYPE: Final = "kubernetes.io/tls"


def data_of(material: Material) -> dict[str, bytes]:
    """The data of the Secret."""
    data = {
        "ca.crt": material.bundle,
        "signer.crt": material.signer.certificate,
        "signer.key": material.signer.key,
        "tls.crt": material.serving.certificate,
        "tls.key": material.serving.key,
    }
    if material.successor is not None:
        data["successor.crt"] = material.successor.certificate
        data["successor.key"] = material.successor.key
    for key, time in (("announced-at", material.announced_at), ("retired-until", material.retired_until)):
        if time is not None:
            data[key] = time.astimezone(UTC).isoformat().encode()
    return data


def material_in(data: Mapping[str, bytes]) -> Material:
    """What a Secret holds; DecodeError, naming the key, if it is not whole."""
    signer, serving = _pair(data, "signer"), _pair(data, "tls")
    successor = _pair(data, "successor") if "successor.crt" in data else None
    if facts_of(serving.certificate).issuer != facts_of(signer.certificate).subject:
        raise DecodeError("tls.crt is not signed by signer.crt")
    active = {signer.certificate, *(() if successor is None else (successor.certificate,))}
    trusted = certificates_in(data.get("ca.crt", b""))
    for certificate in trusted:
        facts_of(certificate)
    return Material(
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
        """ConfigError if the Secret was made by somebody else."""
        if secret.metadata.labels.get(OWNER_LABEL) != self._owner:
            raise ConfigError(
                f"the Secret {self.namespace}/{self.name} does not belong to {self._owner}, so it is left alone; "
                "delete it, give the webhook certificates another name, or serve from files"
            )

    async def create(self, material: Material) -> Secret:
        """Store the first state; AlreadyExists if another replica was quicker."""
        metadata = ObjectMeta(name=self.name, namespace=self.namespace, labels={OWNER_LABEL: self._owner})
        return await self._client.create(Secret(metadata=metadata, type=_TYPE, data=data_of(material)))

    async def replace(self, secret: Secret, material: Material) -> Secret:
        """Store the state that follows the one read; Conflict if another replica was quicker."""
        wanted = copy_of(secret)
        wanted.data = data_of(material)
        return await self._client.update(wanted)
