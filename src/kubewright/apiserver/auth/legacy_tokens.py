"""The controller of token Secrets (type kubernetes.io/service-account-token) and the tracking of their use.

A Secret that names a service account gets a token, the CA and its namespace; one whose account was deleted or replaced
is deleted. In a cluster this runs in kube-controller-manager
(k8s.io/kubernetes/pkg/controller/serviceaccount/tokens_controller.go); here it is part of the server.
"""

from __future__ import annotations

import base64
import logging
from typing import Any, Final, final

from kubewright._base.clock import Clock
from kubewright.apiserver.auth.service_accounts import LAST_USED, ServiceAccounts, username
from kubewright.apiserver.auth.tokens import LEGACY_ISSUER, ServiceAccountTokens
from kubewright.apiserver.catalog import Catalog
from kubewright.apiserver.kinds.resources import Tree
from kubewright.apiserver.storage.store import Store
from kubewright.apiserver.verbs.loopback import Loopback
from kubewright.apiserver.verbs.table_controller import TableController
from kubewright.apiserver.wire.decoding import decode_json

__all__ = ("LegacyTokenController",)

_TYPE: Final = "kubernetes.io/service-account-token"
_NAME: Final = "kubernetes.io/service-account.name"
_UID: Final = "kubernetes.io/service-account.uid"
_MANAGER: Final = "kube-controller-manager"
_CLAIM: Final = "kubernetes.io/serviceaccount/"
_LOG: Final = logging.getLogger(__name__)


@final
class LegacyTokenController:
    """Syncs the Secrets with tokens."""

    def __init__(
        self,
        store: Store,
        catalog: Catalog,
        loopback: Loopback,
        accounts: ServiceAccounts,
        signer: ServiceAccountTokens,
        *,
        clock: Clock,
        root_certificate: bytes,
    ) -> None:
        self._secrets = store.table("/secrets")
        self._accounts = store.table("/serviceaccounts")
        self._resource = catalog.builtin("", "secrets")
        self._loopback = loopback
        self._signer = signer
        self._clock = clock
        self._root = base64.b64encode(root_certificate).decode()
        self._used: set[str] = set()
        self._secret_controller = TableController("token secrets", self._sync_secret)
        self._secret_controller.watch(self._secrets)
        self._account_controller = TableController("accounts of token secrets", self._sync_namespace)
        self._account_controller.watch(self._accounts, lambda key: key.partition("/")[0])
        accounts.subscribe_legacy_use(self._record_use)

    def start(self) -> None:
        """Start; existing Secrets are synced."""
        self._secret_controller.start()
        self._account_controller.start()

    @property
    def running(self) -> bool:
        """Whether the controller runs."""
        return self._secret_controller.running and self._account_controller.running

    async def stop(self) -> None:
        """Stop."""
        await self._secret_controller.stop()
        await self._account_controller.stop()

    def _record_use(self, namespace: str, name: str) -> None:
        self._used.add(f"{namespace}/{name}")
        self._secret_controller.add(f"{namespace}/{name}")

    async def _sync_namespace(self, namespace: str) -> None:
        """Service accounts changed: sync the token Secrets of their namespace."""
        for entry in self._secrets.entries(namespace):
            if _TYPE.encode() in entry.value:
                self._secret_controller.add(entry.key)

    async def _sync_secret(self, key: str) -> None:
        entry = self._secrets.get(key)
        if entry is None or _TYPE.encode() not in entry.value:
            return
        secret: Tree = decode_json(entry.value)
        meta = secret["metadata"]
        if secret.get("type") != _TYPE or meta.get("deletionTimestamp"):
            return
        account = self._account_of(meta)
        if account is None:
            await self._loopback.delete(self._resource, key, manager=_MANAGER)
            return
        if not _has_token(secret):
            await self._loopback.edit(
                self._resource, key, lambda live: self._with_token(live, account), manager=_MANAGER
            )
        if key in self._used:
            self._used.discard(key)
            today = self._clock.now().date().isoformat()
            await self._loopback.edit(self._resource, key, lambda live: _with_last_used(live, today))

    def _account_of(self, meta: dict[str, Any]) -> Tree | None:
        """The service account of a Secret; None if it does not exist, or has another uid."""
        annotations = meta.get("annotations") or {}
        entry = self._accounts.get(f"{meta['namespace']}/{annotations.get(_NAME, '')}")
        account: Tree | None = None if entry is None else decode_json(entry.value)
        if account is not None and annotations.get(_UID) not in (None, "", account["metadata"]["uid"]):
            return None
        return account

    def _with_token(self, secret: Tree, account: Tree) -> Tree:
        meta, owner = secret["metadata"], account["metadata"]
        data = dict(secret.get("data") or {})
        data.setdefault("ca.crt", self._root)
        data.setdefault("namespace", base64.b64encode(meta["namespace"].encode()).decode())
        if not data.get("token"):
            claims = {
                "iss": LEGACY_ISSUER,
                "sub": username(meta["namespace"], owner["name"]),
                f"{_CLAIM}namespace": meta["namespace"],
                f"{_CLAIM}secret.name": meta["name"],
                f"{_CLAIM}service-account.name": owner["name"],
                f"{_CLAIM}service-account.uid": owner["uid"],
            }
            data["token"] = base64.b64encode(self._signer.sign(claims).encode()).decode()
        annotations = {**(meta.get("annotations") or {}), _NAME: owner["name"], _UID: owner["uid"]}
        return {**secret, "metadata": {**meta, "annotations": annotations}, "data": data}


def _has_token(secret: Tree) -> bool:
    data = secret.get("data") or {}
    return bool(data.get("token") and data.get("ca.crt") and data.get("namespace"))


def _with_last_used(secret: Tree, today: str) -> Tree:
    meta = secret["metadata"]
    return {**secret, "metadata": {**meta, "labels": {**(meta.get("labels") or {}), LAST_USED: today}}}
