"""Authenticates service account tokens: validates their claims against the store.

The signature (`tokens`) proves that this server issued a token. Whether the account, and the pod, Secret or node it is
bound to, still exist with the same uid, is checked here, so that a token dies with the object it is bound to. Upstream:
k8s.io/kubernetes/pkg/serviceaccount/claims.go, and legacy.go for tokens in Secrets. `authentication` calls it.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final, final

import msgspec
from msgspec import Struct

from kubewright._base.clock import Clock
from kubewright.api.go_text import quoted
from kubewright.api.names import dns1123_label_errors, dns1123_subdomain_errors
from kubewright.api.times import parse_time
from kubewright.apiserver.auth.tokens import LEGACY_ISSUER, BadToken, ServiceAccountTokens
from kubewright.apiserver.storage.store import Store
from kubewright.apiserver.wire.users import User

__all__ = ("LAST_USED", "Identity", "ServiceAccounts", "account_groups", "split_username", "username")

LAST_USED: Final = "kubernetes.io/legacy-token-last-used"
_INVALID_SINCE: Final = "kubernetes.io/legacy-token-invalid-since"
_PREFIX: Final = "system:serviceaccount:"
_EXTRA: Final = "authentication.kubernetes.io/"
_LEEWAY: Final = 60.0
_INVALIDATED: Final = "service account token has been invalidated"


class Identity(Struct, frozen=True):
    """The user of a token, and those of the requested audiences it is valid for."""

    user: User
    audiences: tuple[str, ...] = ()
    annotations: Mapping[str, str] = {}
    """Audit annotations."""


class _Meta(Struct, frozen=True, rename="camel"):
    uid: str = ""
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None


class _Object(Struct, frozen=True):
    metadata: _Meta
    data: dict[str, str] | None = None


_read: Final = msgspec.json.Decoder(_Object).decode


def username(namespace: str, name: str) -> str:
    """The user name of a service account."""
    return f"{_PREFIX}{namespace}:{name}"


def account_groups(namespace: str) -> tuple[str, ...]:
    """The groups of all service accounts of a namespace."""
    return ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")


def split_username(name: str) -> tuple[str, str] | None:
    """Namespace and name of a service account; None if this is not the user name of one."""
    if not name.startswith(_PREFIX):
        return None
    namespace, colon, account = name.removeprefix(_PREFIX).partition(":")
    if not colon or dns1123_label_errors(namespace) or dns1123_subdomain_errors(account):
        return None
    return namespace, account


@final
class ServiceAccounts:
    """Authenticates service account tokens."""

    def __init__(self, store: Store, signer: ServiceAccountTokens, clock: Clock) -> None:
        self._store = store
        self._signer = signer
        self._clock = clock
        self._legacy_listener: Callable[[str, str], None] | None = None

    def subscribe_legacy_use(self, listener: Callable[[str, str], None]) -> None:
        """Call the listener with the namespace and name of a Secret whenever the token in it is used.

        Not an argument of the constructor: the listener labels the Secret, which takes the verbs, which take admission,
        which takes the access these accounts belong to.
        """
        self._legacy_listener = listener

    def authenticate_token(self, token: str, audiences: tuple[str, ...] = ()) -> Identity | None:
        """The identity of a token; None if it is no service account token. Raises BadToken."""
        claims = self._signer.verify(token)
        if claims is None:
            return None
        wanted = audiences or self._signer.audiences
        token_audiences = tuple(_strings(claims.get("aud")))
        common = tuple(one for one in token_audiences or self._signer.audiences if one in wanted)
        if not common:
            raise BadToken(
                f"token audiences {_go_list(token_audiences)} is invalid for the target audiences {_go_list(wanted)}"
            )
        if claims["iss"] == LEGACY_ISSUER:
            return self._legacy(token, claims, common)
        self._check_times(claims)
        return Identity(self._bound(claims), common, self._stale_annotation(claims))

    def _check_times(self, claims: Mapping[str, Any]) -> None:
        now = self._clock.now().timestamp()
        if now - _LEEWAY > _claim_time(claims, "exp", now):
            raise BadToken("service account token has expired")
        if now + _LEEWAY < _claim_time(claims, "nbf", now):
            raise BadToken("service account token is not valid yet")
        if now + _LEEWAY < _claim_time(claims, "iat", now):
            raise BadToken("service account token is issued in the future")

    def _stale_annotation(self, claims: Mapping[str, Any]) -> dict[str, str]:
        limit = claims["kubernetes.io"].get("warnafter")
        past = int(self._clock.now().timestamp()) - limit if limit else 0
        if past <= 0:
            return {}
        text = f"subject: {claims.get('sub', '')}, seconds after warning threshold: {past}"
        return {"authentication.k8s.io/stale-token": text}

    # bound tokens

    def _bound(self, claims: Mapping[str, Any]) -> User:
        private = claims.get("kubernetes.io")
        if not isinstance(private, dict):
            raise BadToken(_INVALIDATED)
        namespace, account = str(private.get("namespace", "")), _ref(private, "serviceaccount")
        self._check_account(namespace, *account)
        extra: dict[str, tuple[str, ...]] = {}
        if claims.get("jti"):
            extra[f"{_EXTRA}credential-id"] = (f"JTI={claims['jti']}",)
        if "secret" in private:
            self._check_bound_object(f"/secrets|{namespace}/", private, "secret")
        if "pod" in private:
            self._check_bound_object(f"/pods|{namespace}/", private, "pod")
            extra |= _extra_of("pod", private)
        elif "node" in private:
            self._check_bound_object("/nodes|", private, "node")
        if "node" in private:
            extra |= _extra_of("node", private)
        groups = (*account_groups(namespace), "system:authenticated")
        return User(username(namespace, account[0]), groups, account[1], extra)

    def _check_account(self, namespace: str, name: str, uid: str) -> None:
        account = self._find("/serviceaccounts", f"{namespace}/{name}")
        if account is None:
            raise BadToken(f"serviceaccounts {quoted(name)} not found")
        if account.metadata.uid != uid:
            raise BadToken(f"service account UID ({account.metadata.uid}) does not match claim ({uid})")
        if self._is_deleted(account):
            raise BadToken(f"service account {namespace}/{name} has been deleted")

    def _check_bound_object(self, place: str, private: Mapping[str, Any], kind: str) -> None:
        name, uid = _ref(private, kind)
        table, _, prefix = place.partition("|")
        found = self._find(table, f"{prefix}{name}")
        if found is None:
            raise BadToken(_INVALIDATED)
        if found.metadata.uid != uid:
            raise BadToken(f"{kind} UID ({found.metadata.uid}) does not match service account {kind} ref claim ({uid})")
        if self._is_deleted(found):
            raise BadToken(_INVALIDATED)

    def _find(self, table: str, key: str) -> _Object | None:
        entry = self._store.table(table).get(key)
        return None if entry is None else _read(entry.value)

    def _is_deleted(self, found: _Object) -> bool:
        marked = found.metadata.deletion_timestamp
        return marked is not None and _seconds(marked) < self._clock.now().timestamp() - _LEEWAY

    # legacy tokens, in Secrets

    def _legacy(self, token: str, claims: Mapping[str, Any], audiences: tuple[str, ...]) -> Identity:
        namespace, name, uid, secret = (
            str(claims.get(f"kubernetes.io/serviceaccount/{part}", ""))
            for part in ("namespace", "service-account.name", "service-account.uid", "secret.name")
        )
        if split_username(str(claims.get("sub", ""))) != (namespace, name):
            raise BadToken("sub claim is invalid")
        stored_secret = self._find("/secrets", f"{namespace}/{secret}")
        if stored_secret is None or stored_secret.metadata.deletion_timestamp is not None:
            raise BadToken("Token has been invalidated")
        stored = base64.b64decode((stored_secret.data or {}).get("token", ""))
        if not hmac.compare_digest(stored, token.encode()):
            raise BadToken("Token does not match server's copy")
        self._check_legacy_account(namespace, name, uid)
        labels = stored_secret.metadata.labels or {}
        if labels.get(_INVALID_SINCE):
            raise BadToken(
                f"the token in secret {namespace}/{secret} for service account {namespace}/{name} has been marked"
                " invalid. Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the"
                f" '{_INVALID_SINCE}' label from the secret to temporarily allow use of this token"
            )
        if self._legacy_listener is not None and labels.get(LAST_USED) != self._clock.now().date().isoformat():
            self._legacy_listener(namespace, secret)
        groups = (*account_groups(namespace), "system:authenticated")
        annotations = {
            "authentication.k8s.io/legacy-token": username(namespace, name),
            "authentication.k8s.io/legacy-token-manual-secret": secret,
        }
        return Identity(User(username(namespace, name), groups, uid), audiences, annotations)

    def _check_legacy_account(self, namespace: str, name: str, uid: str) -> None:
        account = self._find("/serviceaccounts", f"{namespace}/{name}")
        if account is None:
            raise BadToken(f"serviceaccounts {quoted(name)} not found")
        if account.metadata.deletion_timestamp is not None:
            raise BadToken(f"ServiceAccount {namespace}/{name} has been deleted")
        if account.metadata.uid != uid:
            raise BadToken(f"ServiceAccount UID ({account.metadata.uid}) does not match claim ({uid})")


def _seconds(text: str) -> float:
    moment: datetime = parse_time(text)
    return moment.timestamp()


def _claim_time(claims: Mapping[str, Any], name: str, default: float) -> float:
    value = claims.get(name)
    return float(value) if isinstance(value, (int, float)) else default


def _ref(private: Mapping[str, Any], kind: str) -> tuple[str, str]:
    ref = private.get(kind)
    return (str(ref.get("name", "")), str(ref.get("uid", ""))) if isinstance(ref, dict) else ("", "")


def _extra_of(kind: str, private: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    name, uid = _ref(private, kind)
    parts = ((f"{_EXTRA}{kind}-name", name), (f"{_EXTRA}{kind}-uid", uid))
    return {key: (value,) for key, value in parts if value}


def _strings(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else [str(one) for one in value or ()]


def _go_list(values: tuple[str, ...]) -> str:
    return "[" + " ".join(quoted(value) for value in values) + "]"
