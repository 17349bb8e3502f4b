"""Who may approve and sign certificate requests, and who nobody may ask to become.

A judge in the chain of admission. To approve a request, or to answer it, somebody has to hold that right on its signer,
by its name or for all of its domain. A client certificate for `system:masters` is not to be had this way.
"""

from __future__ import annotations

from base64 import b64decode
from typing import Any, Final, final

from kubewright.api.patches import json_equal
from kubewright.apiserver.auth.rbac import MASTERS, RbacAuthorizer
from kubewright.apiserver.kinds.admission import Attributes
from kubewright.apiserver.wire.requests import RequestInfo
from kubewright.apiserver.wire.status_errors import StatusError, forbidden
from kubewright.errors import DecodeError

__all__ = ("SignerPlugin",)

_GROUP: Final = "certificates.k8s.io"
_CLIENT: Final = "kubernetes.io/kube-apiserver-client"


@final
class SignerPlugin:
    """Looks after the rights on signers."""

    def __init__(self, roles: RbacAuthorizer) -> None:
        self._roles = roles

    def handles(self, attributes: Attributes) -> bool:
        return (
            attributes.resource.kind.group == _GROUP
            and attributes.resource.plural == "certificatesigningrequests"
            and attributes.object is not None
            and (attributes.verb, attributes.subresource)
            in (("CREATE", ""), ("UPDATE", "approval"), ("UPDATE", "status"))
        )

    async def mutate(self, attributes: Attributes) -> None:
        return None

    async def validate(self, attributes: Attributes) -> None:
        assert attributes.object is not None
        if attributes.verb == "CREATE":
            self._check_subject(attributes, attributes.object)
            return
        old = attributes.old or {}
        signer = (old.get("spec") or {}).get("signerName") or ""
        if attributes.subresource == "status" and _same_answer(attributes.object, old):
            return
        verb = "approve" if attributes.subresource == "approval" else "sign"
        if not any(self._may(attributes, verb, name) for name in (signer, f"{signer.partition('/')[0]}/*")):
            raise _refused(attributes, f'user not permitted to {verb} requests with signerName "{signer}"')

    def _check_subject(self, attributes: Attributes, request: dict[str, Any]) -> None:
        spec = request.get("spec") or {}
        if spec.get("signerName") != _CLIENT:
            return
        from kubewright._base.certificate_requests import parse_request  # brings cryptography with it

        try:
            facts = parse_request(b64decode(spec.get("request") or ""))
        except DecodeError as error:
            raise _refused(attributes, f"failed to parse CSR: {error}") from None
        if MASTERS in facts.organizations:
            raise _refused(attributes, f"use of {_CLIENT} signer with {MASTERS} group is not allowed")

    def _may(self, attributes: Attributes, verb: str, signer: str) -> bool:
        target = RequestInfo(verb, "", _GROUP, "*", "signers", "", "", signer)
        return self._roles.decide(attributes.user, target).allowed


def _refused(attributes: Attributes, why: str) -> StatusError:
    return forbidden(attributes.resource.group_resource, attributes.name, why)


def _same_answer(new: dict[str, Any], old: dict[str, Any]) -> bool:
    one, other = new.get("status") or {}, old.get("status") or {}
    return all(json_equal(one.get(name), other.get(name)) for name in ("certificate", "conditions"))
