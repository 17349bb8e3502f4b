"""Pods get their container: those that are there, those that come, those whose label changes."""

import json

from kubewright import ObjectMeta
from kubewright.k8s.core.v1 import Container, EphemeralContainer, Pod, PodSchedulingGate, PodSpec
from kubewright.k8s.meta.v1 import LabelSelector, LabelSelectorRequirement

from podbuggertool.container import container_name
from tests.home import Home, condition


async def test_pods_that_are_there_are_served_when_a_tool_comes(home: Home) -> None:
    await home.running_pod()
    await home.running_pod("other", app="other")
    tool = await home.tool()

    seen = await home.counted(matched=1, installed=1, running=1)

    assert await home.containers() == [container_name(tool)]
    assert await home.containers("other") == []
    assert [condition(seen, kind).status for kind in ("Ready", "Degraded", "Suspended")] == ["True", "False", "False"]


async def test_a_pod_that_comes_later_is_served(home: Home) -> None:
    tool = await home.tool()
    await home.pod()

    assert await home.served() == [container_name(tool)]


async def test_the_container_is_what_the_tool_says(home: Home) -> None:
    await home.running_pod()
    await home.tool(
        image="registry.example/tools/net:1.2", args=["-l"], env=[{"name": "A", "value": "b"}], target_container="First"
    )
    await home.served()

    (added,) = list((await home.client.get(Pod, home.key("web"))).spec.ephemeral_containers or ())

    assert added.name.startswith("pbt-debug-")
    assert (added.image, added.command, added.args) == ("registry.example/tools/net:1.2", ["sh"], ["-l"])
    assert (added.stdin, added.tty, added.image_pull_policy) == (True, True, "IfNotPresent")
    assert added.target_container_name == "main"
    assert [(variable.name, variable.value) for variable in added.env or ()] == [("A", "b")]
    assert (added.ports, added.liveness_probe, added.lifecycle) == (None, None, None)


async def test_a_label_that_is_added_to_a_running_pod_has_it_served(home: Home) -> None:
    await home.running_pod(app=None)
    tool = await home.tool()
    await home.counted(matched=0, installed=0)

    await home.relabel("web", app="web")

    assert await home.served() == [container_name(tool)]


async def test_a_pod_that_loses_the_label_is_not_counted_and_keeps_its_container(home: Home) -> None:
    await home.running_pod()
    tool = await home.tool()
    await home.counted(matched=1, installed=1)

    await home.relabel("web", app="elsewhere")

    await home.counted(matched=0, installed=0)
    assert await home.containers() == [container_name(tool)]


async def test_a_selector_finds_what_a_label_cannot(home: Home) -> None:
    await home.running_pod("one", app="one")
    await home.running_pod("two", app="two")
    either = LabelSelectorRequirement(key="app", operator="In", values=["one", "two"])
    await home.tool(selector=LabelSelector(match_expressions=[either]))

    await home.counted(matched=2, installed=2)

    await home.running_pod("three", app="three")
    await home.relabel("three", app="two")
    await home.counted(matched=3, installed=3)


async def test_a_selector_with_labels_is_woken_by_one_of_them(home: Home) -> None:
    tool = await home.tool(selector=LabelSelector(match_labels={"app": "web", "tier": "front"}))
    await home.running_pod()
    await home.running_pod("front")

    await home.relabel("front", app="web", tier="front")

    assert await home.served("front") == [container_name(tool)]
    assert await home.containers() == []


async def test_a_pod_that_crashes_again_and_again_is_served(home: Home) -> None:
    await home.pod(command="false")
    tool = await home.tool()

    assert await home.served() == [container_name(tool)]


async def test_a_pod_that_is_not_ready_is_served_only_if_that_is_enough(home: Home) -> None:
    await home.running_pod(ready="false")
    await home.tool("patient", wait_for="Ready")
    tool = await home.tool("eager")
    await home.counted("patient", matched=1, installed=0)
    assert await home.served() == [container_name(tool)]

    pod = await home.client.get(Pod, home.key("web"))
    pod.metadata.annotations["simulation.kubewright.io/ready"] = "true"
    await home.client.patch(pod)

    await home.counted("patient", matched=1, installed=1)


async def test_a_pending_pod_is_served_when_it_runs_and_nobody_asks_before(home: Home) -> None:
    await home.tool()
    gate = PodSchedulingGate(name="tests.example.io/wait")
    waiting = PodSpec(containers=[Container(name="main", image="busybox")], scheduling_gates=[gate])
    metadata = ObjectMeta(name="web", namespace=home.namespace, labels={"app": "web"})
    late = await home.client.create(Pod(metadata=metadata, spec=waiting))
    await home.counted(matched=1, installed=0)
    since = len(home.faults.requests)
    await home.client.patch_by_name(Pod, late.key, {"spec": {"schedulingGates": None}})

    await home.served()

    assert late.status.phase == "Pending"
    assert len(home.writes(since, "/ephemeralcontainers")) == 1


async def test_pods_of_other_namespaces_are_left_alone(home: Home) -> None:
    elsewhere = await Home.new(home.operator)
    await elsewhere.running_pod()
    await home.running_pod()
    await home.tool()

    await home.counted(matched=1, installed=1)

    assert await elsewhere.containers() == []


