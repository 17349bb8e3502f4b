"""What a server has stored is read, whatever the class knows of it, and written back as it was."""

from __future__ import annotations

import copy
import pickle
from datetime import UTC, datetime
from enum import Enum, IntEnum, StrEnum
from typing import Annotated, Any, Literal

import msgspec
import pytest

from kubewright import Duration, Field, Model, Quantity, Resource, Spec, Status
from kubewright.api import UnknownValue, copy_of, enum_of, from_tree, problems_of, to_tree
from kubewright.api.changes import merge_patch_since_read, status_patch_since_read, whole_tree
from kubewright.api.codec import encode, encode_tree, read
from kubewright.api.unknown_values import zero_of
from kubewright.errors import DecodeError


class Size(StrEnum):
    SMALL = "small"
    LARGE = "large"


class Level(IntEnum):
    LOW = 1


class Shade(Enum):
    DARK = "dark"


class Part(Model):
    name: str
    shade: Shade | None = None


class Checked(Model):
    low: int = 0
    high: int = 9

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError("low is above high")


class BoxSpec(Spec):
    size: Size = Size.SMALL
    level: Level | None = None
    mode: Literal["fast", "safe"] = "safe"
    parts: list[Part] = []
    by_name: dict[str, Part] = {}
    weight: Annotated[int, msgspec.Meta(ge=0)] = 0
    tags: Annotated[list[str], msgspec.Meta(max_length=2)] = []
    memory: Quantity | None = None
    every: Duration | None = None
    port: int | str = 80
    checked: Checked | None = None


class BoxStatus(Status):
    phase: Literal["Pending", "Ready"] | None = None
    ready: int = 0


class Box(Resource[BoxSpec, BoxStatus], group="example.io", version="v1"):
    """For these tests."""


class NeedyPart(Model):
    image: str
    size: Size
    every: Duration
    memory: Quantity
    at: datetime


class NeedySpec(Spec):
    replicas: int
    mode: Literal["fast", "safe"]
    part: NeedyPart
    names: list[str]
    limit: int | None
    chosen: Annotated[str, Field(min_length=1)]


class Needy(Resource[NeedySpec, Status], group="example.io", version="v1"):
    """With required attributes."""


def stored(spec: dict[str, Any], status: dict[str, Any] | None = None, kind: str = "Box") -> bytes:
    tree: dict[str, Any] = {"apiVersion": "example.io/v1", "kind": kind, "metadata": {"name": "a"}, "spec": spec}
    return encode_tree(tree | ({} if status is None else {"status": status}))


def problems(box: Any) -> list[str]:
    return [problem.message for problem in problems_of(box)]


def test_an_object_that_fits_has_no_problems() -> None:
    assert problems_of(read(Box, stored({"size": "large"}))) == ()


def test_a_value_that_the_enum_lost_equals_its_text_and_no_member() -> None:
    box = read(Box, stored({"size": "huge", "level": 7, "mode": "odd"}))

    assert box.spec.size == "huge"
    assert box.spec.size not in tuple(Size)
    assert isinstance(box.spec.size, UnknownValue)
    assert (box.spec.size.value, box.spec.size.name, f"{box.spec.size}") == ("huge", "huge", "huge")
    assert box.spec.level == 7
    assert isinstance(box.spec.level, UnknownValue)
    assert (box.spec.level.value, box.spec.level.name) == (7, "7")
    assert box.spec.mode == "odd"  # type: ignore[comparison-overlap]
    assert problems(box) == [
        'spec.size: Unsupported value: "huge": supported values: "small", "large"',
        'spec.level: Unsupported value: 7: supported values: "1"',
        'spec.mode: Unsupported value: "odd": supported values: "fast", "safe"',
    ]


def test_match_takes_the_last_case() -> None:
    box = read(Box, stored({"size": "huge"}))

    match box.spec.size:
        case Size.SMALL | Size.LARGE:
            chosen = "known"
        case _:
            chosen = "unknown"

    assert chosen == "unknown"


def test_an_unknown_value_can_be_copied_and_pickled() -> None:
    size = read(Box, stored({"size": "huge"})).spec.size

    assert copy.deepcopy(size) == size == pickle.loads(pickle.dumps(size))
    assert isinstance(pickle.loads(pickle.dumps(size)), UnknownValue)


def test_what_is_around_an_unknown_value_is_read() -> None:
    spec = {
        "size": "large",
        "parts": [{"name": "x", "shade": "dark"}, {"name": "y", "shade": "pink"}],
        "byName": {"a/b": {"name": "z", "shade": "grey"}},
        "memory": "1Gi",
        "checked": None,
    }

    box = read(Box, stored(spec))

    assert box.spec.size is Size.LARGE
    assert box.spec.parts[0] == Part(name="x", shade=Shade.DARK)
    assert isinstance(box.spec.parts[1], Part)
    assert isinstance(box.spec.parts[1].shade, UnknownValue)
    assert box.spec.memory == Quantity("1Gi")
    assert box.spec.checked is None
    assert [problem.path for problem in problems_of(box)] == ["spec.parts[1].shade", "spec.byName[a/b].shade"]


