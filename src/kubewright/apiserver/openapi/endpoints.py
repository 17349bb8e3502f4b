"""Serves `/openapi/v3` and `/openapi/v2`.

The v3 index has a URL with a hash for each document: a response to the current hash may be cached for ever, one to an
old hash is a redirect (k8s.io/kube-openapi/pkg/handler3/handler.go). Documents are built on first use; those of
built-in kinds once, the others whenever the catalog changes. They are JSON, and v2 is protobuf too; protobuf of v3 is
not offered.

Of aggregated API servers (`aggregated`), v3 documents are in the index and proxied, v2 documents merged into this one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any, Final, Protocol, final

from kubewright._base.version import __version__
from kubewright.apiserver.catalog import Catalog
from kubewright.apiserver.kinds.resources import Resource
from kubewright.apiserver.openapi.builtin import builtin_document, builtin_paths
from kubewright.apiserver.openapi.gnostic import MEDIA_TYPE, encode_document
from kubewright.apiserver.openapi.merge import merge_into
from kubewright.apiserver.openapi.names import model_name
from kubewright.apiserver.openapi.operations import custom_document, list_kind_of
from kubewright.apiserver.openapi.schemas import VersionSchema, item_schema, list_schema
from kubewright.apiserver.openapi.swagger import swagger_document
from kubewright.apiserver.wire.negotiation import JSON
from kubewright.apiserver.wire.requests import Request
from kubewright.apiserver.wire.responses import Reply, Response, encode_json
from kubewright.apiserver.wire.users import User

__all__ = ("OpenApi",)

_TEXT: Final = "text/plain; charset=utf-8"
_ACCEPTED: Final = frozenset((JSON, "application/*", "*/*"))
_OLD_MEDIA_TYPE: Final = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
_YEAR: Final = timedelta(days=365)


class AggregatedSource(Protocol):
    """The documents of aggregated API servers."""

    generation: int

    def v2_documents(self) -> list[tuple[str, dict[str, Any]]]:
        """The v2 documents with their hashes."""
        ...

    def index(self) -> dict[str, str]:
        """The URLs of v3 documents by path."""
        ...

    def converted(self) -> dict[str, tuple[str, dict[str, Any]]]:
        """The v3 documents that were converted from v2, with their hashes, by path."""
        ...

    async def handle(self, request: Request, user: User, path: str) -> Reply:
        """The reply of the server that has the document."""
        ...


@final
class OpenApi:
    """The documents of this server. `custom_schemas` gives the schema of a custom resource."""

    def __init__(
        self,
        catalog: Catalog,
        custom_schemas: Callable[[Resource], VersionSchema],
        aggregated: AggregatedSource | None = None,
    ) -> None:
        self._catalog = catalog
        self._aggregated = aggregated
        self._version_schema = custom_schemas
        self._generation = (-1, -1)
        self._custom: dict[str, list[Resource]] = {}
        self._hashes: dict[str, str] = {path: _hash(f"{__version__} {path}".encode()) for path in builtin_paths()}
        self._builtin = frozenset(self._hashes)
        self._bodies: dict[str, bytes] = {}
        self._converted: dict[str, tuple[str, dict[str, Any]]] = {}

    def handle(self, request: Request, user: User) -> Reply | Awaitable[Reply]:
        """The reply to a path below `/openapi`."""
        self._refresh()
        path = request.path.removeprefix("/openapi")
        if path == "/v3":
            return Response(200, self._body("", self._index), _TEXT)
        if path == "/v2":
            return self._swagger(request)
        if path.startswith("/v3/"):
            path = path.removeprefix("/v3/")
            if self._aggregated is not None and not self._is_ours(path) and path in self._aggregated.index():
                return self._aggregated.handle(request, user, path)
            return self._document(request, path)
        return Response(404, b"404 page not found\n", _TEXT)

    def _refresh(self) -> None:
        """Drop the documents of custom resources and aggregated servers if any has changed."""
        now = (self._catalog.generation, self._aggregated.generation if self._aggregated is not None else 0)
        if self._generation == now:
            return
        self._generation = now
        self._converted = self._aggregated.converted() if self._aggregated is not None else {}
        self._custom = {}
        for resource in self._catalog.custom():
            self._custom.setdefault(f"apis/{resource.kind.api_version}", []).append(resource)
        # A CRD adds nothing to the document of a built-in group-version.
        self._custom = {path: found for path, found in self._custom.items() if path not in self._builtin}
        self._bodies = {path: body for path, body in self._bodies.items() if path in self._builtin}
        self._hashes = {path: found for path, found in self._hashes.items() if path in self._builtin}

    def _body(self, path: str, make: Callable[[], Any]) -> bytes:
        found = self._bodies.get(path)
        if found is None:
            found = self._bodies[path] = encode_json(make())
        return found

    # v3

    def _index(self) -> dict[str, Any]:
        places = dict(self._aggregated.index()) if self._aggregated is not None else {}
        for path in (*self._builtin, *self._custom, *self._converted):
            places[path] = f"/openapi/v3/{path}?hash={self._hash_of(path)}"
        return {"paths": {path: {"serverRelativeURL": place} for path, place in sorted(places.items())}}

    def _is_ours(self, path: str) -> bool:
        return path in self._builtin or path in self._custom or path in self._converted

    def _hash_of(self, path: str) -> str:
        if path in self._converted:
            return self._converted[path][0]
        found = self._hashes.get(path)
        if found is None:
            # Hash the inputs of the document, so that the index does not build all documents.
            inputs = [_hash_input(resource, self._version_schema(resource)) for resource in self._custom[path]]
            found = self._hashes[path] = _hash(__version__.encode() + encode_json(inputs))
        return found

    def _document(self, request: Request, path: str) -> Response:
        if not self._is_ours(path):
            return Response(404, b"", "")
        if not _accepts(request):
            return _not_acceptable()
        etag = self._hash_of(path)
        headers = {"ETag": f'"{etag}"', "Vary": "Accept"}
        requested_hash = request.query.get("hash")
        if requested_hash and requested_hash != etag:
            return Response(301, b"", JSON, {**headers, "Location": f"/openapi/v3/{path}?hash={etag}"})
        if requested_hash:
            headers["Cache-Control"] = "public, immutable"
            headers["Expires"] = format_datetime(datetime.now(UTC) + _YEAR, usegmt=True)
        if _matches_etag(request, etag):
            return Response(304, b"", "", headers)
        return Response(200, self._body(path, lambda: self._build_v3(path)), JSON, headers)

    def _build_v3(self, path: str) -> Mapping[str, Any]:
        if path in self._converted:
            return self._converted[path][1]
        return builtin_document(path) or custom_document(self._custom[path], self._version_schema)

    # v2

    def _swagger(self, request: Request) -> Response:
        binary = _wants_protobuf(request)
        if not binary and not _accepts(request):
            return _not_acceptable()
        others = self._aggregated.v2_documents() if self._aggregated is not None else []
        hashes = [self._hash_of(path) for path in (*sorted(self._builtin), *sorted(self._custom))]
        etag = _hash("".join((*hashes, *(digest for digest, _ in others))).encode())
        headers = {"ETag": f'"{etag}"', "Vary": "Accept"}
        if _matches_etag(request, etag):
            return Response(304, b"", "", headers)
        if binary:
            body = self._bodies.get("/v2 binary")
            if body is None:
                body = self._bodies["/v2 binary"] = encode_document(self._build_v2())
            return Response(200, body, MEDIA_TYPE, headers)
        return Response(200, self._body("/v2", self._build_v2), JSON, headers)

    def _build_v2(self) -> Mapping[str, Any]:
        documents = [self._build_v3(path) for path in (*sorted(self._builtin), *sorted(self._custom))]
        schemas: dict[str, Any] = {}
        for resources in self._custom.values():
            for resource in resources:
                kind, version = resource.kind, self._version_schema(resource)
                schemas[model_name(kind)] = item_schema(kind, version, v2=True)
                schemas[model_name(list_kind_of(resource))] = list_schema(
                    kind, resource.list_kind, resource.plural, version, v2=True
                )
        whole = swagger_document(documents, schemas)
        for _, document in self._aggregated.v2_documents() if self._aggregated is not None else ():
            merge_into(whole, document)
        return whole


def _hash_input(resource: Resource, version: VersionSchema) -> list[Any]:
    return [
        resource.kind.kind,
        resource.plural,
        resource.list_kind,
        resource.namespaced,
        sorted(resource.subresources),
        version.schema,
        version.preserves_unknown,
        list(version.selectable_fields),
    ]


def _hash(data: bytes) -> str:
    return hashlib.sha512(data).hexdigest().upper()


def _accepts(request: Request) -> bool:
    accept = request.header("accept")
    return not accept or any(clause.partition(";")[0].strip().lower() in _ACCEPTED for clause in accept.split(","))


def _wants_protobuf(request: Request) -> bool:
    """Whether protobuf is the first media type of the Accept header that is served; clients use two names for it."""
    for clause in request.header("accept").split(","):
        media_type = clause.partition(";")[0].strip().lower()
        if media_type in (MEDIA_TYPE, _OLD_MEDIA_TYPE):
            return True
        if media_type in _ACCEPTED:
            return False
    return False


def _not_acceptable() -> Response:
    return Response(406, b"", "", {"Vary": "Accept"})


def _matches_etag(request: Request, etag: str) -> bool:
    return any(
        one.strip().removeprefix("W/") in (f'"{etag}"', "*") for one in request.header("if-none-match").split(",")
    )
