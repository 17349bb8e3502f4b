"""Every marker on the real API server: its CRD installs without a warning, and its rules do what they say.

All CRDs and all objects go to the server in a few kubectl calls for the whole module; each test then looks at what came
of its own case. Objects are plain JSON on purpose: most of the bad ones could not be made with the classes.

Covers: kubewright.schema.builder, kubewright.generate.crds
"""

import asyncio
import enum
import json
import re
import subprocess
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeVar, cast

import pytest
from tests.planes import Plane

from kubewright import Client
from kubewright.api.fields import Field, Rule
from kubewright.api.intorstring import IntOrString
from kubewright.api.metadata import ObjectMeta
from kubewright.api.model import UNSET, Model, Unset, field
from kubewright.api.quantity import Quantity
from kubewright.api.resource import KubeObject, Resource, Spec, Status
from kubewright.api.times import Duration, MicroTime
from kubewright.cluster.binaries.finder import Binaries
from kubewright.cluster.install import CRD, install_crds
from kubewright.generate.crds.manifests import crd_for
from kubewright.testing import until

pytestmark = pytest.mark.real

GROUP = "markers.example.io"
JSON = dict[str, Any]


class Change(NamedTuple):
    """A change of a stored spec, and what the server says to it; empty if it accepts."""

    old: JSON
    new: JSON
    refusal: str


@dataclass(frozen=True, kw_only=True)
class Case:
    """One spec class, and what the server must think of objects with it."""

    spec: type[Spec]
    good: Sequence[JSON] = ({},)
    stored: JSON | None = None
    """What the first good spec looks like once stored."""
    bad: Sequence[tuple[JSON, str]] = ()
    """A spec, and a part of the server's answer."""
    changes: Sequence[Change] = ()

    @property
    def name(self) -> str:
        return self.spec.__name__.removesuffix("Spec")


class BoundsSpec(Spec):
    size: Annotated[int, Field(ge=0, le=10)] = 1
    share: Annotated[float, Field(gt=0, lt=1)] | None = None
    even: Annotated[int, Field(multiple_of=2)] | None = None


class TextSpec(Spec):
    code: Annotated[str, Field(min_length=2, max_length=4)] | None = None
    host: Annotated[str, Field(pattern=r"^[a-z]+(\.[a-z]+)*$")] | None = None
    address: Annotated[str, Field(format="ipv4")] | None = None
    short: Annotated[str, Field(format="k8s-short-name")] | None = None


class SizesSpec(Spec):
    items: Annotated[list[str], Field(min_items=1, max_items=2)] | None = None
    labels: Annotated[dict[str, str], Field(min_properties=1, max_properties=2)] | None = None
    pair: tuple[int, int] | None = None


Color = enum.Enum("Color", {"RED": "red", "BLUE": "blue"})


class ChoicesSpec(Spec):
    mode: Literal["fast", "slow"] = "fast"
    color: Color = Color.BLUE
    level: Annotated[int, Field(enum=[1, 2, 3])] = 2
    either: Literal["a"] | Literal["b"] | None = None
    maybe: Literal["x", "y"] | Unset | None = UNSET


class Inner(Model):
    depth: int = 3
    name: str | None = None


class DefaultsSpec(Spec):
    size: int = 2
    text: str = ""
    flag: bool = False
    items: list[int] = []
    labels: dict[str, str] = {"app": "web"}
    inner: Inner = Inner()
    other: Inner = Inner(depth=9)
    quantity: Quantity = Quantity("500m")
    wait: Duration = Duration("1m30s")
    said: Annotated[int | None, Field(default=7)] = None
    made: str = field(default_factory=lambda: "by the program alone")


class NullsSpec(Spec):
    note: str | Unset | None = UNSET
    must: int | None
    count: int | None = 5
    absent: str | None = None
    items: list[int | None] = []


class RequiredSpec(Spec):
    name: str
    size: int = 1
    forced: Annotated[int, Field(required=True)] = 4
    relaxed: Annotated[str, Field(required=False)]


