"""The answers of `/openapi/v3` and `/openapi/v2`.

The index names each document with a hash; a document asked for by its hash may be kept for ever, one asked for by an
old hash is elsewhere now. Everything is made when first asked for, what is built in once, the rest until the catalog
changes. Documents are JSON, the older one also protobuf; the protobuf form of the newer ones is not offered.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any, Final, final

from kubewright._base.version import __version__
from kubewright.apiserver.answers import Answer, encode_json
from kubewright.apiserver.catalog import Catalog
from kubewright.apiserver.media import JSON
from kubewright.apiserver.openapi.builtin import builtin_document, builtin_paths
from kubewright.apiserver.openapi.gnostic import MEDIA_TYPE, encode_document
from kubewright.apiserver.openapi.names import model_name
from kubewright.apiserver.openapi.operations import custom_document, list_kind_of
from kubewright.apiserver.openapi.schemas import Published, item_schema, list_schema
from kubewright.apiserver.openapi.swagger import swagger_document
from kubewright.apiserver.requests import Request
from kubewright.apiserver.resources import Resource

__all__ = ("OpenApi",)

_TEXT: Final = "text/plain; charset=utf-8"
_ACCEPTED: Final = frozenset((JSON, "application/*", "*/*"))
_OLD_SPELLING: Final = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
_YEAR: Final = timedelta(days=365)


@final
class OpenApi:
    """The documents of a server. `custom_schemas` tells what is published of a custom resource."""

    def __init__(self, catalog: Catalog, custom_schemas: Callable[[Resource], Published]) -> None:
        self._catalog = catalog
        self._published = custom_schemas
        self._generation = 0
        self._custom: dict[str, list[Resource]] = {}
        self._hashes: dict[str, str] = {path: _hash(f"{__version__} {path}".encode()) for path in builtin_paths()}
        self._builtin = frozenset(self._hashes)
        self._bodies: dict[str, bytes] = {}

    def answer(self, request: Request) -> Answer:
        """The answer to a path below `/openapi`."""
        self._follow()
        path = request.path.removeprefix("/openapi")
        if path == "/v3":
            return Answer(200, self._body("", self._index), _TEXT)
        if path == "/v2":
            return self._swagger(request)
        if path.startswith("/v3/"):
            return self._document(request, path.removeprefix("/v3/"))
        return Answer(404, b"404 page not found\n", _TEXT)

    def _follow(self) -> None:
        """Forget what was made of custom resources that have changed."""
        if self._generation == self._catalog.generation:
            return
        self._generation = self._catalog.generation
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
        paths = sorted((*self._builtin, *self._custom))
        return {
            "paths": {path: {"serverRelativeURL": f"/openapi/v3/{path}?hash={self._hash_of(path)}"} for path in paths}
        }

    def _hash_of(self, path: str) -> str:
        found = self._hashes.get(path)
        if found is None:
            # What goes into the document is hashed, so that the index needs no document.
            said = [_said(resource, self._published(resource)) for resource in self._custom[path]]
            found = self._hashes[path] = _hash(__version__.encode() + encode_json(said))
        return found

    def _document(self, request: Request, path: str) -> Answer:
        if path not in self._builtin and path not in self._custom:
            return Answer(404, b"", "")
        if not _accepts(request):
            return _not_acceptable()
        tag = self._hash_of(path)
        headers = {"ETag": f'"{tag}"', "Vary": "Accept"}
        asked = request.query.get("hash")
        if asked and asked != tag:
            return Answer(301, b"", JSON, {**headers, "Location": f"/openapi/v3/{path}?hash={tag}"})
        if asked:
            headers["Cache-Control"] = "public, immutable"
            headers["Expires"] = format_datetime(datetime.now(UTC) + _YEAR, usegmt=True)
        if _known(request, tag):
            return Answer(304, b"", "", headers)
        return Answer(200, self._body(path, lambda: self._made(path)), JSON, headers)

    def _made(self, path: str) -> Mapping[str, Any]:
        return builtin_document(path) or custom_document(self._custom[path], self._published)

    # the older form

    def _swagger(self, request: Request) -> Answer:
        binary = _wants_protobuf(request)
        if not binary and not _accepts(request):
            return _not_acceptable()
        tag = _hash("".join(self._hash_of(path) for path in (*sorted(self._builtin), *sorted(self._custom))).encode())
        headers = {"ETag": f'"{tag}"', "Vary": "Accept"}
        if _known(request, tag):
            return Answer(304, b"", "", headers)
        if binary:
            body = self._bodies.get("/v2 binary")
            if body is None:
                body = self._bodies["/v2 binary"] = encode_document(self._whole())
            return Answer(200, body, MEDIA_TYPE, headers)
        return Answer(200, self._body("/v2", self._whole), JSON, headers)

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
        return swagger_document(documents, schemas)


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


def _not_acceptable() -> Answer:
    return Answer(406, b"", "", {"Vary": "Accept"})


def _known(request: Request, tag: str) -> bool:
    return any(
        one.strip().removeprefix("W/") in (f'"{tag}"', "*") for one in request.header("if-none-match").split(",")
    )
