"""Tokens kept in Secrets of type `kubernetes.io/service-account-token`: filled in, cleaned up, and their use noted.

The work of a controller of kube-controller-manager, done by the server itself. A Secret that names an account gets a
token, the CA and its namespace; one whose account is missing or was replaced is deleted.
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

__all__ = ("LegacyTokens",)

_TYPE: Final = "kubernetes.io/service-account-token"
_NAME: Final = "kubernetes.io/service-account.name"
_UID: Final = "kubernetes.io/service-account.uid"
_CONTROLLER: Final = "kube-controller-manager"
_CLAIM: Final = "kubernetes.io/serviceaccount/"
_LOG: Final = logging.getLogger(__name__)


@final
class LegacyTokens:
    """Looks after the Secrets that hold tokens."""

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
        self._of_secrets = TableController("token secrets", self._sync_secret)
        self._of_secrets.watch(self._secrets)
        self._of_accounts = TableController("accounts of token secrets", self._sync_namespace)
        self._of_accounts.watch(self._accounts, lambda key: key.partition("/")[0])
        accounts.subscribe_legacy_use(self._note_use)

    def start(self) -> None:
        """Begin; Secrets that are there already are looked at."""
        self._of_secrets.start()
        self._of_accounts.start()

    @property
    def running(self) -> bool:
        """Whether Secrets and accounts are followed."""
        return self._of_secrets.running and self._of_accounts.running

    async def stop(self) -> None:
        """End."""
        await self._of_secrets.stop()
        await self._of_accounts.stop()

    def _note_use(self, namespace: str, name: str) -> None:
        self._used.add(f"{namespace}/{name}")
        self._of_secrets.add(f"{namespace}/{name}")

    async def _sync_namespace(self, namespace: str) -> None:
        """Accounts came or went: the Secrets of their namespace may have lost theirs."""
        for entry in self._secrets.entries(namespace):
            if _TYPE.encode() in entry.value:
                self._of_secrets.add(entry.key)

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
            await self._loopback.delete(self._resource, key, manager=_CONTROLLER)
            return
        if not _is_filled(secret):
            await self._loopback.edit(
                self._resource, key, lambda live: self._filled(live, account), manager=_CONTROLLER
            )
        if key in self._used:
            self._used.discard(key)
            today = self._clock.now().date().isoformat()
            await self._loopback.edit(self._resource, key, lambda live: _labelled(live, today))

    def _account_of(self, meta: dict[str, Any]) -> Tree | None:
        """The account a Secret is for; None if there is none, or another of the same name."""
        notes = meta.get("annotations") or {}
        entry = self._accounts.get(f"{meta['namespace']}/{notes.get(_NAME, '')}")
        account: Tree | None = None if entry is None else decode_json(entry.value)
        if account is not None and notes.get(_UID) not in (None, "", account["metadata"]["uid"]):
            return None
        return account

    def _filled(self, secret: Tree, account: Tree) -> Tree:
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
        notes = {**(meta.get("annotations") or {}), _NAME: owner["name"], _UID: owner["uid"]}
        return {**secret, "metadata": {**meta, "annotations": notes}, "data": data}


def _is_filled(secret: Tree) -> bool:
    data = secret.get("data") or {}
    return bool(data.get("token") and data.get("ca.crt") and data.get("namespace"))


def _labelled(secret: Tree, today: str) -> Tree:
    meta = secret["metadata"]
    return {**secret, "metadata": {**meta, "labels": {**(meta.get("labels") or {}), LAST_USED: today}}}
