"""The real API server and our rules, asked the same: definitions, objects, and changes of objects under new rules.

Every cause and every warning must agree. Their order is not compared, since the real server walks maps at random, nor
are the numbers it puts into the names of types.

Covers: kubewright.apiserver.apiextensions, kubewright.cel
"""

import copy
import json
import re
from collections.abc import AsyncIterator, Iterable
from typing import Any, NamedTuple

import pytest
from tests.builders.definitions import definition_tree

from kubewright import Client, Config, connect
from kubewright.api.field_errors import FieldError
from kubewright.apiserver.apiextensions.cel_rules import compile_rules, validate_rules
from kubewright.client.transport.transport import HttpRequest
from kubewright.cluster.planes.real import RealCluster
from kubewright.testing import time_limit

pytestmark = pytest.mark.real

JSON = dict[str, Any]
Cause = tuple[str, str, str]
GROUP = "rules.example.io"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Answer(NamedTuple):
    """What the server said."""

    status: int
    body: JSON
    warnings: list[str]

    @property
    def causes(self) -> list[Cause]:
        found = self.body.get("details", {}).get("causes", []) if self.status == 422 else []
        return sorted(cause(each["field"], each["message"], each["reason"]) for each in found)


def cause(field: str, message: str, reason: str) -> Cause:
    return field, re.sub(r"selfType\d+", "selfType", message), reason


def causes_of(errors: Iterable[FieldError]) -> list[Cause]:
    return sorted(cause(error.path, error.body, error.reason) for error in errors)


@pytest.fixture(scope="module")
async def client(real_cluster: RealCluster) -> AsyncIterator[Client]:
    async with connect(Config.load(kubeconfig=str(real_cluster.kubeconfig))) as client:
        yield client


async def ask(client: Client, method: str, path: str, body: JSON | None = None, *, dry: bool = False) -> Answer:
    """One request, its answer as it is."""
    request = HttpRequest(
        method=method,
        path=path,
        query=(("dryRun", "All"),) if dry else (),
        headers=(("Accept", "application/json"), ("Content-Type", "application/json")),
        body=json.dumps(body).encode() if body is not None else None,
        timeout=30,
    )
    response = await client.transport.send(request)
    tree = json.loads(response.body) if response.body[:1] == b"{" else {}
    return Answer(response.status, tree, sorted(response.warnings))


def definition(schema: JSON, plural: str) -> JSON:
    return definition_tree(plural, GROUP, schema=schema, scope="Cluster")


def rule(text: str, message: str = "", **more: Any) -> JSON:
    return {"rule": text, **({"message": message} if message else {}), **more}


def of_spec(properties: JSON, *rules: JSON) -> JSON:
    spec: JSON = {"type": "object", "properties": properties}
    if rules:
        spec["x-kubernetes-validations"] = list(rules)
    return {"type": "object", "properties": {"spec": spec}}


LOOSE: JSON = {
    "n": {"type": "integer"},
    "m": {"type": "integer"},
    "s": {"type": "string", "maxLength": 50},
    "f": {"type": "number"},
    "d": {"type": "string", "format": "date-time"},
    "x": {"x-kubernetes-int-or-string": True},
    "my-f": {"type": "integer"},
    "list": {
        "type": "array",
        "maxItems": 5,
        "items": {"type": "object", "properties": {"k": {"type": "string", "maxLength": 9}, "v": {"type": "integer"}}},
    },
    "keyed": {
        "type": "array",
        "maxItems": 5,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
        "items": {
            "type": "object",
            "required": ["k"],
            "properties": {"k": {"type": "string", "maxLength": 9}, "v": {"type": "integer"}},
        },
    },
    "map": {"type": "object", "maxProperties": 5, "additionalProperties": {"type": "integer"}},
    "set": {
        "type": "array",
        "maxItems": 5,
        "x-kubernetes-list-type": "set",
        "items": {"type": "string", "maxLength": 5},
    },
    "pod": {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-preserve-unknown-fields": True,
    },
    "many": {"type": "array", "maxItems": 700, "items": {"type": "string", "maxLength": 10}},
}


