"""Which form an answer takes and a body has: JSON, YAML or protobuf, whole, as a table or as metadata only.

The `Accept` header is read as kube-apiserver reads it: the first clause that can be served wins, in order of q.
Pure and cached, as clients send the same few headers over and over.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, Literal

from msgspec import Struct

from kubewright.apiserver.refusals import not_acceptable, refused

__all__ = ("APPLY_JSON", "APPLY_YAML", "JSON", "PROTOBUF", "YAML", "Form", "form_of", "media_type")

JSON: Final = "application/json"
YAML: Final = "application/yaml"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
APPLY_YAML: Final = "application/apply-patch+yaml"
APPLY_JSON: Final = "application/apply-patch+json"

As = Literal["", "Table", "PartialObjectMetadata", "PartialObjectMetadataList"]


class Form(Struct, frozen=True):
    """How to write an answer."""

    media: str = JSON
    as_kind: As = ""
    content_type: str = JSON
    version: str = "v1"
    """Of `meta.k8s.io`, for what is not the object itself."""
    stream: str = ""
    """`watch` when the media type asks for framed events."""


def media_type(header: str) -> str:
    """The media type alone, in lower case, without parameters."""
    return header.partition(";")[0].strip().lower()


@lru_cache(maxsize=1024)
def form_of(accept: str, *, tables: bool = True, protobuf: bool = True) -> Form:
    """The best form the client accepts, or a refusal that lists what there is."""
    if not accept:
        return Form()
    offered = [JSON, YAML, *([PROTOBUF] if protobuf else [])]
    transformed = False
    for media, parameters in _clauses(accept):
        form = _served((media, parameters), tables=tables, protobuf=protobuf)
        if form is not None:
            return form
        transformed = transformed or (media in offered and "as" in parameters)
    if transformed:
        message = f"only the following media types are accepted: {', '.join(offered)}"
        raise refused(406, "NotAcceptable", message)
    raise not_acceptable(offered)


def _clauses(accept: str) -> list[tuple[str, dict[str, str]]]:
    found: list[tuple[float, int, str, dict[str, str]]] = []
    for index, text in enumerate(accept.split(",")):
        media, *rest = (part.strip() for part in text.split(";"))
        parameters = {name.strip(): value.strip() for name, _, value in (part.partition("=") for part in rest)}
        try:
            quality = float(parameters.pop("q", "1"))
        except ValueError:
            quality = 0.0
        if media:
            found.append((-quality, index, media.lower(), parameters))
    return [(media, parameters) for _, _, media, parameters in sorted(found, key=lambda item: item[:2])]


def _served(clause: tuple[str, dict[str, str]], *, tables: bool, protobuf: bool) -> Form | None:
    media, parameters = clause
    if media == "*/*":
        media = JSON
    known = (JSON, YAML, PROTOBUF) if protobuf else (JSON, YAML)
    if media not in known:
        return None
    as_kind = parameters.get("as", "")
    if not as_kind:
        stream = parameters.get("stream", "")
        return Form(media=media, content_type=f"{media};stream={stream}" if stream else media, stream=stream)
    if not tables or parameters.get("g") != "meta.k8s.io" or parameters.get("v") not in ("v1", "v1beta1"):
        return None
    if as_kind not in ("Table", "PartialObjectMetadata", "PartialObjectMetadataList"):
        return None
    if media == PROTOBUF and as_kind == "Table":
        return None
    return Form(media=media, as_kind=as_kind, content_type=media, version=parameters["v"])  # type: ignore[arg-type] # checked above
