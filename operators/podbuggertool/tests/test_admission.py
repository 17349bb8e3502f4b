"""What is filled in and what is refused before a tool is stored."""

import json
from typing import Any

import pytest
from kubewright import FieldErrors
from kubewright.errors import Invalid
from kubewright.k8s.meta.v1 import LabelSelector

from podbuggertool.api.v1alpha1.podbuggertool import PodBuggerTool, PodBuggerToolSpec
from podbuggertool.validation import check
from podbuggertool.webhooks.v1alpha1.podbuggertool import default_podbuggertool, validate_podbuggertool
from tests.home import Home, Kubectl


async def post(home: Home, **spec: Any) -> dict[str, Any]:
    """Send a tool as a user might have written it; what was stored."""
    body = {"apiVersion": "apps.jicki.cn/v1alpha1", "kind": "PodBuggerTool", "metadata": {"name": "debug"}}
    path = f"/apis/apps.jicki.cn/v1alpha1/namespaces/{home.namespace}/podbuggertools"
    answer = await home.client.request("POST", path, body=json.dumps(body | {"spec": spec}).encode())
    stored: dict[str, Any] = json.loads(answer.body)["spec"]
    return stored


async def test_what_is_left_out_is_filled_in(home: Home) -> None:
    stored = await post(home, label="app=web", image="tools:1")

    assert stored == {
        "label": "app=web",
        "image": "tools:1",
        "command": ["sh"],
        "args": [],
        "env": [],
        "stdin": True,
        "tty": True,
        "imagePullPolicy": "IfNotPresent",
        "targetContainer": "None",
        "waitFor": "Running",
        "suspend": False,
        "maxPods": 0,
    }


