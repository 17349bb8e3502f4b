"""The TokenRequest handler: `serviceaccounts/token` issues a token, optionally bound to a Pod, Secret or Node.

Upstream: k8s.io/kubernetes/pkg/registry/core/serviceaccount/storage/token.go.
"""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any, Final, final

from kubewright._base.clock import Clock
from kubewright.api.field_errors import FieldError
from kubewright.api.kinds import GroupResource, GroupVersionKind
from kubewright.api.times import format_time
from kubewright.apiserver.auth.review_bodies import ReviewBodies
from kubewright.apiserver.auth.service_accounts import username
from kubewright.apiserver.auth.tokens import ServiceAccountTokens
from kubewright.apiserver.kinds.calls import Call
from kubewright.apiserver.kinds.object_meta import check_name_parameter
from kubewright.apiserver.kinds.resources import Resource, Tree
from kubewright.apiserver.storage.store import Store
from kubewright.apiserver.wire.decoding import decode_json
from kubewright.apiserver.wire.responses import Reply
from kubewright.apiserver.wire.status_errors import bad_request, conflict, invalid, not_found

__all__ = ("REQUEST", "TokenRequests")

REQUEST: Final = GroupVersionKind("authentication.k8s.io", "v1", "TokenRequest")
_MIN_SECONDS: Final = 600
_MAX_SECONDS: Final = 1 << 32
_DEFAULT_SECONDS: Final = 3600
# A pod's own token of this expiration is valid for a year, with an audit annotation after an hour: kube-apiserver's
# extended expiration, for clients that do not reload their token (`WarnOnlyBoundTokenExpirationSeconds`).
_WARN_ONLY_SECONDS: Final = 3607
_EXTENDED_SECONDS: Final = 365 * 24 * 3600
_TABLES: Final = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}


@final
class TokenRequests:
    """Issues tokens. `resource` is that of TokenRequests."""

    def __init__(
        self, store: Store, bodies: ReviewBodies, signer: ServiceAccountTokens, clock: Clock, resource: Resource
    ) -> None:
        self._store = store
        self._bodies = bodies
        self._signer = signer
        self._clock = clock
        self._resource = resource

    async def create(self, call: Call) -> Reply:
        """Issue a token for the service account of the URL."""
        tree = await self._bodies.read(call, resource=self._resource)
        meta, spec = tree["metadata"], tree.setdefault("spec", {})
        _drop_bound_object_member(meta)
        account = self._account(call, meta)
        spec["audiences"] = list(spec.get("audiences") or self._signer.audiences)
        spec.setdefault("expirationSeconds", _DEFAULT_SECONDS)
        spec.setdefault("boundObjectRef", None)
        meta.update(name=account["name"], namespace=account["namespace"], uid=account["uid"])
        meta["creationTimestamp"] = self._bodies.now
        _validate_expiration(spec["expirationSeconds"])
        claims = self._claims(call, account, spec)
        credential = f"JTI={claims['jti']}"
        call.request.annotations["authentication.kubernetes.io/issued-credential-id"] = credential
        ends = self._clock.now() + timedelta(seconds=spec["expirationSeconds"])
        status = {"token": self._signer.sign(claims), "expirationTimestamp": format_time(ends)}
        return self._bodies.respond(call, REQUEST, {"metadata": meta, "spec": spec, "status": status})

    def _account(self, call: Call, meta: dict[str, Any]) -> dict[str, Any]:
        name = call.info.name
        if meta.get("name") and meta["name"] != name:
            what = "must match the service account name if specified"
            raise invalid(REQUEST, name, [FieldError("metadata.name", "Invalid", what, meta["name"])])
        account = self._find(call.resource.group_resource, f"{call.namespace}/{name}", name)["metadata"]
        if meta.get("uid") and meta["uid"] != account["uid"]:
            why = (
                f"the UID in the token request ({meta['uid']}) does not match the UID of the service account"
                f" ({account['uid']})"
            )
            raise conflict(GroupResource(REQUEST.group, REQUEST.kind), name, why)
        found: dict[str, Any] = account
        return found

    def _find(self, resource: GroupResource, key: str, name: str) -> Tree:
        check_name_parameter(name)
        entry = self._store.table(f"{resource.group}/{resource.resource}").get(key)
        if entry is None:
            raise not_found(resource, name)
        tree: Tree = decode_json(entry.value)
        return tree

    def _claims(self, call: Call, account: dict[str, Any], spec: Tree) -> dict[str, Any]:
        now = int(self._clock.now().timestamp())
        seconds = spec["expirationSeconds"]
        private: dict[str, Any] = {"namespace": account["namespace"], "serviceaccount": _ref(account)}
        private |= self._bound_claims(call, spec.get("boundObjectRef"))
        if "pod" in private and seconds == _WARN_ONLY_SECONDS and set(spec["audiences"]) <= set(self._signer.audiences):
            private["warnafter"] = now + seconds
            seconds = _EXTENDED_SECONDS
        return {
            "aud": spec["audiences"],
            "exp": now + seconds,
            "iat": now,
            "jti": str(uuid.uuid4()),
            "kubernetes.io": dict(sorted(private.items())),
            "nbf": now,
            "sub": username(account["namespace"], account["name"]),
        }

    def _bound_claims(self, call: Call, ref: Tree | None) -> dict[str, Any]:
        """The claims of the bound object."""
        if ref is None:
            return {}
        kind, name, group_version = ref.get("kind", ""), ref.get("name", ""), ref.get("apiVersion", "")
        group, _, version = group_version.rpartition("/")
        if group or kind not in _TABLES:
            raise bad_request(f"cannot bind token to object of type {group}/{version}, Kind={kind}")
        key = name if kind == "Node" else f"{call.namespace}/{name}"
        tree = self._find(GroupResource("", _TABLES[kind]), key, name)
        found = {kind.lower(): _ref(tree["metadata"])}
        if kind == "Pod":
            found |= self._pod_claims(call, tree)
        if ref.get("uid") and ref["uid"] != tree["metadata"]["uid"]:
            why = (
                f"the UID in the bound object reference ({ref['uid']}) does not match the UID in record. The object"
                " might have been deleted and then recreated"
            )
            raise conflict(GroupResource("", kind), name, why)
        return found

    def _pod_claims(self, call: Call, pod: Tree) -> dict[str, Any]:
        if pod["spec"].get("serviceAccountName", "") != call.info.name:
            raise bad_request(
                f'cannot bind token for serviceaccount "{call.info.name}" to pod running with different'
                " serviceaccount name."
            )
        node = pod["spec"].get("nodeName")
        if not node:
            return {}
        entry = self._store.table("/nodes").get(node)
        return {"node": {"name": node} if entry is None else _ref(decode_json(entry.value)["metadata"])}


def _drop_bound_object_member(meta: dict[str, Any]) -> None:
    """Drop boundObjectRef itself from the managedFields: Go encodes it even if null, so no manager adds it."""
    for entry in meta.get("managedFields") or ():
        entry["fieldsV1"].get("f:spec", {}).get("f:boundObjectRef", {}).pop(".", None)


def _ref(meta: dict[str, Any]) -> dict[str, str]:
    return {"name": meta["name"], "uid": meta["uid"]}


def _validate_expiration(seconds: int) -> None:
    errors = []
    if seconds < _MIN_SECONDS:
        errors.append("may not specify a duration less than 10 minutes")
    if seconds > _MAX_SECONDS:
        errors.append("may not specify a duration larger than 2^32 seconds")
    if errors:
        raise invalid(REQUEST, "", [FieldError("spec.expirationSeconds", "Invalid", what, seconds) for what in errors])
