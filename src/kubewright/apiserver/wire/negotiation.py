"""Content negotiation: the media type of a response, and whether it is the object, a Table or PartialObjectMetadata.

`negotiate` follows kube-apiserver (k8s.io/apiserver/pkg/endpoints/handlers/negotiation/negotiate.go): of
the clauses of the Accept header, ordered by q, the first that the endpoint can serve wins. One difference: objects are
stored as JSON here, so a client that accepts JSON as well as protobuf gets JSON. `front` calls it once for a request;
the results are cached, as clients send the same few headers over and over.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, Literal

from msgspec import Struct

from kubewright.apiserver.wire.status_errors import not_acceptable, status_error

__all__ = (
    "APPLY_JSON",
    "APPLY_YAML",
    "JSON",
    "PROTOBUF",
    "YAML",
    "MediaType",
    "is_pretty_print",
    "media_type",
    "negotiate",
)

JSON: Final = "application/json"
YAML: Final = "application/yaml"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
APPLY_YAML: Final = "application/apply-patch+yaml"
APPLY_JSON: Final = "application/apply-patch+json"

_OFFERED: Final = (JSON, YAML, PROTOBUF)

_TRUE: Final = ("1", "t", "T", "true", "TRUE", "True")
_PRETTY_AGENTS: Final = ("curl", "Wget", "Mozilla/5.0")
"""User agents for which kube-apiserver indents JSON."""

As = Literal["", "Table", "PartialObjectMetadata", "PartialObjectMetadataList"]


class MediaType(Struct, frozen=True):
    """The negotiated media type of a response."""

    media: str = JSON
    as_kind: As = ""
    content_type: str = JSON
    version: str = "v1"
    """Of `meta.k8s.io`, for a Table or PartialObjectMetadata."""
    stream: str = ""
    """`watch` if the client asks for framed events."""


def media_type(header: str) -> str:
    """The media type alone, in lower case, without parameters."""
    return header.partition(";")[0].strip().lower()


def is_pretty_print(accept: str, agent: str, pretty: str) -> bool:
    """Whether to indent JSON: by the query's `pretty`, else by the user agent, or by a parameter of the media type.

    kube-apiserver: `isPrettyPrint` in the same negotiate.go.
    """
    wanted = pretty in _TRUE if pretty else agent.startswith(_PRETTY_AGENTS)
    return wanted or ("pretty" in accept and any(clause.get("pretty") == "1" for _, clause in _clauses(accept)))


@lru_cache(maxsize=1024)
def negotiate(accept: str, *, transforms: bool = True, tables: bool = True, custom: bool = False) -> MediaType:
    """The media type of the response; raises 406 with the ones on offer.

    `transforms` says whether the endpoint serves Tables and PartialObjectMetadata at all, and `tables` whether it
    serves Tables: a review, which is never stored, has none. Custom resources have no protobuf encoding, but their
    metadata do.
    """
    if not accept:
        return MediaType()
    found: MediaType | None = None
    transformed = custom
    for media, parameters in _clauses(accept):
        output = _served((media, parameters), custom=custom)
        if output is not None and ((output.as_kind and not transforms) or (output.as_kind == "Table" and not tables)):
            output = None
        transformed = transformed or (output is None and media in _OFFERED and "as" in parameters)
        if output is None or (found is not None and (output.as_kind or output.media == PROTOBUF)):
            continue
        found = output
        # Stored objects are JSON already, so any later clause for JSON is cheaper to serve than protobuf.
        if output.as_kind or output.media != PROTOBUF:
            return output
    if found is not None:
        return found
    if transformed:
        message = f"only the following media types are accepted: {', '.join(_OFFERED)}"
        raise status_error(406, "NotAcceptable", message)
    raise not_acceptable(_OFFERED)


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


def _served(clause: tuple[str, dict[str, str]], *, custom: bool) -> MediaType | None:
    media, parameters = clause
    if media == "*/*":
        media = JSON
    as_kind = parameters.get("as", "")
    if media not in _OFFERED or (media == PROTOBUF and custom and not as_kind):
        return None
    if not as_kind:
        stream = parameters.get("stream", "")
        return MediaType(media=media, content_type=f"{media};stream={stream}" if stream else media, stream=stream)
    if parameters.get("g") != "meta.k8s.io" or parameters.get("v") not in ("v1", "v1beta1"):
        return None
    if as_kind not in ("Table", "PartialObjectMetadata", "PartialObjectMetadataList"):
        return None
    if media == PROTOBUF and as_kind == "Table":
        return None
    return MediaType(media=media, as_kind=as_kind, content_type=media, version=parameters["v"])  # type: ignore[arg-type] # checked above
