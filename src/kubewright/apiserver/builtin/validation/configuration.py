"""Validates ConfigMaps, Secrets and Namespaces: keys, sizes, immutability and finalizers."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import Final

from kubewright.apiserver.builtin.validation.fields import (
    IMMUTABLE,
    JSON,
    Errors,
    each,
    forbidden,
    invalid,
    required,
    too_long,
)
from kubewright.apiserver.builtin.validation.formats import config_key_errors, qualified_name_errors

__all__ = (
    "config_map_errors",
    "config_map_update_errors",
    "finalizer_errors",
    "namespace_errors",
    "namespace_finalize_errors",
    "namespace_status_errors",
    "secret_errors",
    "secret_update_errors",
)

_LIMIT: Final = 1024 * 1024
_FROZEN: Final = "field is immutable when `immutable` is set"
_FINALIZERS: Final = ("kubernetes", "orphan", "foregroundDeletion")
_TOKEN: Final = "kubernetes.io/service-account.name"  # noqa: S105  # the name of an annotation
_JSON_KEYS: Final = {
    "kubernetes.io/dockercfg": ".dockercfg",
    "kubernetes.io/dockerconfigjson": ".dockerconfigjson",
}


def _decoded_size(text: str | None) -> int:
    return len(text) * 3 // 4 - text[-2:].count("=") if text else 0


def config_map_errors(config: JSON) -> Errors:  # hot
    """ValidateConfigMap."""
    errors: Errors = []
    data, binary = config.get("data") or {}, config.get("binaryData") or {}
    size = 0
    for key, value in data.items():
        if wrong := config_key_errors(key):
            errors += each(f"data[{key}]", key, wrong)
        if key in binary:
            errors.append(invalid(f"data[{key}]", key, "duplicate of key present in binaryData"))
        size += len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))
    for key, value in binary.items():
        if wrong := config_key_errors(key):
            errors += each(f"binaryData[{key}]", key, wrong)
        size += _decoded_size(value)
    if size > _LIMIT:
        errors.append(too_long("", _LIMIT))
    return errors


def config_map_update_errors(config: JSON, old: JSON) -> Errors:
    """ValidateConfigMapUpdate: an immutable ConfigMap stays as it is."""
    errors = _frozen_errors(config, old, "data", "binaryData") if old.get("immutable") else []
    return errors + config_map_errors(config)


def _frozen_errors(new: JSON, old: JSON, *names: str) -> Errors:
    errors = [] if new.get("immutable") else [forbidden("immutable", _FROZEN)]
    return errors + [forbidden(name, _FROZEN) for name in names if (new.get(name) or {}) != (old.get(name) or {})]


def secret_errors(secret: JSON) -> Errors:
    """ValidateSecret: keys, size, and the data that its type requires."""
    data = secret.get("data") or {}
    errors: Errors = []
    for key in data:
        errors += each(f"data[{key}]", key, config_key_errors(key))
    if sum(map(_decoded_size, data.values())) > _LIMIT:
        errors.append(too_long("data", _LIMIT))
    kind = secret.get("type", "")
    if kind == "kubernetes.io/service-account-token":
        notes = (secret.get("metadata") or {}).get("annotations") or {}
        if not notes.get(_TOKEN):
            errors.append(required(f"metadata.annotations[{_TOKEN}]"))
    elif kind in _JSON_KEYS:
        errors += _registry_errors(data, _JSON_KEYS[kind])
    elif kind == "kubernetes.io/basic-auth":
        if "username" not in data and "password" not in data:
            errors += [required("data[username]"), required("data[password]")]
    elif kind == "kubernetes.io/ssh-auth":
        if not data.get("ssh-privatekey"):
            errors.append(required("data[ssh-privatekey]"))
    elif kind == "kubernetes.io/tls":
        errors += [required(f"data[{key}]") for key in ("tls.crt", "tls.key") if key not in data]
    return errors


def _registry_errors(data: JSON, key: str) -> Errors:
    if key not in data:
        return [required(f"data[{key}]")]
    text = b64decode(data[key] or "")
    why = _json_error(text)
    return [invalid(f"data[{key}]", "<secret contents redacted>", why)] if why else []


def _json_error(text: bytes) -> str:
    """Go's error for a text that is not a JSON object; empty if it is one."""
    if not text.strip():
        return "unexpected end of JSON input"
    try:
        tree = json.loads(text)
    except json.JSONDecodeError as exc:
        if exc.pos >= len(exc.doc):
            return "unexpected end of JSON input"
        return f"invalid character {exc.doc[exc.pos]!r} looking for beginning of value"
    except UnicodeDecodeError:
        return "invalid character looking for beginning of value"
    if tree is None or isinstance(tree, dict):
        return ""
    word = {str: "string", bool: "bool", list: "array"}.get(type(tree), "number")
    return f"json: cannot unmarshal {word} into Go value of type map[string]interface {{}}"


def secret_update_errors(secret: JSON, old: JSON) -> Errors:
    """ValidateSecretUpdate: the type is immutable."""
    errors: Errors = []
    if secret.get("type", "") != old.get("type", ""):
        errors.append(invalid("type", secret.get("type", ""), IMMUTABLE))
    if old.get("immutable"):
        errors += _frozen_errors(secret, old, "data")
    return errors + secret_errors(secret)


def finalizer_errors(path: str, name: str) -> Errors:
    """ValidateFinalizerName: a qualified name, or one of the standard finalizers."""
    if "/" in name or name in _FINALIZERS:
        return []
    return [invalid(path, name, "name is neither a standard finalizer name nor is it fully qualified")]


def _spec_finalizers(namespace: JSON, *, indexed: bool) -> Errors:
    errors: Errors = []
    for position, name in enumerate((namespace.get("spec") or {}).get("finalizers") or ()):
        place = f"spec.finalizers[{position}]" if indexed else "spec.finalizers"
        errors += each(place, name, qualified_name_errors(name)) + finalizer_errors(place, name)
    return errors


def namespace_errors(namespace: JSON) -> Errors:
    """ValidateNamespace."""
    return _spec_finalizers(namespace, indexed=False)


def namespace_finalize_errors(namespace: JSON, old: JSON) -> Errors:
    """ValidateNamespaceFinalizeUpdate."""
    return _spec_finalizers(namespace, indexed=True)


def namespace_status_errors(namespace: JSON, old: JSON) -> Errors:
    """ValidateNamespaceStatusUpdate: the phase is Terminating if and only if the namespace is being deleted."""
    phase = (namespace.get("status") or {}).get("phase", "")
    deleted = bool((namespace.get("metadata") or {}).get("deletionTimestamp"))
    wanted, state = ("Terminating", "not empty") if deleted else ("Active", "empty")
    if phase == wanted:
        return []
    return [invalid("status.Phase", phase, f"may only be '{wanted}' if `deletionTimestamp` is {state}")]
