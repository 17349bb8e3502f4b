"""The real API server and ours, asked the same: random schemas and objects, formats, updates, definitions.

Verdicts must agree, and so must every cause, what is left of an object after pruning and defaulting, and the warnings
about unknown fields. The order of causes is compared where the real server has one; it walks maps at random.

Covers: kubewright.schema.check
"""

import copy
import json
import random
import uuid
from collections.abc import AsyncIterator, Iterable
from typing import Any, NamedTuple

import pytest
from tests.builders.definitions import definition_tree, version_tree

from kubewright import Client, Config, connect
from kubewright.api.field_errors import FieldError
from kubewright.apiserver.apiextensions.definitions.conditions import compute_status
from kubewright.apiserver.apiextensions.objects import (
    decode_custom_resource,
    validate_custom_resource,
    validate_custom_resource_status,
)
from kubewright.apiserver.apiextensions.versions import versions_of
from kubewright.client.transport.transport import HttpRequest
from kubewright.cluster.planes.real import RealCluster
from kubewright.schema.check.metadata_coercion import MetadataDecodeError
from kubewright.schema.check.pruning import compile_pruning
from kubewright.schema.check.validation import compile_schema
from kubewright.testing import time_limit

pytestmark = pytest.mark.real

JSON = dict[str, Any]
Cause = tuple[str, str, str]
GROUP = "verdicts.example.io"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WORDS = ("a", "b", "ab", "abc", "x1", "1.2.3.4", "2020-01-01", "2020-01-01T00:00:00Z", "5m", "", "A", 'é<&>"\n')


class Answer(NamedTuple):
    """What the server said."""

    status: int
    body: JSON
    warnings: tuple[str, ...]

    @property
    def causes(self) -> list[Cause]:
        """The causes of a refusal, in order."""
        found = self.body.get("details", {}).get("causes", []) if self.status >= 400 else []
        return [(one["reason"], one["message"], one.get("field", "")) for one in found]


@pytest.fixture(scope="module")
async def client(real_cluster: RealCluster) -> AsyncIterator[Client]:
    async with connect(Config.load(kubeconfig=str(real_cluster.kubeconfig))) as client:
        yield client


async def ask(
    client: Client, method: str, path: str, body: JSON | None = None, *, query: Iterable[tuple[str, str]] = ()
) -> Answer:
    """One request, its answer as it is."""
    request = HttpRequest(
        method=method,
        path=path,
        query=tuple(query),
        headers=(("Accept", "application/json"), ("Content-Type", "application/json")),
        body=json.dumps(body).encode() if body is not None else None,
        timeout=30,
    )
    response = await client.transport.send(request)
    tree = json.loads(response.body) if response.body[:1] == b"{" else {}
    return Answer(response.status, tree, tuple(response.warnings))


def causes_of(errors: Iterable[FieldError]) -> list[Cause]:
    return [(error.reason, error.body, error.path) for error in errors]


def definition(schema: JSON, *, plural: str | None = None, **version: Any) -> JSON:
    """A CRD with one version."""
    plural = plural or f"v{uuid.uuid4().hex[:10]}s"
    return definition_tree(plural, GROUP, versions=[version_tree(schema=schema, **version)], scope="Cluster")


async def install(client: Client, crd: JSON) -> str:
    """Create a CRD and wait until its objects are served; where they are."""
    answer = await ask(client, "POST", CRDS, crd)
    assert answer.status == 201, answer.body.get("message")
    base = f"/apis/{GROUP}/v1/{crd['spec']['names']['plural']}"
    async with time_limit(30):
        while (await ask(client, "GET", base)).status != 200:
            pass
    return base


def instance(crd: JSON, name: str = "x", **parts: Any) -> JSON:
    kind = crd["spec"]["names"]["kind"]
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": name}, **parts}


