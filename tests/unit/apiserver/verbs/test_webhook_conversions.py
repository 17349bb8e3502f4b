"""A decision that needs conversions runs again until all of them are known."""

from __future__ import annotations

from typing import Any, cast

import pytest

from kubewright.apiserver.kinds.resources import Strategy, Tree
from kubewright.apiserver.managedfields.field_manager import Convert
from kubewright.apiserver.verbs.webhook_conversions import with_conversions
from kubewright.apiserver.wire.status_errors import StatusError, status_error


class Rules:
    """Rules whose conversion has to be waited for."""

    def __init__(self, *, slow: bool = True) -> None:
        self.has_conversion_webhook = slow
        self.asked: list[tuple[Tree, str]] = []

    def convert(self, tree: Tree, api_version: str) -> tuple[Tree, Any]:
        return {**tree, "apiVersion": api_version}, "at once"

    async def convert_by_webhook(self, tree: Tree, api_version: str) -> tuple[Tree, Any]:
        self.asked.append((tree, api_version))
        if api_version == "gone":
            raise KeyError(api_version)
        if api_version == "down":
            raise status_error(500, "", "the webhook is down")
        return {**tree, "apiVersion": api_version}, "later"


def rules(*, slow: bool = True) -> tuple[Rules, Strategy]:
    made = Rules(slow=slow)
    return made, cast("Strategy", made)


async def test_each_conversion_is_asked_for_once_also_of_what_was_made_on_the_way() -> None:
    made, given = rules()
    begun = 0

    def decide(convert: Convert) -> str:
        nonlocal begun
        begun += 1
        there, _ = convert({"apiVersion": "v1", "spec": 1}, "v2")
        again, _ = convert({"apiVersion": "v1", "spec": 1}, "v2")
        back, kind = convert({**there, "spec": 2}, "v1")
        assert again == there
        return f"{back} {kind}"

    assert await with_conversions(given, decide) == "{'apiVersion': 'v1', 'spec': 2} later"
    assert [version for _, version in made.asked] == ["v2", "v1"]
    assert begun == 3


async def test_a_version_that_is_no_more_is_a_lookup_error_inside_the_decision() -> None:
    _, given = rules()

    def decide(convert: Convert) -> str:
        try:
            convert({"apiVersion": "v1"}, "gone")
        except LookupError:
            return "left out"
        return "found"

    assert await with_conversions(given, decide) == "left out"


async def test_a_webhook_that_fails_fails_the_decision() -> None:
    _, given = rules()

    with pytest.raises(StatusError, match="the webhook is down"):
        await with_conversions(given, lambda convert: convert({"apiVersion": "v1"}, "down"))


async def test_without_a_webhook_nothing_is_waited_for() -> None:
    made, given = rules(slow=False)

    assert await with_conversions(given, lambda convert: str(convert({"apiVersion": "v1"}, "v2")[1])) == "at once"
    assert made.asked == []