@pytest.mark.parametrize(
    ("spec", "attribute", "value", "problem"),
    [
        ({"weight": -1}, "weight", -1, "spec.weight: Invalid value: -1: expected `int` >= 0"),
        ({"tags": list("abc")}, "tags", ["a", "b", "c"], "spec.tags: Invalid value"),
        ({"weight": "heavy"}, "weight", "heavy", 'spec.weight: Invalid value: "heavy": expected `int`, got `str`'),
        ({"every": "often"}, "every", "often", 'spec.every: Invalid value: "often"'),
        ({"port": [1]}, "port", [1], "spec.port: Invalid value"),
        ({"parts": "x"}, "parts", "x", 'spec.parts: Invalid value: "x": expected `array`, got `str`'),
        ({"checked": 3}, "checked", 3, "spec.checked: Invalid value: 3: expected `object"),
        ({"size": 3}, "size", 3, "spec.size: Invalid value: 3"),
    ],
)
def test_a_value_out_of_bounds_or_of_another_type_is_kept(
    spec: dict[str, Any], attribute: str, value: object, problem: str
) -> None:
    box = read(Box, stored(spec))

    assert getattr(box.spec, attribute) == value
    assert len(problems(box)) == 1
    assert problems(box)[0].startswith(problem)
    assert to_tree(box)["spec"][attribute] == value


def test_a_check_of_the_class_is_a_problem() -> None:
    box = read(Box, stored({"checked": {"low": 12}}))

    assert isinstance(box.spec.checked, Checked)
    assert (box.spec.checked.low, box.spec.checked.high) == (12, 9)
    assert problems(box) == ["spec.checked: Invalid value: low is above high"]


def test_a_required_attribute_that_is_missing_has_the_zero_value_of_its_type() -> None:
    needy = read(Needy, stored({"part": {"image": "nginx"}, "chosen": None}, kind="Needy"))

    assert needy.spec.replicas == 0
    assert needy.spec.mode == ""  # type: ignore[comparison-overlap]
    assert needy.spec.names == []
    assert needy.spec.limit is None
    assert needy.spec.chosen == ""
    assert needy.spec.part.image == "nginx"
    assert needy.spec.part.size == ""
    assert needy.spec.part.every == Duration("0s")
    assert needy.spec.part.memory == Quantity("0")
    assert needy.spec.part.at == datetime(1970, 1, 1, tzinfo=UTC)
    assert "spec.replicas: Required value" in problems(needy)
    assert whole_tree(needy)["spec"] == {"part": {"image": "nginx"}, "chosen": None}


def test_an_object_without_its_spec_is_read() -> None:
    needy = read(Needy, b'{"metadata":{"name":"a"}}')

    assert needy.spec.part.image == ""
    assert problems(needy) == ["spec: Required value"]


def test_a_change_elsewhere_leaves_the_unknown_value_as_it_is() -> None:
    box = read(Box, stored({"size": "huge", "mode": "safe", "more": 1, "parts": [{"name": "x", "shade": "pink"}]}))
    box.spec.mode = "fast"
    box.spec.parts[0].name = "y"

    assert merge_patch_since_read(box) == {
        "spec": {"mode": "fast", "parts": [{"name": "y", "shade": "pink"}]},
    }
    assert whole_tree(box)["spec"] == {
        "size": "huge",
        "mode": "fast",
        "more": 1,
        "parts": [{"name": "y", "shade": "pink"}],
    }


def test_an_object_that_nobody_changed_is_written_as_it_was() -> None:
    spec = {"size": "huge", "weight": "heavy", "parts": [{}]}
    box = read(Box, stored(spec))

    assert merge_patch_since_read(box) == {}
    assert whole_tree(box)["spec"] == spec


def test_a_status_with_an_unknown_value_can_be_written() -> None:
    box = read(Box, stored({"size": "huge"}, {"phase": "Lost", "ready": 1}))
    assert status_patch_since_read(box) == {}

    box.status.ready = 2
    assert status_patch_since_read(box) == {"status": {"ready": 2}}

    box.status.phase = "Ready"
    assert status_patch_since_read(box) == {"status": {"ready": 2, "phase": "Ready"}}


def test_an_unknown_value_can_be_replaced() -> None:
    box = read(Box, stored({"size": "huge"}))
    box.spec.size = Size.LARGE

    assert merge_patch_since_read(box) == {"spec": {"size": "large"}}


def test_a_copy_has_the_same_values_and_problems() -> None:
    box = read(Box, stored({"size": "huge", "weight": "heavy"}))

    copied = copy_of(box)

    assert [copied.spec.size, copied.spec.weight] == ["huge", "heavy"]
    assert problems_of(copied) == problems_of(box)
    assert encode(copied) == encode(box)


def test_metadata_that_does_not_fit_is_no_object() -> None:
    with pytest.raises(DecodeError, match=r"Box a: metadata\.finalizers: expected"):
        read(Box, b'{"metadata":{"name":"a","finalizers":3},"spec":{"size":"huge"}}')


def test_what_a_person_writes_must_fit() -> None:
    with pytest.raises(DecodeError, match=r"Box a: spec\.size: invalid enum value 'huge'"):
        from_tree(Box, {"metadata": {"name": "a"}, "spec": {"size": "huge"}})


def test_enum_of_is_the_member_or_the_value_itself() -> None:
    assert enum_of(Size, "small") is Size.SMALL
    assert enum_of(Size, Shade.DARK) == "dark"
    unknown = read(Box, stored({"size": "huge"})).spec.size
    assert enum_of(Shade, unknown) == unknown  # type: ignore[comparison-overlap]
    assert to_tree(Part(name="x", shade=enum_of(Shade, unknown))) == {"name": "x", "shade": "huge"}


def test_the_zero_of_a_type_without_one_is_none() -> None:
    assert zero_of(object) is None
    assert zero_of(dict[str, int]) == {}
    assert zero_of(int | str) == 0
