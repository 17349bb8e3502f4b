"""assert_round_trip finds what conversion loses, and made-up objects fit their schemas."""

from __future__ import annotations

from random import Random
from typing import Annotated, Any

import pytest

from kubewright import Duration, Field, IntOrString, Model, Quantity, Resource, Spec, Status, convert
from kubewright.api.codec import to_tree
from kubewright.generate.crds.manifests import crd_for
from kubewright.schema.builder.builder import schema_for_kind
from kubewright.schema.check.validation import compile_schema
from kubewright.testing import assert_round_trip, round_trips
from kubewright.testing.examples import example_of

GROUP = "trips.example.io"


class Port(Model):
    name: Annotated[str, Field(pattern="^[a-z]+$")]
    number: Annotated[int, Field(ge=1, le=65535)]


class OldSpec(Spec):
    size: Annotated[int, Field(ge=0, le=10)] = 1
    ports: Annotated[list[Port], Field(list_type="map", list_map_keys=("name",))] = []
    memory: Quantity | None = None
    grace: Duration | None = None
    target: IntOrString | None = None
    labels: dict[str, str] = {}


class NewSpec(Spec):
    replicas: Annotated[int, Field(ge=0, le=10)] = 1
    ports: Annotated[list[Port], Field(list_type="map", list_map_keys=("name",))] = []
    memory: Quantity | None = None
    grace: Duration | None = None
    target: IntOrString | None = None
    labels: dict[str, str] = {}


def versions(*, lossy: bool = False, leaves: bool = False) -> tuple[Any, Any]:
    """Two versions with converters of their own, which may lose something."""

    class Old(Resource[OldSpec, Status], group=GROUP, version="v1alpha1", kind="Trip", storage=False):
        """As it was."""

    class New(Resource[NewSpec, Status], group=GROUP, version="v1", kind="Trip"):
        """As it is."""

    @convert(Old, New)
    def up(old: Old) -> New:
        spec = NewSpec(
            replicas=old.spec.size,
            ports=old.spec.ports[:2] if lossy else old.spec.ports,
            memory=old.spec.memory,
            grace=old.spec.grace,
            target=old.spec.target,
            labels=old.spec.labels,
        )
        return New(spec=spec, status=old.status)

    @convert(New, Old)
    def down(new: New) -> Old:
        spec = OldSpec(
            size=new.spec.replicas,
            ports=new.spec.ports,
            memory=new.spec.memory,
            grace=new.spec.grace,
            target=new.spec.target,
            labels=new.spec.labels,
        )
        old = Old(spec=spec, status=new.status)
        if leaves:
            old.metadata.annotations["left"] = "behind"
        return old

    return Old, New


@pytest.fixture(params=["with hypothesis", "without"])
def _search(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "without":
        monkeypatch.setattr(round_trips, "_can_search", lambda: False)


@pytest.mark.usefixtures("_search")
def test_a_lossless_conversion_passes() -> None:
    assert_round_trip(*versions(), count=30)


@pytest.mark.usefixtures("_search")
def test_a_loss_is_found_and_shown() -> None:
    with pytest.raises(AssertionError, match="Trip does not come back from") as caught:
        assert_round_trip(*versions(lossy=True))

    assert "'ports'" in str(caught.value)


def test_annotations_left_behind_are_no_loss() -> None:
    assert_round_trip(*versions(leaves=True), count=30)


def test_examples_are_tried_first_and_objects_can_be_left_out() -> None:
    old, new = versions(lossy=True)
    ports = [Port(name=name, number=1) for name in "abc"]

    assert_round_trip(old, new, when=lambda obj: len(obj.spec.ports) < 3, count=30)
    with pytest.raises(AssertionError, match="does not come back"):
        assert_round_trip(old, new, examples=[old.named("x", spec=OldSpec(ports=ports))], count=0)


def test_a_condition_that_lets_no_object_through_is_a_failure_and_not_a_success() -> None:
    old, new = versions(lossy=True)

    with pytest.raises(AssertionError, match=rf"no {old.__name__} of {GROUP}/\S+ was tried: when= lets none"):
        assert_round_trip(old, new, when=lambda obj: False, count=5)


def test_a_made_up_object_is_the_same_each_time_unless_chance_is_asked_for() -> None:
    old, _ = versions()

    assert to_tree(example_of(old)) == to_tree(example_of(old))
    assert len({str(to_tree(example_of(old, Random(seed)))) for seed in range(20)}) > 1


def test_a_converter_that_is_missing_is_said() -> None:
    class Alone(Resource[OldSpec, Status], group=GROUP, version="v1beta1", kind="Trip", storage=False):
        """Nobody converts it."""

    with pytest.raises(AssertionError, match="declare @convert between two of their versions"):
        assert_round_trip(Alone, versions()[1], count=1)


def test_made_up_objects_are_valid_and_differ() -> None:
    old, new = versions()
    validator = compile_schema(schema_for_kind(old))
    trees = [to_tree(example_of(old, Random(seed))) for seed in range(100)]

    for tree in trees:
        assert validator.check(tree) == [], tree
    assert len({str(tree) for tree in trees}) > 50
    assert crd_for(old, new)["spec"]["group"] == GROUP
