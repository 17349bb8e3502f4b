"""The answers of `/openapi/v3` and `/openapi/v2`.

The index names each document with a hash; a document asked for by its hash may be kept for ever, one asked for by an
old hash is elsewhere now. Everything is made when first asked for, what is built in once, the rest until the catalog
changes. Documents are JSON, the older one also protobuf; the protobuf form of the newer ones is not offered.

Extension servers have documents of their own (`elsewhere`): those of the newer form are in the index and passed on,
those of the older form are merged into the one there is.
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
from kubewright.apiserver.openapi.schemas import Published, item_schema, list_schema
from kubewright.apiserver.openapi.swagger import swagger_document
from kubewright.apiserver.wire.negotiation import JSON
from kubewright.apiserver.wire.requests import Request
from kubewright.apiserver.wire.responses import Reply, Response, encode_json
from kubewright.apiserver.wire.users import User

__all__ = ("OpenApi",)

_TEXT: Final = "text/plain; charset=utf-8"
_ACCEPTED: Final = frozenset((JSON, "application/*", "*/*"))
_OLD_SPELLING: Final = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
_YEAR: Final = timedelta(days=365)


class AggregatedSource(Protocol):
    """The documents of other servers."""

    generation: int

    def old_documents(self) -> list[tuple[str, dict[str, Any]]]:
        """Those of the older form, with a hash of each."""
        ...

    def index(self) -> dict[str, str]:
        """Where those of the newer form are, by their path."""
        ...

    def upgraded(self) -> dict[str, tuple[str, dict[str, Any]]]:
        """Those of the newer form that others do not answer themselves, with a hash of each, by their path."""
        ...

    async def answer(self, request: Request, user: User, path: str) -> Reply:
        """What the other server answers."""
        ...


@final
class OpenApi:
    """The documents of a server. `custom_schemas` tells what is published of a custom resource."""

    def __init__(
        self,
        catalog: Catalog,
        custom_schemas: Callable[[Resource], Published],
        aggregated: AggregatedSource | None = None,
    ) -> None:
        self._catalog = catalog
        self._aggregated = aggregated
        self._published = custom_schemas
        self._generation = (-1, -1)
        self._custom: dict[str, list[Resource]] = {}
        self._hashes: dict[str, str] = {path: _hash(f"{__version__} {path}".encode()) for path in builtin_paths()}
        self._builtin = frozenset(self._hashes)
        self._bodies: dict[str, bytes] = {}
        self._upgraded: dict[str, tuple[str, dict[str, Any]]] = {}

    def answer(self, request: Request, user: User) -> Reply | Awaitable[Reply]:
        """The answer to a path below `/openapi`."""
        self._follow()
        path = request.path.removeprefix("/openapi")
        if path == "/v3":
            return Response(200, self._body("", self._index), _TEXT)
        if path == "/v2":
            return self._swagger(request)
        if path.startswith("/v3/"):
            path = path.removeprefix("/v3/")
            if self._aggregated is not None and not self._is_ours(path) and path in self._aggregated.index():
                return self._aggregated.answer(request, user, path)
            return self._document(request, path)
        return Response(404, b"404 page not found\n", _TEXT)

    def _follow(self) -> None:
        """Forget what was made of custom resources that have changed."""
        now = (self._catalog.generation, self._aggregated.generation if self._aggregated is not None else 0)
        if self._generation == now:
            return
        self._generation = now
        self._upgraded = self._aggregated.upgraded() if self._aggregated is not None else {}
        self._custom = {}
        for resource in self._catalog.custom():
            self._custom.setdefault(f"apis/{resource.kind.api_version}", []).append(resource)
        # A definition adds nothing to a document that is built in.
        self._custom = {path: found for path, found in self._custom.items() if path not in self._builtin}
        self._bodies = {path: body for path, body in self._bodies.items() if path in self._builtin}
        self._hashes = {path: found for path, found in self._hashes.items() if path in self._builtin}

    def _body(self, path: str, make: Callable[[], Any]) -> bytes:
        found = self._bodies.get(path)
        if found is None:
            found = self._bodies[path] = encode_json(make())
        return found

    # the newer form

    def _index(self) -> dict[str, Any]:
        places = dict(self._aggregated.index()) if self._aggregated is not None else {}
        for path in (*self._builtin, *self._custom, *self._upgraded):
            places[path] = f"/openapi/v3/{path}?hash={self._hash_of(path)}"
        return {"paths": {path: {"serverRelativeURL": place} for path, place in sorted(places.items())}}

    def _is_ours(self, path: str) -> bool:
        return path in self._builtin or path in self._custom or path in self._upgraded

    def _hash_of(self, path: str) -> str:
        if path in self._upgraded:
            return self._upgraded[path][0]
        found = self._hashes.get(path)
        if found is None:
            # What goes into the document is hashed, so that the index needs no document.
            said = [_said(resource, self._published(resource)) for resource in self._custom[path]]
            found = self._hashes[path] = _hash(__version__.encode() + encode_json(said))
        return found

    def _document(self, request: Request, path: str) -> Response:
        if not self._is_ours(path):
            return Response(404, b"", "")
        if not _accepts(request):
            return _not_acceptable()
        tag = self._hash_of(path)
        headers = {"ETag": f'"{tag}"', "Vary": "Accept"}
        asked = request.query.get("hash")
        if asked and asked != tag:
            return Response(301, b"", JSON, {**headers, "Location": f"/openapi/v3/{path}?hash={tag}"})
        if asked:
            headers["Cache-Control"] = "public, immutable"
            headers["Expires"] = format_datetime(datetime.now(UTC) + _YEAR, usegmt=True)
        if _known(request, tag):
            return Response(304, b"", "", headers)
        return Response(200, self._body(path, lambda: self._made(path)), JSON, headers)

    def _made(self, path: str) -> Mapping[str, Any]:
        if path in self._upgraded:
            return self._upgraded[path][1]
        return builtin_document(path) or custom_document(self._custom[path], self._published)

    # the older form

    def _swagger(self, request: Request) -> Response:
        binary = _wants_protobuf(request)
        if not binary and not _accepts(request):
            return _not_acceptable()
        others = self._aggregated.old_documents() if self._aggregated is not None else []
        hashes = [self._hash_of(path) for path in (*sorted(self._builtin), *sorted(self._custom))]
        tag = _hash("".join((*hashes, *(mark for mark, _ in others))).encode())
        headers = {"ETag": f'"{tag}"', "Vary": "Accept"}
        if _known(request, tag):
            return Response(304, b"", "", headers)
        if binary:
            body = self._bodies.get("/v2 binary")
            if body is None:
                body = self._bodies["/v2 binary"] = encode_document(self._whole())
            return Response(200, body, MEDIA_TYPE, headers)
        return Response(200, self._body("/v2", self._whole), JSON, headers)

    def _whole(self) -> Mapping[str, Any]:
        documents = [self._made(path) for path in (*sorted(self._builtin), *sorted(self._custom))]
        schemas: dict[str, Any] = {}
        for resources in self._custom.values():
            for resource in resources:
                kind, version = resource.kind, self._published(resource)
                schemas[model_name(kind)] = item_schema(kind, version, old=True)
                schemas[model_name(list_kind_of(resource))] = list_schema(
                    kind, resource.list_kind, resource.plural, version, old=True
                )
        whole = swagger_document(documents, schemas)
        for _, document in self._aggregated.old_documents() if self._aggregated is not None else ():
            merge_into(whole, document)
        return whole


def _said(resource: Resource, version: Published) -> list[Any]:
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
    """Whether the first of the forms it takes that there are is this one; an older spelling is still in use."""
    for clause in request.header("accept").split(","):
        form = clause.partition(";")[0].strip().lower()
        if form in (MEDIA_TYPE, _OLD_SPELLING):
            return True
        if form in _ACCEPTED:
            return False
    return False


def _not_acceptable() -> Response:
    return Response(406, b"", "", {"Vary": "Accept"})


def _known(request: Request, tag: str) -> bool:
    return any(
        one.strip().removeprefix("W/") in (f'"{tag}"', "*") for one in request.header("if-none-match").split(",")
    )