class Port(Model):
    port_name: str
    number: Annotated[int, Field(ge=1, le=65535)] = 80
    protocol: str = "TCP"


class ListTypesSpec(Spec):
    ports: Annotated[list[Port], Field(list_type="map", list_map_keys=("port_name", "protocol"))] = []
    tags: Annotated[list[Annotated[str, Field(min_length=1)]], Field(list_type="set")] = []
    unique: set[int] = {2, 1}
    plain: Annotated[list[Port], Field(list_type="atomic")] = []
    whole: Annotated[dict[str, str], Field(map_type="atomic")] = {}
    parts: Annotated[Inner, Field(map_type="atomic")] | None = None
    values: dict[str, Annotated[int, Field(ge=0)]] = {}


class Keyed(Model):
    name: str
    zone: Annotated[str, Field(immutable=True, max_length=64)] | None = None


class FixedSpec(Spec):
    region: Annotated[str, Field(immutable=True)]
    network: Annotated[str, Field(immutable=True)] | None = None
    given: Annotated[str, Field(immutable=True)] = "blue"
    disks: Annotated[list[Keyed], Field(list_type="map", list_map_keys=("name",), max_items=8)] = []


class EmbeddedSpec(Spec):
    template: Annotated[dict[str, Any], Field(embedded_object=True)] | None = None
    claim: KubeObject | None = None
    metadata: ObjectMeta | None = None


class NumbersOrWordsSpec(Spec):
    surge: IntOrString = "25%"
    port: Annotated[Any, Field(int_or_string=True)] = 80
    cpu: Quantity | None = None


class Loose(Model, marker=Field(preserve_unknown_fields=True)):
    known: int | None = None


class Tree(Model):
    name: str | None = None
    children: list[Annotated["Tree", Field(preserve_unknown_fields=True)]] = []


class OpenSpec(Spec):
    anything: Any = None
    values: dict[str, Any] = {}
    loose: Loose | None = None
    tree: Tree | None = None
    mixed: Annotated[int | list[int], Field(preserve_unknown_fields=True)] | None = None
    typed: Annotated[complex | None, Field(type="string")] = None


class Range(Model, marker=Field(rules=[Rule(rule="self.low <= self.high", message="low is above high")])):
    low: int = 0
    high: int = 10


GROWS = Rule(rule="!oldSelf.hasValue() || self >= oldSelf.value()", message="grows only", optional_old_self=True)


class RulesSpec(
    Spec, marker=Field(rules=[Rule(rule="self.a != self.b", reason="FieldValueForbidden", field_path=".b")])
):
    a: str = "a"
    b: str = "b"
    range: Range = Range()
    steps: Annotated[
        int, Field(rules=[Rule(rule="self % 5 == 0", message_expression="self < 5 ? 'below five' : 'not five-fold'")])
    ] = 0
    grows: Annotated[int, Field(rules=[GROWS])] = 1


class Source(
    Model,
    marker=Field(one_of=[("git_url", "namespace")], at_most_one_of=[("x_y", "tag")], at_least_one_of=[("tag", "file")]),
):
    git_url: str | None = None
    namespace: str | None = None
    x_y: str | None = field(default=None, name="x-y")
    tag: str | None = None
    file: str | None = None


class ChoiceOfSpec(Spec, marker=Field(one_of=[("source", "text")])):
    source: Source | None = None
    text: str | None = None


PortNumber = Annotated[int, Field(ge=1, le=65535, format="int32")]
T = TypeVar("T")


class Box(Model, Generic[T]):
    """Holds one thing."""

    content: T


DOCUMENTED = Field(
    title="Documented", description="A text.", example="like this", external_docs={"url": "https://a.io"}
)


class AliasesSpec(Spec):
    port: PortNumber = 80
    low: Annotated[PortNumber, Field(le=1023)] = 80
    box: Box[str] | None = None
    documented: Annotated[str, DOCUMENTED] = "x"


class ScalarsSpec(Spec):
    data: bytes | None = None
    at: datetime | None = None
    exactly: MicroTime | None = None
    day: date | None = None
    wait: Duration | None = None
    id: uuid.UUID | None = None
    number: int | float | None = None


META = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "labels": {"a": "b"}}}
WHOLE: JSON = {"template": {**META, "spec": {"x": 1}}, "claim": META, "metadata": {"labels": {"a": "b"}}}
FILLED: JSON = {"size": 2, "text": "", "flag": False, "items": [], "labels": {"app": "web"}, "said": 7}
FILLED |= {"inner": {"depth": 3}, "other": {"depth": 9}, "quantity": "500m", "wait": "1m30s"}
OPEN: JSON = {
    "anything": [1, {"a": 2}],
    "values": {"x": {"y": 1}},
    "loose": {"known": 1, "more": [2]},
    "tree": {"name": "a", "children": [{"name": "b", "children": [{"name": "c"}]}]},
    "mixed": [1],
    "typed": "1j",
}

CASES = (
    Case(
        spec=BoundsSpec,
        good=({"size": 0, "share": 0.5, "even": 4}, {"size": 10}),
        stored={"size": 0, "share": 0.5, "even": 4},
        bad=(
            ({"size": -1}, "spec.size in body should be greater than or equal to 0"),
            ({"size": 11}, "spec.size in body should be less than or equal to 10"),
            ({"share": 0}, "spec.share in body should be greater than 0"),
            ({"share": 1}, "spec.share in body should be less than 1"),
            ({"even": 3}, "spec.even in body should be a multiple of 2"),
            ({"size": "1"}, 'spec.size in body must be of type integer: "string"'),
            ({"sizes": 1}, 'unknown field "spec.sizes"'),
        ),
    ),
    Case(
        spec=TextSpec,
        good=({"code": "abcd", "host": "a.b", "address": "10.0.0.1", "short": "web-1"},),
        bad=(
            ({"code": "a"}, "should be at least 2 chars long"),
            ({"code": "abcde"}, "may not be more than 4"),
            ({"host": "A"}, "spec.host in body should match"),
            ({"address": "10.0.0"}, "spec.address in body must be of type ipv4"),
            ({"short": "Web"}, "spec.short in body must be of type k8s-short-name"),
        ),
    ),
    Case(
        spec=SizesSpec,
        good=({"items": ["a"], "labels": {"a": "b"}, "pair": [1, 2]},),
        bad=(
            ({"items": []}, "spec.items in body should have at least 1 items"),
            ({"items": ["a", "b", "c"]}, "must have at most 2 items"),
            ({"labels": {}}, "should have at least 1 properties"),
            ({"labels": {"a": "", "b": "", "c": ""}}, "must have at most 2 items"),
            ({"pair": [1]}, "spec.pair in body should have at least 2 items"),
        ),
    ),
    Case(
        spec=ChoicesSpec,
        good=({}, {"mode": "slow", "color": "red", "level": 3, "either": "b", "maybe": None}, {"maybe": "y"}),
        stored={"mode": "fast", "color": "blue", "level": 2},
        bad=(
            ({"mode": "no"}, 'Unsupported value: "no"'),
            ({"color": "RED"}, 'Unsupported value: "RED"'),
            ({"level": 4}, "Unsupported value: 4"),
            ({"either": "c"}, 'Unsupported value: "c"'),
            ({"maybe": "z"}, 'must be one of "x", "y"'),
        ),
    ),
    Case(
        spec=DefaultsSpec,
        stored=FILLED,
    ),
    Case(
        spec=NullsSpec,
        good=({"note": None, "must": None, "count": None, "items": [1, None]}, {"must": 1}),
        stored={"note": None, "must": None, "count": None, "items": [1, None]},
        bad=(({}, "spec.must: Required value"),),
    ),
    Case(
        spec=RequiredSpec,
        good=({"name": "a", "forced": 1},),
        stored={"name": "a", "forced": 1, "size": 1},
        bad=(({"forced": 1}, "spec.name: Required value"), ({"name": "a"}, "spec.forced: Required value")),
    ),
    Case(
        spec=ListTypesSpec,
        good=(
            {
                "ports": [{"portName": "a"}, {"portName": "a", "protocol": "UDP"}],
                "tags": ["a", "b"],
                "values": {"a": 0},
            },
        ),
        stored={
            "ports": [
                {"portName": "a", "number": 80, "protocol": "TCP"},
                {"portName": "a", "number": 80, "protocol": "UDP"},
            ],
            "tags": ["a", "b"],
            "unique": [1, 2],
            "plain": [],
            "whole": {},
            "values": {"a": 0},
        },
        bad=(
            ({"ports": [{"portName": "a"}, {"portName": "a"}]}, "Duplicate value"),
            ({"tags": ["a", "a"]}, "Duplicate value"),
            ({"tags": [""]}, "spec.tags[0] in body should be at least 1 chars long"),
            ({"unique": [1, 1]}, "Duplicate value"),
            ({"values": {"a": -1}}, "spec.values.a in body should be greater than or equal to 0"),
            ({"ports": [{"number": 1}]}, "portName"),
        ),
    ),
    Case(
        spec=FixedSpec,
        good=({"region": "eu"},),
        stored={"region": "eu", "given": "blue", "disks": []},
        changes=(
            Change({"region": "eu"}, {"region": "us"}, "region is immutable"),
            Change({"region": "eu"}, {"region": "eu", "network": "a"}, ""),
            Change({"region": "eu", "network": "a"}, {"region": "eu", "network": "b"}, "network is immutable"),
            Change({"region": "eu", "network": "a"}, {"region": "eu"}, "network is immutable and cannot be removed"),
            Change({"region": "eu"}, {"region": "eu", "given": "red"}, "given is immutable"),
            Change(
                {"region": "eu", "disks": [{"name": "a", "zone": "1"}]},
                {"region": "eu", "disks": [{"name": "a", "zone": "2"}]},
                "zone is immutable",
            ),
            Change(
                {"region": "eu", "disks": [{"name": "a", "zone": "1"}]}, {"region": "eu", "disks": [{"name": "b"}]}, ""
            ),
        ),
    ),
    Case(
        spec=EmbeddedSpec,
        good=(WHOLE,),
        stored=WHOLE,
        bad=(
            ({"template": {"spec": {}}}, "spec.template.kind: Required value"),
            ({"claim": {"apiVersion": "v1", "kind": "x", "metadata": {"labels": 1}}}, "spec.claim.metadata"),
        ),
    ),
    Case(
        spec=NumbersOrWordsSpec,
        good=({"surge": 1, "port": "http", "cpu": "1500m"}, {"cpu": 2}),
        stored={"surge": 1, "port": "http", "cpu": "1500m"},
        bad=(
            ({"surge": 1.5}, "spec.surge in body must be of type"),
            ({"port": True}, "spec.port in body must be of type"),
            ({"cpu": "1 GB"}, "spec.cpu in body should match"),
        ),
    ),
    Case(
        spec=OpenSpec,
        good=(
            OPEN,
            {"anything": "text", "mixed": 1},
        ),
        stored=OPEN,
        bad=(
            ({"loose": {"known": "1"}}, "spec.loose.known"),
            ({"tree": {"nam": "a"}}, 'unknown field "spec.tree.nam"'),
        ),
    ),
    Case(
        spec=RulesSpec,
        stored={"a": "a", "b": "b", "range": {"low": 0, "high": 10}, "steps": 0, "grows": 1},
        bad=(
            ({"a": "b"}, "spec.b: Forbidden"),
            ({"range": {"low": 11}}, "low is above high"),
            ({"steps": 4}, "below five"),
        ),
        changes=(Change({"grows": 2}, {"grows": 1}, "grows only"), Change({"grows": 1}, {"grows": 2}, "")),
    ),
    Case(
        spec=ChoiceOfSpec,
        good=(
            {"text": "a"},
            {"source": {"gitUrl": "a", "tag": "b"}},
            {"source": {"namespace": "a", "x-y": "c", "file": "d"}},
        ),
        bad=(
            ({}, "exactly one of source, text must be set"),
            ({"text": "a", "source": {"gitUrl": "a", "tag": "b"}}, "exactly one of source, text must be set"),
            ({"source": {"tag": "b"}}, "exactly one of gitUrl, namespace must be set"),
            ({"source": {"gitUrl": "a", "tag": "b", "x-y": "c"}}, "at most one of x-y, tag may be set"),
            ({"source": {"gitUrl": "a"}}, "at least one of tag, file must be set"),
        ),
    ),
    Case(
        spec=AliasesSpec,
        good=({"box": {"content": "a"}},),
        bad=(
            ({"port": 0}, "spec.port"),
            ({"low": 1024}, "spec.low in body should be less than or equal to 1023"),
            ({"box": {"content": 1}}, 'spec.box.content in body must be of type string: "integer"'),
            ({"box": {}}, "spec.box.content: Required value"),
        ),
    ),
    Case(
        spec=ScalarsSpec,
        good=(
            {
                "data": "aGVsbG8=",
                "at": "2024-05-01T10:00:00Z",
                "exactly": "2024-05-01T10:00:00.123456Z",
                "day": "2024-05-01",
                "wait": "1h",
                "id": "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
                "number": 1.5,
            },
            {"number": 1},
        ),
        bad=(
            ({"data": "%"}, "spec.data in body must be of type byte"),
            ({"at": "yesterday"}, "spec.at in body must be of type date-time"),
            ({"day": "2024-13-01"}, "spec.day in body must be of type date"),
            ({"id": "x"}, "spec.id in body must be of type uuid"),
        ),
    ),
)


