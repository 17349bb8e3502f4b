"""What two sets for one pod may not have in common."""

from datetime import UTC, datetime

from kubewright import FieldErrors
from made import LOG, a_set

from sidecarset.api.v1alpha1.sidecarset import SidecarSet
from sidecarset.clashes import check_others

MOUNTED = {**LOG, "volumeMounts": [{"name": "data", "mountPath": "/data"}]}


def clashes(sidecarset: SidecarSet, *others: SidecarSet) -> list[str]:
    errors = FieldErrors()
    check_others(sidecarset, others, errors)
    return [error.path for error in errors]


def test_two_sets_bring_no_container_of_the_same_name_to_one_pod() -> None:
    assert clashes(a_set("b"), a_set("a")) == ["spec.containers[0].name"]


def test_an_init_container_counts_as_well() -> None:
    init = a_set("b", containers=[], initContainers=[LOG])

    assert clashes(init, a_set("a")) == ["spec.initContainers[0].name"]
    assert clashes(a_set("a"), init) == ["spec.containers[0].name"]


def test_sets_for_different_pods_or_namespaces_are_free() -> None:
    assert clashes(a_set("b"), a_set("a", selector={"matchLabels": {"app": "other"}})) == []
    teams = [{"matchLabels": {"team": team}} for team in "xy"]
    assert clashes(a_set("b", namespaceSelector=teams[0]), a_set("a", namespaceSelector=teams[1])) == []


def test_a_set_does_not_clash_with_itself_nor_with_a_terminating_one() -> None:
    terminating = a_set("a")
    terminating.metadata.deletion_timestamp = datetime.now(UTC)

    assert clashes(a_set("b"), a_set("b"), terminating) == []


def test_a_volume_may_be_shared_if_it_is_the_same() -> None:
    one = a_set("a", containers=[MOUNTED], volumes=[{"name": "data", "configMap": {"name": "x"}}])
    names = {"containers": [{**MOUNTED, "name": "other"}]}
    same = a_set("b", volumes=[{"name": "data", "configMap": {"name": "x", "defaultMode": 420}}], **names)
    different = a_set("c", volumes=[{"name": "data", "emptyDir": {}}], **names)

    assert clashes(same, one) == []
    assert clashes(different, one) == ["spec.volumes[0].name"]


def test_a_set_with_a_broken_selector_is_in_nobodys_way() -> None:
    broken = a_set("a", selector={"matchExpressions": [{"key": "a", "operator": "Like"}]})

    assert clashes(a_set("b"), broken) == []
    assert clashes(broken, a_set("b")) == []