def strict() -> JSON:
    """The same schema with rules everywhere."""
    properties = copy.deepcopy(LOOSE)

    def add(node: JSON, *rules: JSON) -> None:
        node["x-kubernetes-validations"] = list(rules)

    add(properties["n"], rule("self < 10", "n is large"), rule("10 / (self - 5) != 77"))
    add(properties["s"], rule("self.startsWith('a')"), rule("self.size() >= oldSelf.size()", "s shrinks"))
    add(properties["f"], rule("self > 0.5"))
    add(properties["d"], rule("self > timestamp('2020-01-01T00:00:00Z')"))
    add(properties["x"], rule("self + 1 > 0"))
    add(properties["my-f"], rule("self > 0"))
    item = properties["list"]["items"]
    add(item, rule("self.v < 10", "item"))
    add(item["properties"]["v"], rule("self < 10", "leaf"))
    keyed = properties["keyed"]["items"]
    add(keyed, rule("self.v < 10", "keyed item"), rule("self.v >= oldSelf.v", "v shrinks"))
    add(keyed["properties"]["v"], rule("self < 10", "keyed leaf"), rule("self != oldSelf + 1", "no step"))
    entry = properties["map"]["additionalProperties"]
    add(entry, rule("self < 10", "entry"), rule("self >= oldSelf", "entry shrinks"))
    add(properties["set"], rule("self == oldSelf", "set is fixed"), rule("self.all(x, x != 'bad')"))
    add(properties["pod"], rule("self.kind == 'Pod'", "pods only"), rule("self.metadata.name.startsWith('x')"))
    add(properties["many"], rule("self.all(x, self.all(y, x == y || true))", "loop"))
    schema = of_spec(
        properties,
        rule("!has(self.m) || self.m < 10", "m is large", fieldPath=".m", reason="FieldValueForbidden"),
        rule("!has(self.m) || !has(oldSelf.m) || self.m >= oldSelf.m", "m shrinks"),
        rule("oldSelf.hasValue() || !has(self.m) || self.m == 1", "m starts at 1", optionalOldSelf=True),
        rule("self.my__dash__f < 100 || !has(self.my__dash__f)", messageExpression="'my-f is large'"),
        rule("self.n != 3", reason="FieldValueDuplicate", fieldPath=".n"),
    )
    schema["x-kubernetes-validations"] = [rule("self.metadata.name != 'probe'", "the rules are there")]
    return schema


POD = {"apiVersion": "v1", "kind": "Foo", "metadata": {"name": "y"}}
CHANGES: list[tuple[JSON, JSON]] = [
    ({"n": 50, "s": "b"}, {"n": 50, "s": "b", "m": 1}),
    ({"n": 50, "s": "bbb"}, {"n": 51, "s": "b"}),
    ({"n": 3}, {"n": 3, "f": 1}),
    ({"list": [{"v": 20}], "n": 1}, {"list": [{"v": 20}], "n": 2}),
    ({"list": [{"v": 20}], "n": 1}, {"list": [{"v": 20}, {"v": 1}], "n": 1}),
    ({"keyed": [{"k": "a", "v": 20}]}, {"keyed": [{"k": "a", "v": 20}, {"k": "b", "v": 1}]}),
    ({"keyed": [{"k": "a", "v": 20}]}, {"keyed": [{"k": "a", "v": 19}, {"k": "b", "v": 30}]}),
    ({"keyed": [{"k": "a", "v": 20}, {"k": "b", "v": 20}]}, {"keyed": [{"k": "b", "v": 20}, {"k": "a", "v": 20}]}),
    ({"keyed": [{"k": "a", "v": 2}]}, {"keyed": [{"k": "a", "v": 3}]}),
    ({"map": {"a": 50}}, {"map": {"a": 50, "b": 60}}),
    ({"map": {"a": 5}}, {"map": {"a": 4}}),
    ({"set": ["a", "b"]}, {"set": ["b", "a"]}),
    ({"set": ["a", "b"]}, {"set": ["b"]}),
    ({"set": ["bad"]}, {"set": ["bad"], "n": 1}),
    ({"m": 50}, {"m": 50}),
    ({"m": 50}, {"m": 50, "n": 1}),
    ({"m": 5}, {"m": 4}),
    ({"pod": POD}, {"pod": POD, "n": 1}),
    ({"pod": {**POD, "z": 1}}, {"pod": {**POD, "z": 2}}),
    ({"d": "2019-01-01T00:00:00Z"}, {"d": "2019-01-02T00:00:00Z", "my-f": -1}),
    ({"my-f": 500}, {"my-f": 500}),
    ({}, {"m": 7, "x": "a", "f": 0, "n": 5}),
]
CREATED: list[JSON] = [
    {},
    {"n": 1, "m": 1, "my-f": 5, "f": 1.5, "s": "abc", "x": 3, "d": "2021-01-01T00:00:00Z"},
    {"n": 3, "m": 7, "my-f": 500, "f": 0, "s": "b", "x": "q", "d": "2019-01-01T00:00:00Z"},
    {"n": 5, "list": [{"k": "a"}], "keyed": [{"k": "a", "v": 99}], "map": {"a": 11}, "set": ["bad"], "pod": POD},
    {"n": 1, "my-f": 1, "many": ["a" * 10] * 700},
]


