"""The OpenAPI documents of extension servers: what both servers ask for, and what they tell of them.

Covers: kubewright.apiserver.openapi
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.differential.servers.aggregated_group import SERVICES, AggregatedGroup, always, echoed
from tests.differential.servers.server_pair import ServerClient, get, run_case
from tests.stub_server import ReceivedRequest, StubResponse

from kubewright.testing import time_limit

pytestmark = pytest.mark.real

JSON = dict[str, Any]
META = "io.k8s.apimachinery.pkg.apis.meta.v1."
KINDS = "x-kubernetes-group-version-kind"


def reference(name: str) -> JSON:
    return {"$ref": f"#/definitions/{name}"}


def operation(schema: JSON, **more: Any) -> JSON:
    return {
        "description": "reads",
        "consumes": ["*/*"],
        "produces": ["application/json", "application/yaml"],
        "schemes": ["https"],
        "tags": ["example"],
        "operationId": "readFoo",
        "responses": {"200": {"description": "OK", "schema": schema}, "401": {"description": "Unauthorized"}},
        **more,
    }


def old_document(group: str) -> JSON:
    """Of the older form: of two versions, with a name that the API server has too, for something else.

    What both say alike is not part of it: kube-apiserver would not forget which kinds it stood for meanwhile.
    """
    prefix = f"/apis/{group}/v1"
    kind = {"group": group, "kind": "Foo", "version": "v1"}
    foo = reference("example.Foo")
    body = {"name": "body", "in": "body", "required": True, "schema": foo}
    create = operation(foo, operationId="createFoo", parameters=[body], consumes=["application/json"])
    name = {"uniqueItems": True, "type": "string", "description": "whose", "name": "name", "in": "path",
            "required": True}  # fmt: skip
    limit = {"uniqueItems": True, "type": "integer", "description": "at most", "name": "limit", "in": "query"}
    paths = {
        "/version/": {"get": operation(reference("example.Gone"))},
        f"{prefix}/": {"get": operation(reference(f"{META}APIResourceList"))},
        f"{prefix}/foos": {"get": operation(foo, parameters=[limit]), "post": create},
        f"{prefix}/foos/{{name}}": {"get": operation(foo, **{KINDS: kind}), "parameters": [name]},
        f"/apis/{group}/v2/foos": {"get": operation(reference("example.Gone"))},
    }
    info = {"title": "Example", "version": "1"}
    return {"swagger": "2.0", "info": info, "paths": paths, "definitions": definitions(group, kind)}


def definitions(group: str, kind: JSON) -> JSON:
    spec = reference("example.FooSpec")
    properties = {
        "kind": {"type": "string", "description": "Its kind."},
        "spec": {"description": "What is wanted.", **spec},
        "parts": {"type": "array", "items": spec},
        "named": {"type": "object", "additionalProperties": spec},
    }
    foo = {"description": "Foo is one.", "type": "object", "required": ["spec"], "properties": properties}
    return {
        "example.Foo": {**foo, KINDS: [kind]},
        "example.FooSpec": {"type": "object", "properties": {"size": {"type": "integer", "format": "int32"}}},
        "example.Gone": {"type": "object", "properties": {"other": reference("example.GoneToo")}},
        "example.GoneToo": {"type": "object"},
        "example.Unused": {"type": "object", "description": f"of {group}"},
        f"{META}APIResourceList": {"description": f"Another one, of {group}.", "type": "object"},
    }


async def old_form(apiserver: ServerClient, wanted: Callable[[JSON], bool]) -> JSON:
    """The document of the older form, once it is as wanted; who has it is told that it has not changed."""
    tag = ""
    async with time_limit(60):
        while True:
            answer = await apiserver.send("GET", "/openapi/v2", None, {"If-None-Match": tag}, 60)
            if answer.code == 200:
                tag = {name.lower(): value for name, value in answer.headers.items()}["etag"]
                found: JSON = json.loads(answer.body)
                if wanted(found):
                    return found
            await asyncio.sleep(0.1)


def own_part(document: JSON, group: str) -> JSON:
    """What a document says of a group: its paths and the definitions these lead to."""
    paths = {path: item for path, item in document["paths"].items() if path.startswith(f"/apis/{group}/")}
    found: JSON = {}
    waiting = ["example.Unused", *_names(paths)]
    while waiting:
        name = waiting.pop()
        if name in found or name not in document["definitions"]:
            continue
        found[name] = document["definitions"][name]
        waiting += _names(found[name])
    return {"paths": paths, "definitions": found}


def _names(tree: Any) -> list[str]:
    return [part.partition('"')[0] for part in json.dumps(tree).split('"#/definitions/')[1:]]


async def test_the_older_document_of_a_server_becomes_part_of_the_whole(extension: AggregatedGroup) -> None:
    pair, group = extension.pair, extension.group
    extension.respond("/openapi/v2", always(StubResponse(old_document(group))))
    await extension.register()

    def is_there(tree: JSON) -> bool:
        return f"/apis/{group}/v1/foos" in tree["paths"]

    real, embedded = [own_part(await old_form(apiserver, is_there), group) for apiserver, _ in extension.sides]

    assert embedded == real
    assert "example.Unused" in real["definitions"]
    assert "example.Gone" not in real["definitions"]
    assert any("APIResourceList_v" in name for name in real["definitions"])

    await pair.both("DELETE", f"{SERVICES}/v1.{group}")
    await old_form(pair.embedded, lambda tree: not is_there(tree))


async def test_a_server_without_newer_documents_is_told_of_by_its_older_one(extension: AggregatedGroup) -> None:
    pair, group = extension.pair, extension.group
    extension.respond("/openapi/v2", always(StubResponse(old_document(group))))
    await extension.register()
    path = f"apis/{group}/v1"
    document = f"/openapi/v3/{path}"
    listed = get("/openapi/v3", until=lambda tree: path in tree, quiet=True)
    await run_case(pair, [listed, get(document, until=lambda tree: tree is not None)])

    for apiserver, _ in extension.sides:
        place = json.loads((await apiserver.send("GET", "/openapi/v3", None, {}, 30)).body)["paths"][path][
            "serverRelativeURL"
        ]
        assert place.startswith(f"{document}?hash=")
        answer = await apiserver.send("GET", place, None, {}, 30)
        assert (answer.code, answer.headers["Cache-Control"]) == (200, "public, immutable")
        assert (await apiserver.send("GET", f"{document}?hash=OLD", None, {}, 30)).code == 301


async def test_newer_documents_are_in_the_index_and_passed_on(extension: AggregatedGroup) -> None:
    pair, group = extension.pair, extension.group
    paths = {
        f"apis/{group}": {"serverRelativeURL": f"/openapi/v3/apis/{group}?hash=ONE"},
        f"apis/{group}/v1": {"serverRelativeURL": f"/openapi/v3/apis/{group}/v1?hash=TWO"},
    }
    extension.respond("/openapi/v3", always(StubResponse({"paths": paths})))
    extension.respond(f"/openapi/v3/apis/{group}", echoed)
    await extension.register()
    for apiserver, _ in extension.sides:
        async with time_limit(60):
            while True:
                index = json.loads((await apiserver.send("GET", "/openapi/v3", None, {}, 30)).body)["paths"]
                if f"apis/{group}" in index:
                    break
                await asyncio.sleep(0.02)
        assert {path: index.get(path) for path in paths} == paths
    document = f"/openapi/v3/apis/{group}/v1"
    who = {"Impersonate-User": "jane", "Impersonate-Group": "system:masters"}
    await run_case(
        pair,
        [
            get(f"{document}?hash=TWO"),
            get(f"/openapi/v3/apis/{group}", headers=who),
            get(f"{document}/more"),
            get(f"/openapi/v3/apis/{group}/v2"),
        ],
    )

    # A server that answers no more is still told of, but its documents are not to be had.
    extension.respond("/apis/{group}/v1", always(StubResponse(b"", 500)))
    await run_case(pair, [extension.touch(), get(document, until=lambda tree: tree == "service unavailable\n")])
    for apiserver, _ in extension.sides:
        assert (
            f"apis/{group}/v1" in json.loads((await apiserver.send("GET", "/openapi/v3", None, {}, 30)).body)["paths"]
        )


async def test_documents_are_asked_for_alike(extension: AggregatedGroup) -> None:
    def document(received: ReceivedRequest) -> StubResponse:
        if ("if-none-match", '"one"') in received.headers:
            return StubResponse(b"", 304)
        return StubResponse({"swagger": "2.0", "info": {}, "paths": {}}, headers=(("ETag", '"one"'),))

    extension.respond("/openapi/v2", document)
    extension.respond("/openapi/v3", always(StubResponse({"paths": {}})))
    await extension.register()

    for wanted in ("/openapi/v2", "/openapi/v3"):
        real, embedded = await extension.received(lambda received, wanted=wanted: received.path == wanted)  # type: ignore[misc]  # mypy does not see the default
        assert embedded == real
        assert ("x-remote-user", "system:aggregator") in real
        assert not [value for name, value in real if name == "x-remote-group"]

    await run_case(extension.pair, [extension.touch()])
    real, embedded = await extension.received(lambda received: ("if-none-match", '"one"') in received.headers)
    assert embedded == real