class CaseStatus(Status):
    ready: int = 0
    note: str | None = None


def kind_for(spec: type[Spec]) -> type[KubeObject]:
    base: Any = Resource[spec, CaseStatus]  # type: ignore[valid-type]  # a class made at run time

    class Made(base, group=GROUP, version="v1", kind=spec.__name__.removesuffix("Spec")):  # type: ignore[misc, call-arg]  # as above
        """A case."""

    return cast("type[KubeObject]", Made)


CRDS = tuple(crd_for(kind_for(case.spec)) for case in CASES)


@dataclass(frozen=True, kw_only=True)
class Server:
    """kubectl on a control plane."""

    kubectl: Path
    kubeconfig: Path

    async def run(self, *arguments: str, documents: Iterable[JSON] = ()) -> subprocess.CompletedProcess[str]:
        # In a thread: the embedded server lives on this very loop.
        return await asyncio.to_thread(
            subprocess.run,
            [str(self.kubectl), f"--kubeconfig={self.kubeconfig}", *arguments],
            input="\n---\n".join(map(json.dumps, documents)),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    async def write(self, verb: Literal["create", "replace"], documents: Sequence[JSON]) -> dict[str, str]:
        """Object name to what the server said against it; empty for an object that was accepted."""
        done = await self.run(verb, "-f", "-", documents=documents)
        accepted = set(re.findall(r"^\S+/(\S+) (?:created|replaced)$", done.stdout, re.MULTILINE))
        answers = {}
        for name in (document["metadata"]["name"] for document in documents):
            mine = [line for line in done.stderr.splitlines() if re.search(rf'["/]{re.escape(name)}[";]', line)]
            answers[name] = "" if name in accepted else "\n".join(mine) or done.stderr
        return answers


def named(case: Case, name: str, spec: JSON) -> JSON:
    return {"apiVersion": f"{GROUP}/v1", "kind": case.name, "metadata": {"name": name}, "spec": spec}


def name_of(case: Case, role: str, number: int) -> str:
    return f"{case.name.lower()}-{role}-{number}x"


@pytest.fixture(scope="module")
async def server(real_binaries: Binaries, plane: Plane, client: Client) -> Server:
    """The control plane with all CRDs installed."""
    server = Server(kubectl=real_binaries.kubectl, kubeconfig=plane.kubeconfig)
    done = await server.run("apply", "--server-side", "--warnings-as-errors", "-f", "-", documents=CRDS)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    await install_crds(client, *CRDS)
    return server


@pytest.fixture(scope="module")
async def answers(server: Server) -> dict[str, str]:
    """What the server said to every object of every case, by name."""
    first = [
        named(case, name_of(case, role, number), spec)
        for case in CASES
        for role, specs in (
            ("good", case.good),
            ("bad", [spec for spec, _ in case.bad]),
            ("old", [change.old for change in case.changes]),
        )
        for number, spec in enumerate(specs)
    ]
    second = [
        named(case, name_of(case, "old", number), change.new)
        for case in CASES
        for number, change in enumerate(case.changes)
    ]
    before = await server.write("create", first)
    after = await server.write("replace", second)
    return {**before, **{f"{name} changed": answer for name, answer in after.items()}}


def by_name(case: Case) -> str:
    return case.name


def numbered(role: str) -> list[Any]:
    """A parameter set for each object of a role in each case."""
    return [pytest.param(case, i, id=f"{case.name}-{i}") for case in CASES for i in range(len(getattr(case, role)))]


@pytest.mark.parametrize("crd", CRDS, ids=lambda crd: crd["metadata"]["name"])
async def test_a_generated_crd_is_established_and_structural(server: Server, crd: JSON) -> None:
    answer = await server.run("get", "crd", crd["metadata"]["name"], "-o", "json")

    conditions = {one["type"]: one["status"] for one in json.loads(answer.stdout)["status"]["conditions"]}
    assert conditions["Established"] == "True"
    assert conditions["NamesAccepted"] == "True"
    assert "NonStructuralSchema" not in conditions


@pytest.mark.parametrize("case", CASES, ids=by_name)
def test_an_object_that_obeys_the_markers_is_accepted(answers: dict[str, str], case: Case) -> None:
    said = [answers[name_of(case, "good", number)] for number in range(len(case.good))]

    assert said == [""] * len(case.good)


@pytest.mark.parametrize(("case", "number"), numbered("bad"))
def test_an_object_that_breaks_a_marker_is_refused(answers: dict[str, str], case: Case, number: int) -> None:
    assert case.bad[number][1] in answers[name_of(case, "bad", number)]


@pytest.mark.parametrize(("case", "number"), numbered("changes"))
def test_a_rule_about_the_old_value_guards_changes(answers: dict[str, str], case: Case, number: int) -> None:
    name, refusal = name_of(case, "old", number), case.changes[number].refusal

    assert answers[name] == ""
    assert refusal in answers[f"{name} changed"]
    assert bool(refusal) == bool(answers[f"{name} changed"])


@pytest.mark.usefixtures("answers")
@pytest.mark.parametrize("case", [case for case in CASES if case.stored is not None], ids=by_name)
async def test_the_server_fills_in_the_defaults_of_the_class(server: Server, case: Case) -> None:
    answer = await server.run("get", f"{case.name.lower()}.{GROUP}", name_of(case, "good", 0), "-o", "json")

    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout)["spec"] == case.stored


async def test_a_crd_that_is_being_deleted_is_installed_again_when_it_is_gone(client: Client, namespace: str) -> None:
    class Parcel(Resource[Spec, Status], group="parcel.example.io", version="v1"):
        """Deleted and installed at once."""

    await install_crds(client, Parcel)
    kept = Parcel(metadata=ObjectMeta(name="kept", namespace=namespace, finalizers=["example.io/guard"]))
    await client.create(kept)
    crd = await client.get(CRD, "parcels.parcel.example.io")
    await client.delete(crd)

    installing = asyncio.create_task(install_crds(client, Parcel))
    await until(client, CRD, crd.metadata.name, lambda seen: seen.metadata.deletion_timestamp is not None)
    await client.patch_by_name(Parcel, kept.key, {"metadata": {"finalizers": None}})
    await installing

    again = await client.get(CRD, crd.metadata.name)
    assert again.metadata.uid != crd.metadata.uid
    assert again.metadata.deletion_timestamp is None
    assert list(await client.list(Parcel)) == []