async def test_without_stdin_there_is_no_terminal(home: Home) -> None:
    stored = await post(home, label="app=web", image="tools:1", stdin=False)

    assert (stored["stdin"], stored["tty"]) == (False, False)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        pytest.param({"label": "app"}, "spec.label", id="a key alone"),
        pytest.param({"label": "a=b=c"}, "spec.label", id="two values"),
        pytest.param({"label": "=x"}, "spec.label", id="no key"),
        pytest.param({"label": "-a=x"}, "spec.label", id="an illegal key"),
        pytest.param({"label": "a=x y"}, "spec.label", id="an illegal value"),
        pytest.param({"label": f"{'a' * 64}=x"}, "spec.label", id="a key that is too long"),
        pytest.param({"label": f"a={'x' * 64}"}, "spec.label", id="a value that is too long"),
        pytest.param({"label": f"{'a' * 254}/a=x"}, "spec.label", id="a prefix that is too long"),
        pytest.param({}, "spec", id="neither label nor selector"),
        pytest.param({"label": "a=b", "selector": {"matchLabels": {"a": "b"}}}, "spec", id="both"),
        pytest.param({"selector": {}}, "spec.selector", id="an empty selector"),
        pytest.param({"selector": {"matchLabels": {}}}, "spec.selector", id="a selector without labels"),
        pytest.param(
            {"selector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}},
            "spec.selector",
            id="an unknown operator",
        ),
        pytest.param({"label": "a=b", "image": "two words"}, "spec.image", id="an image with a space"),
        pytest.param({"label": "a=b", "image": ""}, "spec.image", id="an empty image"),
        pytest.param({"label": "a=b", "image": None}, "spec.image", id="no image"),
        pytest.param({"label": "a=b", "tty": True, "stdin": False}, "spec.tty", id="a terminal without stdin"),
        pytest.param({"label": "a=b", "containerName": "Not_A_Name"}, "spec.containerName", id="an illegal name"),
        pytest.param({"label": "a=b", "maxPods": -1}, "spec.maxPods", id="fewer than no pods"),
        pytest.param({"label": "a=b", "waitFor": "Someday"}, "spec.waitFor", id="waiting for what never comes"),
        pytest.param({"label": "a=b", "targetContainer": "Last"}, "spec.targetContainer", id="an unknown target"),
    ],
)
async def test_what_cannot_work_is_refused_and_the_field_is_named(home: Home, spec: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as refused:
        await post(home, **{"image": "tools:1"} | spec)

    assert field in {cause.field for cause in refused.value.causes}


async def test_all_faults_are_named_together(home: Home) -> None:
    await home.tool(container_name="mine", selector={"matchLabels": {"app": "web"}})

    with pytest.raises(Invalid) as refused:
        await home.change(image="tools:2", selector=LabelSelector(match_labels={}))

    assert {cause.field for cause in refused.value.causes} == {"spec.selector", "spec.containerName"}


async def test_a_chosen_name_must_change_with_the_container(home: Home) -> None:
    await home.tool(container_name="mine")

    with pytest.raises(Invalid, match=r"spec\.containerName: .* must be changed too"):
        await home.change(image="tools:2")

    changed = await home.change(image="tools:2", container_name="mine-2")
    assert changed.spec.container_name == "mine-2"


async def test_a_chosen_name_may_stay_while_the_container_does(home: Home) -> None:
    await home.tool(container_name="mine")

    changed = await home.change(max_pods=3, label="app=other")

    assert changed.spec.max_pods == 3


async def test_whoever_matches_many_pods_is_warned(home: Home, kubectl: Kubectl, tmp_path: Any) -> None:
    for number in range(51):
        await home.pod(f"web-{number}")
    manifest = tmp_path / "tool.yaml"
    manifest.write_text(
        "apiVersion: apps.jicki.cn/v1alpha1\nkind: PodBuggerTool\nmetadata: {name: debug}\n"
        "spec: {label: app=web, image: 'tools:1', suspend: false}\n"
    )

    told = await kubectl("apply", "-f", str(manifest), "-n", home.namespace, "--dry-run=server")

    assert "Warning: more than 50 pods match" in told
    manifest.write_text(manifest.read_text().replace("suspend: false", "maxPods: 3"))
    assert "Warning" not in await kubectl("apply", "-f", str(manifest), "-n", home.namespace, "--dry-run=server")


async def test_kubectl_shows_the_numbers(home: Home, kubectl: Kubectl) -> None:
    await home.running_pod()
    await home.tool()
    await home.counted(matched=1, installed=1, running=1)

    shown = (await kubectl("get", "pbt", "-n", home.namespace)).splitlines()

    assert shown[0].split() == ["NAME", "LABEL", "IMAGE", "MATCHED", "INSTALLED", "RUNNING", "AGE"]
    assert shown[1].split()[:6] == ["debug", "app=web", "tools:1", "1", "1", "1"]


def a_tool(**spec: Any) -> PodBuggerTool:
    return PodBuggerTool.named("debug", "shop", spec=PodBuggerToolSpec(**{"image": "tools:1"} | spec))


def test_defaults_are_filled_in_without_a_webhook_and_leave_the_object_alone() -> None:
    stored = a_tool(label="app=web")

    filled = default_podbuggertool.defaulted(stored)

    assert (filled.spec.command, filled.spec.stdin, filled.spec.tty) == (["sh"], True, True)
    assert stored.spec.command is None


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({}, "spec"),
        ({"label": "app"}, "spec.label"),
        ({"label": "=x"}, "spec.label"),
        ({"label": "a=b", "tty": True, "stdin": False}, "spec.tty"),
    ],
)
def test_the_rules_hold_without_a_webhook(spec: dict[str, Any], path: str) -> None:
    assert [error.path for error in validate_podbuggertool.check(a_tool(**spec))] == [path]


def test_a_tool_may_be_all_right() -> None:
    errors = FieldErrors()

    check(a_tool(label="example.io/app=web", stdin=True), None, errors)

    assert not errors


def test_a_spec_that_is_not_touched_is_not_validated_again() -> None:
    stored, edited = a_tool(label="app"), a_tool(label="app", max_pods=3)

    assert not validate_podbuggertool.check(a_tool(label="app"), old=stored)
    assert [error.path for error in validate_podbuggertool.check(edited, old=stored)] == ["spec.label"]
