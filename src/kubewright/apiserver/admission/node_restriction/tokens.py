"""A node may request tokens that are bound to a pod of its own, for audiences that the pod's volumes name.

Called by `plugin`. Upstream: `admitServiceAccount` and `validateNodeServiceAccountAudience` of
plugin/pkg/admission/noderestriction/admission.go. Volumes of the old in-tree drivers are not translated to CSI.
"""

from __future__ import annotations

from typing import final

from kubewright.api.go_text import quoted
from kubewright.api.kinds import GroupResource
from kubewright.apiserver.admission.node_restriction.pods import stored_pod
from kubewright.apiserver.builtin.trees import Tree, items, peek, text
from kubewright.apiserver.kinds.access import Access
from kubewright.apiserver.kinds.admission import Attributes, admission_forbidden
from kubewright.apiserver.kinds.resources import key_of
from kubewright.apiserver.storage.store import Store
from kubewright.apiserver.wire.decoding import decode_json
from kubewright.apiserver.wire.requests import RequestInfo
from kubewright.apiserver.wire.status_errors import StatusError, not_found

__all__ = ("TokenRestriction",)


@final
class TokenRestriction:
    """Checks the token requests of a node."""

    def __init__(self, store: Store, access: Access) -> None:
        self._store = store
        self._access = access

    def check(self, node: str, attributes: Attributes) -> None:
        """Refuse a token that is not for a pod of the node."""
        if attributes.operation != "CREATE" or attributes.subresource != "token":
            return
        spec = (attributes.object or {}).get("spec") or {}
        bound = spec.get("boundObjectRef") or {}
        if (bound.get("apiVersion"), bound.get("kind")) != ("v1", "Pod") or not bound.get("name"):
            raise admission_forbidden(attributes, "node requested token not bound to a pod")
        uid = bound.get("uid")
        if not uid:
            raise admission_forbidden(attributes, "node requested token with a pod binding without a uid")
        pod = stored_pod(self._store, attributes.namespace, bound["name"])
        if uid != pod["metadata"]["uid"]:
            why = (
                f"the UID in the bound object reference ({uid}) does not match the UID in record. The object might"
                " have been deleted and then recreated"
            )
            raise admission_forbidden(attributes, why)
        if text(pod, "spec", "nodeName") != node:
            raise admission_forbidden(attributes, "node requested token bound to a pod scheduled on a different node")
        self._check_audience(attributes, pod, spec.get("audiences") or [])

    def _check_audience(self, attributes: Attributes, pod: Tree, audiences: list[str]) -> None:
        if len(audiences) > 1:
            raise admission_forbidden(attributes, "node may only request 0 or 1 audiences")
        audience = audiences[0] if audiences else ""
        errors = []
        for volume in items(pod.get("spec"), "volumes"):
            try:
                if audience in self._audiences(pod, volume):
                    return
            except StatusError as error:
                errors.append(str(error))
        if errors:
            why = errors[0] if len(set(errors)) == 1 else f"[{', '.join(dict.fromkeys(errors))}]"
            raise admission_forbidden(attributes, f"error validating audience {quoted(audience)}: {why}")
        user = attributes.user
        info = RequestInfo(
            verb="request-serviceaccounts-token-audience",
            path="",
            version="v1",
            resource=audience,
            namespace=attributes.namespace,
            name=attributes.name,
        )
        if not self._access.decide(user, info).allowed:
            why = f"{user.name} is not authorized to request tokens for this audience"
            raise admission_forbidden(attributes, f"audience {quoted(audience)} not found in pod spec volume, {why}")

    def _audiences(self, pod: Tree, volume: Tree) -> set[str]:
        """The audiences of the tokens that a volume needs."""
        sources = items(volume.get("projected"), "sources")
        found = {text(one, "serviceAccountToken", "audience") for one in sources if one.get("serviceAccountToken")}
        driver = text(volume, "csi", "driver") or self._driver_of_claim(pod, volume)
        if driver:
            spec = self._find("storage.k8s.io", "csidriver", driver)["spec"]
            found.update(text(one, "audience") for one in items(spec, "tokenRequests"))
        return found

    def _driver_of_claim(self, pod: Tree, volume: Tree) -> str:
        """The CSI driver of the volume that the claim of a pod's volume is bound to."""
        claim = text(volume, "persistentVolumeClaim", "claimName")
        if peek(volume, "ephemeral", "volumeClaimTemplate"):
            claim = f"{pod['metadata']['name']}-{text(volume, 'name')}"
        if not claim:
            return ""
        bound = self._find("", "persistentvolumeclaim", claim, pod["metadata"]["namespace"])
        return text(self._find("", "persistentvolume", text(bound, "spec", "volumeName")), "spec", "csi", "driver")

    def _find(self, group: str, singular: str, name: str, namespace: str = "") -> Tree:
        entry = self._store.table(f"{group}/{singular}s").get(key_of(namespace, name))
        if entry is None:
            raise not_found(GroupResource(group, singular), name)
        tree: Tree = decode_json(entry.value)
        return tree
