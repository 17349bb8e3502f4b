"""From the body of a create or an update to an object of the resource: decoded, checked and defaulted.

The steps before the registry of kube-apiserver's handlers (staging/src/k8s.io/apiserver/pkg/endpoints/handlers/
create.go, update.go and rest.go): decode, strict field validation, defaults, and the name and namespace of the URL.
`decode_errors` has the messages.
"""

from __future__ import annotations

from typing import Any

from kubewright.apiserver.kinds.calls import Call
from kubewright.apiserver.kinds.large_requests import off_loop
from kubewright.apiserver.kinds.resources import Resource, Tree
from kubewright.apiserver.kinds.system_metadata import parse_version
from kubewright.apiserver.verbs.decode_errors import (
    check_custom_type,
    strict_decoding_error,
    strict_errors,
    type_mismatch,
)
from kubewright.apiserver.wire.decoding import read_object
from kubewright.apiserver.wire.options import WriteOptions
from kubewright.apiserver.wire.status_errors import bad_request, status_error

__all__ = (
    "check_name",
    "check_type",
    "clear_version",
    "decode_object",
    "ensure_namespace",
    "normalize",
)


async def decode_object(call: Call, options: WriteOptions) -> Tree:
    """The body as an object of the call's resource, with defaults."""
    return await off_loop(call.size, lambda: _decode(call, options))


def _decode(call: Call, options: WriteOptions) -> Tree:
    tree, duplicates = read_object(call.request, kind=call.resource.kind)
    if call.resource.custom:
        check_custom_type(call, tree)
    check_type(call.resource, tree)
    normalize(call, tree, options, duplicates)
    return tree


def check_type(resource: Resource, tree: Tree) -> None:
    """Refuse an object of another kind or version; one that does not state them is of the resource's."""
    kind = resource.kind
    version, name = tree.get("apiVersion") or kind.api_version, tree.get("kind") or kind.kind
    if version != kind.api_version or name != kind.kind:
        raise bad_request(type_mismatch(resource, str(version), str(name)))
    tree["apiVersion"], tree["kind"] = kind.api_version, kind.kind


def normalize(
    call: Call, tree: Tree, options: WriteOptions, duplicates: list[str], *, is_patched: bool = False
) -> None:
    """Drop unknown fields and set defaults. `fieldValidation` decides whether an unknown or duplicate field is an error
    (Strict), a warning (Warn) or neither (Ignore)."""
    strategy = call.resource.strategy
    unknown = strategy.normalize(tree)
    if is_patched:
        unknown.sort()  # kube-apiserver decodes a patched object from JSON, which it writes in alphabetical order
    if (unknown or duplicates) and options.validation != "Ignore":
        errors = strict_errors(call, duplicates, unknown, is_patched=is_patched)
        if options.validation == "Strict":
            raise bad_request(strict_decoding_error(call.resource, errors))
        for text in errors:
            call.warn(text)
    strategy.default(tree)


def check_name(call: Call, meta: dict[str, Any]) -> None:
    """Refuse an object whose name is not that of the URL."""
    name = meta.get("name")
    if not name:
        raise bad_request(
            f"the name of the object ({call.info.name} based on URL) was undeterminable: name must be provided"
        )
    if name != call.info.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({call.info.name})")


def ensure_namespace(call: Call, meta: dict[str, Any]) -> None:
    """Refuse an object of another namespace than the URL's; fill in namespace and name from the URL."""
    namespace = call.namespace
    given = meta.get("namespace") or ""
    if given and namespace and given != namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    if namespace:
        meta["namespace"] = namespace
    else:
        meta.pop("namespace", None)
    if call.info.name and not meta.get("name"):
        meta["name"] = call.info.name


def clear_version(meta: dict[str, Any], options: WriteOptions) -> None:
    """Drop the resourceVersion of an object that an update or an apply creates: it may be any number.

    A dry run shows it as it was sent, because kube-apiserver drops it only when it writes.
    """
    if parse_version(meta) is None:
        raise status_error(500, "", f'strconv.ParseUint: parsing "{meta["resourceVersion"]}": invalid syntax')
    if not options.dry_run:
        meta.pop("resourceVersion", None)