async def test_a_pod_that_says_no_is_left_alone(home: Home) -> None:
    await home.running_pod(debug="disabled")
    await home.running_pod("willing")
    await home.tool()

    await home.counted(matched=1, installed=1)

    assert await home.containers() == []


async def test_ephemeral_containers_of_others_are_kept(home: Home) -> None:
    pod = await home.running_pod()
    foreign = EphemeralContainer(name="mine", image="busybox", command=["sleep", "9"])
    patch = {"spec": {"ephemeralContainers": [foreign]}}
    await home.client.patch_by_name(Pod, pod.key, patch, patch_type="strategic", subresource="ephemeralcontainers")
    tool = await home.tool()

    assert sorted(await home.served(by=2)) == ["mine", container_name(tool)]


async def test_several_tools_each_add_their_own(home: Home) -> None:
    await home.running_pod()
    first, second = await home.tool("first"), await home.tool("second")

    assert sorted(await home.served(by=2)) == sorted((container_name(first), container_name(second)))


async def test_several_labels_of_one_pod_each_count(home: Home) -> None:
    await home.running_pod()
    await home.relabel("web", app="web", tier="front")
    await home.tool("app")
    await home.tool("tier", label="tier=front")

    names = await home.served(by=2)

    assert len(names) == 2
    assert len(set(names)) == 2


async def test_a_tool_that_changes_adds_a_second_container(home: Home) -> None:
    await home.running_pod()
    before = await home.tool()
    await home.counted(matched=1, installed=1)

    after = await home.change(image="tools:2")

    assert sorted(await home.served(by=2)) == sorted((container_name(before), container_name(after)))
    await home.counted(matched=1, installed=1)


async def test_a_suspended_tool_serves_nobody_and_goes_on_counting(home: Home) -> None:
    await home.running_pod()
    await home.tool(suspend=True)
    seen = await home.counted(matched=1, installed=0)
    assert condition(seen, "Suspended").status == "True"

    await home.change(suspend=False)

    await home.counted(matched=1, installed=1)


async def test_a_deleted_tool_leaves_its_containers_and_is_gone_at_once(home: Home) -> None:
    await home.running_pod()
    tool = await home.tool()
    await home.counted(matched=1, installed=1)

    assert await home.client.delete(tool) is None

    assert await home.containers() == [container_name(tool)]


async def test_an_ended_container_is_not_replaced(home: Home) -> None:
    await home.running_pod()
    await home.tool(command=["true"])

    await home.counted(matched=1, installed=1)
    ended = await home.pod_until(
        lambda pod: any(one.state and one.state.terminated for one in pod.status.ephemeral_container_statuses or ())
    )

    await home.counted(matched=1, installed=1, running=0)
    assert len(ended.spec.ephemeral_containers or ()) == 1
    assert len(await home.containers()) == 1


async def test_at_most_so_many_pods_hold_the_container_the_oldest_first(home: Home) -> None:
    for number in range(4):
        await home.running_pod(f"web-{number}")
    await home.tool(max_pods=2)

    seen = await home.counted(matched=4, installed=2)

    held = [name for name in (f"web-{number}" for number in range(4)) if await home.containers(name)]
    assert held == ["web-0", "web-1"]
    assert condition(seen, "Ready").status == "True"


async def test_a_pod_that_leaves_makes_room_for_the_next(home: Home) -> None:
    for number in range(3):
        await home.running_pod(f"web-{number}")
    await home.tool(max_pods=2)
    await home.counted(matched=3, installed=2)

    await home.client.delete(Pod, home.key("web-0"), grace_period=0)

    await home.served("web-2")


async def test_the_limit_holds_while_pods_come_in_crowds(home: Home) -> None:
    await home.tool(max_pods=5)
    for number in range(20):
        await home.pod(f"web-{number}")

    await home.counted(matched=20, installed=5, running=5)

    assert len(home.writes(path="/ephemeralcontainers")) == 5


async def test_pods_that_do_not_start_hold_nobody_up(home: Home) -> None:
    await home.tool()
    for number in range(8):
        await home.pod(f"slow-{number}", **{"simulation.kubewright.io/start-delay": "60"})

    await home.running_pod()

    await home.served()
    await home.counted(matched=9, installed=1)


async def test_what_is_sent_is_one_entry_for_this_very_pod(home: Home) -> None:
    pod = await home.running_pod()
    tool = await home.tool()
    await home.counted(matched=1, installed=1)

    (sent,) = home.writes(path="/ephemeralcontainers")

    body = json.loads(sent.body or b"")
    assert sent.path == f"/api/v1/namespaces/{home.namespace}/pods/web/ephemeralcontainers"
    assert dict(sent.headers)["Content-Type"] == "application/strategic-merge-patch+json"
    assert body["metadata"] == {"uid": pod.metadata.uid}
    assert list(body["spec"]) == ["ephemeralContainers"]
    assert [entry["name"] for entry in body["spec"]["ephemeralContainers"]] == [container_name(tool)]


async def test_the_status_is_written_as_a_status_and_nothing_else_of_the_tool(home: Home) -> None:
    await home.running_pod()
    await home.tool()
    await home.counted(matched=1, installed=1, running=1)

    written = {request.path.rpartition("/debug")[2] for request in home.writes(path="/podbuggertools/")}

    assert written == {"/status"}
