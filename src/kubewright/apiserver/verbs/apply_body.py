"""What a client applies: the body of a server-side apply, checked before it is merged.

The body is YAML (JSON is YAML too) and must say what it is: type, and no managed fields of its own.
"""

from __future__ import annotations

from kubewright._base.yaml import load
from kubewright.apiserver.kinds.calls import Call
from kubewright.apiserver.kinds.resources import Tree
from kubewright.apiserver.kinds.system_metadata import meta_of
from kubewright.apiserver.wire.decoding import decode_json, duplicate_fields, go_yaml_error
from kubewright.apiserver.wire.go_json import json_type_name
from kubewright.apiserver.wire.options import WriteOptions
from kubewright.apiserver.wire.status_errors import StatusError, bad_request

__all__ = ("read_apply",)


def read_apply(call: Call, options: WriteOptions) -> Tree:
    """The applied object, as it was said: what the URL says is not filled in."""
    repeated: list[str] = []
    tree = _parsed(call.request.body, repeated)
    if repeated and options.validation == "Strict":
        lines = "\n".join(f"  {text}" for text in repeated)
        why = f"error converting YAML to JSON: yaml: unmarshal errors:\n{lines}"
        raise bad_request(f"error strict decoding YAML: {why}")
    if options.validation == "Warn":
        for text in repeated:
            call.warn(text)
    kind = call.resource.kind
    said_version, said_kind = str(tree.get("apiVersion") or ""), str(tree.get("kind") or "")
    if said_version != kind.api_version or said_kind != kind.kind:
        group, slash, version = said_version.rpartition("/")
        raise bad_request(f"invalid object type: {group}{slash or '/'}{version}, Kind={said_kind}")
    meta = meta_of(tree)
    if meta.get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    name = meta.get("name")
    if name and name != call.target.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({call.target.name})")
    namespace = meta.get("namespace")
    if namespace and not call.namespace:  # said of a kind that has none: passed over
        del meta["namespace"]
    elif namespace and namespace != call.namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    return tree


def _parsed(body: bytes, repeated: list[str]) -> Tree:
    """The body as a tree; a text whose JSON reading hides that it says something twice is read again as YAML."""
    try:
        tree = decode_json(body)
        if duplicate_fields(body, tree):
            load(body, repeated=repeated)
    except StatusError:
        try:
            tree = load(body, repeated=repeated)
        except (ValueError, RecursionError) as exc:
            raise bad_request(f"error decoding YAML: error converting YAML to JSON: {go_yaml_error(exc)}") from None
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        raise bad_request(
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal"
            f" {json_type_name(tree)} into Go value of type map[string]interface {{}}"
        )
    return tree