async def test_objects_and_changes_get_the_same_verdict(client: Client) -> None:
    crd = definition(of_spec(LOOSE), "things")
    base = f"/apis/{GROUP}/v1/things"
    assert (await ask(client, "POST", CRDS, crd)).status == 201

    def thing(name: str, spec: JSON) -> JSON:
        return {"apiVersion": f"{GROUP}/v1", "kind": "Things", "metadata": {"name": name}, "spec": spec}

    async with time_limit(30):
        while (await ask(client, "GET", base)).status != 200:
            pass
    stored = []
    for number, (old, _) in enumerate(CHANGES):
        answer = await ask(client, "POST", base, thing(f"changed-{number}", old))
        assert answer.status == 201, answer.body
        stored.append(answer.body)
    schema = strict()
    current = (await ask(client, "GET", f"{CRDS}/things.{GROUP}")).body
    current["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema
    assert (await ask(client, "PUT", f"{CRDS}/things.{GROUP}", current)).status == 200
    async with time_limit(30):
        while (await ask(client, "POST", base, thing("probe", {}), dry=True)).status != 422:
            pass
    rules = compile_rules(schema)

    differing = []
    for spec in CREATED:
        new = thing("created", spec)
        real = await ask(client, "POST", base, new, dry=True)
        if real.causes != causes_of(rules.check(new)):
            differing.append((spec, real.causes, causes_of(rules.check(new))))
    for before, (_, spec) in zip(stored, CHANGES, strict=True):
        new = {**before, "spec": spec}
        real = await ask(client, "PUT", f"{base}/{before['metadata']['name']}", new, dry=True)
        warnings: list[str] = []
        ours = causes_of(rules.check(new, before, warnings=warnings))
        if (real.causes, real.warnings) != (ours, sorted(warnings)):
            differing.append((spec, real.causes, ours))

    assert differing == []


FORM = [
    *(rule(" "), rule("true", " "), rule("true", "a\nb"), rule("true &&\n true"), rule("true", messageExpression=" ")),
    *(rule("true", reason="Foo"), rule("true", fieldPath=" "), rule("true", fieldPath=".zz")),
    *(rule("true", fieldPath=".n\n"), rule("true", fieldPath=".n"), rule("true", fieldPath=".map.a")),
    *(rule("true", fieldPath=".map['a.b']"), rule("true", fieldPath="n"), rule("true", fieldPath=".n[0]")),
]
TEXTS = [
    *("self.foo > 1", "self.n", "self.pod == 1", "self.n ==", "int('x') == 1", "a b", "self.n > 1)", "'abc", "self..n"),
    *("self.n > #", "self.n > 1 &&", "self.list.map(x)", "if(true)", "self.true", "(self.n > 1", "[1,2", "{1 2}"),
    *("1 = 1", "self.n & 1", "x y z", "é", "self.s.matches('[')", "duration('1') == duration('1s')", "[1, 'a'] == []"),
    *("self.map.all(k, v, v > k)", "self.keyed.exists(x, x.z)", "has(self)", "self.list.all(x.y, true)"),
    *("self.x == 'a' && self.x == 1", "cel.bind(a, 1, a == 1)", "'a'.reverse() == 'a'", r"self.s.matches('\d')"),
    *(
        "self.many.all(x, self.many.all(y, self.many.all(z, x == z)))",
        "self.list == oldSelf.list",
        "type(self.n) == int",
    ),
]
WRONG: list[JSON] = [
    of_spec(LOOSE, *FORM),
    of_spec(LOOSE, *map(rule, TEXTS)),
    of_spec(
        LOOSE,
        rule("self.n > 1", messageExpression="self.n"),
        rule("self.n > 1", messageExpression="self.zz"),
        rule("self.n > 1", messageExpression="self.d.getFullYear() > 1 ? self.s : 'x'"),
        rule("self.n > 1", optionalOldSelf=True),
        rule("oldSelf.hasValue() && self.n == oldSelf.value().n", optionalOldSelf=True),
    ),
    of_spec(
        {
            "free": {
                "type": "array",
                "items": {
                    "type": "string",
                    "x-kubernetes-validations": [rule("self == oldSelf"), rule("self.matches('^a+$')")],
                },
            },
            "bounded": {
                "type": "array",
                "maxItems": 100,
                "items": {
                    "type": "string",
                    "maxLength": 5000,
                    "x-kubernetes-validations": [rule("self.matches('^[a-z]+([a-z0-9-]*[a-z0-9])?$')")],
                },
            },
        }
    ),
]


@pytest.mark.parametrize("schema", WRONG, ids=["form", "expressions", "messages", "costs"])
async def test_definitions_get_the_same_verdict(client: Client, schema: JSON) -> None:
    real = await ask(client, "POST", CRDS, definition(schema, "wrongs"), dry=True)

    ours = causes_of(validate_rules(schema, path="spec.validation.openAPIV3Schema"))

    assert real.status == 422
    assert ours == real.causes