class Maker:
    """Random structural schemas, and objects that mostly fit them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def scalar(self, *, nested: bool = False) -> JSON:
        pick = self.random.choice
        kind = pick(("string", "integer", "number", "boolean", "either"))
        schema: JSON = {} if nested else {"x-kubernetes-int-or-string": True} if kind == "either" else {"type": kind}
        if kind in ("string", "either"):
            schema |= {"minLength": self.random.randint(0, 3)} if self.chance(0.3) else {}
            schema |= {"maxLength": self.random.randint(0, 4)} if self.chance(0.3) else {}
            schema |= {"pattern": pick(("^a", "b$", "^[a-z]+$", r"\d"))} if self.chance(0.2) else {}
        if kind == "string" and self.chance(0.2):
            schema["format"] = pick(("ipv4", "date", "date-time", "duration", "int32", "foo", "byte"))
        if kind in ("integer", "number", "either"):
            if self.chance(0.3):
                schema |= {"minimum": pick((0, 1, -3, 1.5, 10)), "exclusiveMinimum": self.chance(0.3)}
            if self.chance(0.3):
                schema |= {"maximum": pick((0, 5, 3.5, 1e6, 100)), "exclusiveMaximum": self.chance(0.3)}
            schema |= {"multipleOf": pick((2, 3, 0.5, 0.1))} if self.chance(0.2) else {}
        if self.chance(0.15):
            values: JSON = {"string": ["a", "ab"], "integer": [1, 2], "number": [1, 1.5], "boolean": [True]}
            schema["enum"] = values.get(kind, ["a", 1, 1.5])
        return schema

    def schema(self, depth: int) -> JSON:
        roll = self.random.random()
        if not depth or roll < 0.35:
            schema = self.scalar()
        elif roll < 0.6:
            names = self.random.sample("pqrst", self.random.randint(1, 3))
            schema = {"type": "object", "properties": {name: self.schema(depth - 1) for name in names}}
            schema |= {"required": self.random.sample("pqrst", 2)} if self.chance(0.4) else {}
            schema |= {"x-kubernetes-preserve-unknown-fields": True} if self.chance(0.2) else {}
            self.branches(schema)
        elif roll < 0.75:
            schema = {"type": "object", "additionalProperties": self.schema(depth - 1)}
        else:
            schema = self.array(depth)
        schema |= {"minProperties": 1} if schema.get("type") == "object" and self.chance(0.15) else {}
        schema |= {"maxProperties": 2} if schema.get("type") == "object" and self.chance(0.15) else {}
        schema |= {"nullable": True} if self.chance(0.15) else {}
        if self.chance(0.15) and schema.get("type") != "object":
            keyword = self.random.choice(("anyOf", "oneOf", "allOf"))
            schema[keyword] = [self.scalar(nested=True) for _ in range(self.random.randint(1, 3))]
        schema |= {"not": self.scalar(nested=True)} if self.chance(0.07) else {}
        return schema

    def branches(self, schema: JSON) -> None:
        if not self.chance(0.25):
            return
        name = self.random.choice(list(schema["properties"]))
        options = [{"required": [self.random.choice("pqrst")]}, {"properties": {name: self.scalar(nested=True)}}]
        keyword = self.random.choice(("anyOf", "oneOf", "allOf"))
        schema[keyword] = [copy.deepcopy(self.random.choice(options)) for _ in range(self.random.randint(1, 3))]

    def array(self, depth: int) -> JSON:
        items = self.schema(depth - 1)
        schema: JSON = {"type": "array", "items": items}
        properties = items.get("properties", {}) if items.get("type") == "object" else {}
        keys = [name for name, child in properties.items() if child.get("type") in ("string", "integer", "boolean")]
        if items.get("type") in ("string", "integer") and self.chance(0.3):
            items.pop("nullable", None)
            schema["x-kubernetes-list-type"] = "set"
        elif keys and self.chance(0.5):
            items.pop("nullable", None)
            items["required"] = sorted({*items.get("required", []), *keys[:2]})
            for key in keys:
                properties[key].pop("nullable", None)
            schema |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys[:2]}
        schema |= {"minItems": self.random.randint(0, 2)} if self.chance(0.3) else {}
        schema |= {"maxItems": self.random.randint(0, 3)} if self.chance(0.3) else {}
        return schema

    def with_defaults(self, schema: JSON) -> JSON:
        for child in schema.get("properties", {}).values():
            self.with_defaults(child)
            value = self.value(child)
            pruned = copy.deepcopy(value)
            compile_pruning(child).prune(pruned, root=False)
            if value is not None and pruned == value and compile_schema(child, of_default=True).is_valid(value):
                child |= {"default": value} if self.chance(0.5) else {}
        if isinstance(schema.get("items"), dict):
            self.with_defaults(schema["items"])
        return schema

    def anything(self) -> Any:
        odd = (None, True, 0, -5, 10**19, 2**53, 1.5, 1.0, 1e7, 0.3, *WORDS)
        return self.random.choice([*odd, [], ["a"], {}, {"p": 1}, {"zz": {"y": 1}}, [{"u": 1}]])

    def value(self, schema: JSON) -> Any:
        if self.chance(0.1):
            return self.anything()
        if "enum" in schema and self.chance(0.7):
            return self.random.choice(schema["enum"])
        kind = schema.get("type") or self.random.choice(("string", "integer"))
        match kind:
            case "string":
                return self.random.choice(WORDS)
            case "integer":
                return self.random.choice((0, 1, 2, 3, 5, 6, 10, -3, 100))
            case "number":
                return self.random.choice((0, 1, 1.5, 3.0, 0.1, 0.3, 5, 1e6, -2.25))
            case "boolean":
                return self.chance(0.5)
            case "array":
                return [self.value(schema["items"]) for _ in range(self.random.randint(0, 4))]
        value = {name: self.value(child) for name, child in schema.get("properties", {}).items() if self.chance(0.75)}
        if isinstance(schema.get("additionalProperties"), dict):
            value |= {name: self.value(schema["additionalProperties"]) for name in self.random.sample("klm", 2)}
        return value | ({self.random.choice("uvwp"): self.anything()} if self.chance(0.15) else {})

    def changed(self, value: Any) -> Any:
        """The same value with something else in it, or as it was."""
        if isinstance(value, dict) and value:
            name = self.random.choice(list(value))
            if self.chance(0.2):
                return {key: member for key, member in value.items() if key != name}
            return {**value, name: self.changed(value[name])}
        if isinstance(value, list) and value:
            if self.chance(0.3):
                return self.random.sample(value, len(value)) + ([value[0]] if self.chance(0.5) else [])
            place = self.random.randrange(len(value))
            return [self.changed(item) if i == place else item for i, item in enumerate(value)]
        return value if self.chance(0.6) else self.anything()


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_random_objects_get_the_same_verdict_and_the_same_causes(client: Client, seed: int) -> None:
    maker = Maker(seed)
    properties = {f"s{i}": maker.with_defaults(maker.schema(3)) for i in range(8)}
    crd = definition({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}})
    base = await install(client, crd)
    version = versions_of(crd)[0]
    accepted = 0

    for _ in range(120):
        chosen = {name: maker.value(child) for name, child in properties.items() if maker.chance(0.35)}
        given = instance(crd, spec=chosen)
        real = await ask(client, "POST", base, given, query=[("dryRun", "All"), ("fieldValidation", "Warn")])
        ours = copy.deepcopy(given)
        unknown = decode_custom_resource(ours, version)
        accepted += real.status == 201

        assert real.status in (201, 422), real.body
        assert sorted(real.causes) == sorted(causes_of(validate_custom_resource(ours, version))), given
        assert real.warnings == tuple(f'unknown field "{path}"' for path in unknown), given
        if real.status == 201:
            assert real.body["spec"] == ours["spec"], given

    assert 0 < accepted < 120


@pytest.mark.slow
async def test_on_updates_the_same_old_mistakes_pass(client: Client) -> None:
    maker = Maker(5)
    properties = {f"s{i}": maker.with_defaults(maker.schema(3)) for i in range(4)}
    lax = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    crd = definition(lax, subresources={"status": {}})
    base = await install(client, crd)
    stored: list[JSON] = []
    for i in range(25):
        made = await ask(
            client,
            "POST",
            base,
            instance(crd, f"x{i}", spec={name: maker.value(child) for name, child in properties.items()}),
        )
        status = {name: maker.value(child) for name, child in properties.items()}
        stored.append((await ask(client, "PUT", f"{base}/x{i}/status", {**made.body, "status": status})).body)

    version = await _tighten(client, crd, base, properties)
    verdicts = {"spec": 0, "status": 0}
    for old in stored:
        for part in ("spec", "status"):
            changed = maker.changed(old[part])
            new = {**old, part: changed if isinstance(changed, dict) else {}}
            address = f"{base}/{old['metadata']['name']}{'/status' if part == 'status' else ''}"
            real = await ask(client, "PUT", address, new, query=[("dryRun", "All")])
            before, after = copy.deepcopy(old), copy.deepcopy(new)
            decode_custom_resource(before, version)
            decode_custom_resource(after, version)
            kept, written = (after, before) if part == "spec" else (before, after)
            merged = {**kept, "status": written["status"]}
            check = validate_custom_resource_status if part == "status" else validate_custom_resource

            assert real.status in (200, 422), real.body
            assert sorted(real.causes) == sorted(causes_of(check(merged, version, old=before))), (old, new)
            verdicts[part] += real.status == 200

    assert all(0 < count < len(stored) for count in verdicts.values())


async def _tighten(client: Client, crd: JSON, base: str, properties: JSON) -> Any:
    """Give a CRD a strict schema and wait until it is in force."""
    address = f"{CRDS}/{crd['metadata']['name']}"
    present = (await ask(client, "GET", address)).body
    body = {"type": "object", "properties": properties}
    schema = {"type": "object", "properties": {"spec": body, "status": body}}
    present["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema
    answer = await ask(client, "PUT", address, present)
    assert answer.status == 200, answer.body.get("message")
    async with time_limit(30):
        while not (await ask(client, "POST", base, instance(crd, zz=1), query=[("dryRun", "All")])).warnings:
            pass
    return versions_of(answer.body)[0]


METADATA: list[Any] = [
    {"labels": {"a": 1}},
    {"labels": "x"},
    {"labels": None},
    {"labels": {}},
    {"labels": {"a": None}},
    {"labels": {"a b": "c d"}},
    {"annotations": {"a": True, "Ü": "x"}},
    {"name": 5},
    {"foo": 1, "bar": {}},
    {"generation": "x"},
    {"generation": 1.5},
    {"generation": -1},
    {"ownerReferences": {}},
    {"ownerReferences": [5]},
    {"ownerReferences": [{"x": 1}]},
    {"ownerReferences": [{"controller": "true"}]},
    {"ownerReferences": [{"apiVersion": "v1", "kind": "Event", "name": "a", "uid": "b", "controller": True}] * 2},
    {"ownerReferences": [{"apiVersion": "a/b/c", "kind": "", "name": "", "uid": ""}]},
    {"creationTimestamp": "x"},
    {"creationTimestamp": "2020-13-01T00:00:00Z"},
    {"creationTimestamp": "2020-02-30T00:00:00Z"},
    {"creationTimestamp": "2020-01-01T00:00:00.5+01:00"},
    {"creationTimestamp": 5},
    {"finalizers": "x"},
    {"finalizers": [1]},
    {"finalizers": ["a b", "orphan", "foregroundDeletion"]},
    {"managedFields": [{"x": 1}]},
    {"managedFields": [{"operation": "Apply", "fieldsType": "X", "manager": "m\x01" + "m" * 200}]},
    {"deletionGracePeriodSeconds": "x"},
    {"namespace": "a_b"},
    {"generateName": "A-"},
    "x",
    5,
    [],
    None,
]


async def test_metadata_inside_an_object_is_decoded_and_checked_alike(client: Client) -> None:
    embedded = {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-preserve-unknown-fields": True,
    }
    crd = definition({"type": "object", "properties": {"t": embedded}})
    base = await install(client, crd)
    version = versions_of(crd)[0]

    for metadata in METADATA:
        given = instance(crd, t={"apiVersion": "v1", "kind": "X", "metadata": metadata, "q": 1})
        real = await ask(client, "POST", base, given, query=[("dryRun", "All")])
        ours = copy.deepcopy(given)
        try:
            unknown = decode_custom_resource(ours, version)
        except MetadataDecodeError as exc:
            kind = crd["spec"]["names"]["kind"]
            expected = f'{kind} in version "v1" cannot be handled as a {kind}: {exc}'
            assert (real.status, real.body["message"]) == (400, expected), metadata
            continue
        assert sorted(real.causes) == sorted(causes_of(validate_custom_resource(ours, version))), metadata
        assert real.warnings == tuple(f'unknown field "{path}"' for path in unknown), metadata
        if real.status == 201:
            assert real.body["t"] == ours["t"], metadata


@pytest.mark.parametrize("metadata", [{"labels": {"a": 1}}, {"name": 5}, {"creationTimestamp": "x"}, "x"])
async def test_metadata_of_an_object_that_cannot_be_decoded_is_refused_alike(client: Client, metadata: Any) -> None:
    crd = definition({"type": "object"}, plural="metas")
    base = f"/apis/{GROUP}/v1/metas"
    if (await ask(client, "GET", base)).status != 200:
        await install(client, crd)
    given = instance(crd)
    given["metadata"] = {"name": "x", **metadata} if isinstance(metadata, dict) else metadata

    real = await ask(client, "POST", base, given, query=[("dryRun", "All")])
    with pytest.raises(MetadataDecodeError) as misfit:
        decode_custom_resource(copy.deepcopy(given), versions_of(crd)[0])

    assert real.body["message"] == f'Metas in version "v1" cannot be handled as a Metas: {misfit.value}'


# fmt: off
TEXTS = (
    "", "a", "-", "0", "12", "A", "a.b.c", "a-b.c", "k8s.io/x", "1", "1.2.3.4", "01.02.03.004", "1.2.3", "1.2.3.256",
    "1.2.3.4.5", "::1", "::ffff:1.2.3.4", "::ffff:01.2.3.4", "fe80::1%eth0", "1:2:3:4:5:6:7:8", "12345::", "g::",
    "10.0.0.0/8", "10.0.0.1/33", "::/0", "::/129", "10.0.0.0/08", "10.0.0.0/", "/8", "a@b", "a@b.c", "Ann <a@b.c>",
    "Ann B. <a@b>", '"x y"@b', "a@[1.2.3.4]", "a@[IPv6:::1]", "a@[::1]", "a..b@c", ".a@b", "a@b.", "a @b", "a@b (c)",
    "(c) a@b", "a@", "@b", "a@b,c@d", "g: a@b;", "g:;", "g: a@b, c@d;", "<a@b>", "<a@b", "é@b", "a@é", "a b@c",
    " a@b ", "a@b\n", "2020-01-01", "2020-02-30", "2020-13-01", "0000-02-29", "0001-01-01", "2020-1-1",
    "2020-01-01T00:00:00Z", "2020-01-01t00:00:00z", "2020-01-01T24:00:00Z", "2020-01-01T23:59:60Z",
    "2020-01-01T00:00:00", "2020-01-01T00:00:00.5+01:00", "2020-01-01T00:00:00+99:99", "2020-01-01T00:00:00,5Z",
    "2020-01-01 00:00:00Z", "2020-01-01T00:00:00Ztrailing", "2020-01-01T00:00:00Z\n", "5m", "1h30m", "1.5h", "-5s",
    "+5s", "5", "-0", ".5s", "5.s", ".s", "3 days", "1 week", "2 w", "3d", "1y", "5 m", "5M", "5MS", "1h 30m",
    "99999999999h", "9999999999999999999h", "9223372036854775807ns", "9223372036854775808ns",
    "-9223372036854775808ns", "5µs", "5μs", "1hr", "2 hours", "3 nanoseconds", "5minutes", "5mi", "5x",
    "5 seconds ago", "http://a", "http://a/b?c#d", "http://a b", "http://", "http:///x", "/a", "a/b", "a:b", ":a",
    "1a:b", "mailto:x", "*", "//x", "http://a:80", "http://a:x", "http://[::1]", "http://[::1]:80",
    "http://[1.2.3.4]", "http://[::1", "http://a%zz", "http://a/%zz", "http://%41/", "http://%e9/", "http://u:p@h",
    "http://u@p@h", "http://u /h", "http://h/é", "http://h?a b", "http://a:1:2", "http://[fe80::1%25en0]",
    "http://[fe80::1%en0]", "http://a\x01", "http://<a>", "http://a^b", "http://a{b", "urn:x:y", "my-host", "a-b",
    "a--b", "ab-c", "ab-c.de", "a_b", "a.b", "a.bc", "a.b1", "A.COM", "1.com", "a.é", "é.com", "☃.com", "a.", "a..b",
    ".a", "-a", "a-", "$a", "a+b", "é", "00:00:5e:00:53:01", "00-00-5e-00-53-01", "0000.5e00.5301",
    "02:00:5e:10:00:00:00:01", "00:00:5e:00:53", "0:0:5e:0:53:1", "00-00:5e:00:53:01",
    "123e4567-e89b-12d3-a456-426614174000", "123e4567e89b12d3a456426614174000",
    "123E4567-E89B-32D3-A456-426614174000", "123e4567-e89b-42d3-a456-426614174000",
    "123e4567-e89b-52d3-8456-426614174000", "123e4567-e89b-42d3-c456-426614174000", "0321751043", "978-0321751041",
    "0-321-75104-3", "080442957X", "080442957x", "978 0321751041", "9780321751042", "4111111111111111",
    "4111 1111-1111 1111", "4111111111111112", "378282246310005", "6011111111111117", "123-45-6789", "123 45 6789",
    "123456789", "123-456789", "#fff", "fff", "#ffff", "#FFFFFF", "#ggg", "rgb(1,2,3)", "rgb( 1 , 2 , 3 )",
    "rgb(256,0,0)", "rgb(01,0,0)", "rgb(199,100,255)", "RGB(1,2,3)", "YQ==", "YWI=", "YWJj", "YQ", "Y===", "YWJj\n",
    "YW Jj", "_-==", "507f1f77bcf86cd799439011", "507F1F77BCF86CD799439011", "507f1f77bcf86cd79943901",
    "507f1f77bcf86cd79943901g",
    "x" * 63, "a" * 64, "a" * 254, "a" * 63 + ".com", "a" * 64 + ".com", ".".join(["a" * 60] * 5) + ".com",
)
# fmt: on
FORMATS = (
    "bsonobjectid",
    "byte",
    "cidr",
    "creditcard",
    "date",
    "date-time",
    "duration",
    "email",
    "hexcolor",
    "hostname",
    "ipv4",
    "ipv6",
    "isbn",
    "isbn10",
    "isbn13",
    "k8s-long-name",
    "k8s-short-name",
    "mac",
    "password",
    "rgbcolor",
    "ssn",
    "uri",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
    "int32",
    "unknown",
)


async def test_every_format_takes_and_refuses_the_same_texts(client: Client) -> None:
    maps = {name: {"type": "object", "additionalProperties": {"type": "string", "format": name}} for name in FORMATS}
    crd = definition({"type": "object", "properties": {"spec": {"type": "object", "properties": maps}}})
    base = await install(client, crd)
    version = versions_of(crd)[0]

    for name in FORMATS:
        given = instance(crd, spec={name: {f"k{i}": text for i, text in enumerate(TEXTS)}})
        real = await ask(client, "POST", base, given, query=[("dryRun", "All")])

        assert sorted(real.causes) == sorted(causes_of(validate_custom_resource(given, version))), name


async def test_names_are_given_and_withheld_alike(client: Client) -> None:
    crds: list[JSON] = []
    for plural, kind, short in (("firsts", "First", ["f", "ff"]), ("seconds", "First", ["f", "ff", "s"])):
        crd = definition({"type": "object"}, plural=plural)
        crd["spec"]["group"] = "names.example.io"
        crd["metadata"]["name"] = f"{plural}.names.example.io"
        crd["spec"]["names"] |= {"kind": kind, "shortNames": short, "categories": ["all"]}
        assert (await ask(client, "POST", CRDS, crd)).status == 201
        crds.append(await _settled(client, crd["metadata"]["name"]))

    for crd, others in ((crds[0], []), (crds[1], crds[:1])):
        fresh = {**crd, "status": {"storedVersions": ["v1"]}}
        ours = compute_status(fresh, others, now="now")
        assert ours["acceptedNames"] == crd["status"]["acceptedNames"]
        assert _without_times(ours["conditions"]) == _without_times(crd["status"]["conditions"])


async def _settled(client: Client, name: str) -> JSON:
    """The CRD once its names are accepted and served, or refused."""
    async with time_limit(30):
        while True:
            crd = (await ask(client, "GET", f"{CRDS}/{name}")).body
            states = {one["type"]: one["status"] for one in crd["status"].get("conditions") or ()}
            if states.get("NamesAccepted") and states["NamesAccepted"] == states.get("Established"):
                return crd


def _without_times(conditions: list[JSON]) -> list[JSON]:
    kept = (
        {name: value for name, value in one.items() if name in ("type", "status", "reason", "message")}
        for one in conditions
    )
    return sorted(kept, key=lambda one: str(one["type"]))
