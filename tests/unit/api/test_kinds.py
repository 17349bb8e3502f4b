"""What kinds and versions promise. The plurals are controller-gen's."""

from __future__ import annotations

import pytest

from kubewright.api.kinds import (
    GroupKind,
    GroupResource,
    GroupVersion,
    GroupVersionKind,
    GroupVersionResource,
    pluralize,
    version_key,
)
from kubewright.errors import DecodeError

# fmt: off
PLURALS = (
    ("Pod", "pods"), ("Deployment", "deployments"), ("Policy", "policies"),
    ("NetworkPolicy", "networkpolicies"), ("Ingress", "ingresses"), ("Endpoints", "endpoints"),
    ("Gateway", "gateways"), ("Proxy", "proxies"), ("StorageClass", "storageclasses"),
    ("ComponentStatus", "componentstatuses"), ("Index", "indices"), ("ModelBox", "modelboxes"),
    ("PodSet", "podsets"), ("Memcached", "memcacheds"), ("Cache", "caches"), ("Analysis", "analyses"),
    ("Schema", "schemas"), ("Data", "data"), ("Metadata", "metadata"), ("Quota", "quotas"),
    ("Key", "keys"), ("Batch", "batches"), ("Patch", "patches"), ("Hash", "hashes"),
    ("Matrix", "matrices"), ("Axis", "axes"), ("Lease", "leases"), ("Process", "processes"),
    ("Redis", "redis"), ("Kubernetes", "kubernetes"), ("Alias", "aliases"), ("Settings", "settings"),
    ("Metrics", "metrics"), ("Application", "applications"), ("PodBuggerTool", "podbuggertools"),
    ("SidecarSet", "sidecarsets"), ("Query", "queries"), ("Repository", "repositories"),
    ("Canary", "canaries"), ("Mesh", "meshes"), ("Prometheus", "prometheuses"),
    ("Elasticsearch", "elasticsearches"), ("Postgres", "postgres"), ("AnalysisRun", "analysisruns"),
    ("Chassis", "chassis"), ("Leaf", "leaves"), ("Person", "people"), ("Child", "children"),
    ("Life", "lives"), ("Hero", "heroes"), ("Quiz", "quizzes"), ("Queue", "queues"), ("Zoo", "zoos"),
    ("Prefix", "prefixes"), ("Chaos", "chaos"), ("APIService", "apiservices"),
    ("CSIDriver", "csidrivers"), ("Criteria", "criteria"), ("Media", "media"),
)
# fmt: on


@pytest.mark.parametrize(("kind", "plural"), PLURALS)
def test_plural_is_the_one_controller_gen_makes(kind: str, plural: str) -> None:
    assert plural == pluralize(kind)


@pytest.mark.parametrize(("kind", "plural"), [("Video", "videos"), ("DNS", "dns"), ("Repo", "repos")])
def test_plural_is_plain_english_where_controller_gen_is_not(kind: str, plural: str) -> None:
    assert plural == pluralize(kind)


@pytest.mark.parametrize(("text", "group", "version"), [("apps/v1", "apps", "v1"), ("v1", "", "v1")])
def test_api_versions_are_read_and_printed(text: str, group: str, version: str) -> None:
    parsed = GroupVersion.parse(text)

    assert (group, version) == (parsed.group, parsed.version)
    assert text == parsed.api_version == str(parsed)


@pytest.mark.parametrize("text", ["", "/", "apps/", "/v1", "a/b/c"])
def test_what_is_no_api_version_is_refused(text: str) -> None:
    with pytest.raises(DecodeError, match="is not an apiVersion"):
        GroupVersion.parse(text)


def test_kinds_and_resources_know_their_parts() -> None:
    kind = GroupVersionKind.of("apps/v1", "Deployment")
    resource = GroupVersionResource.of("apps/v1", "deployments")

    assert kind == GroupVersionKind("apps", "v1", "Deployment")
    assert kind.api_version == resource.api_version == "apps/v1"
    assert kind.group_version == resource.group_version == GroupVersion("apps", "v1")
    assert kind.group_kind == GroupKind("apps", "Deployment")
    assert resource.group_resource == GroupResource("apps", "deployments")


def test_kinds_and_resources_print_for_people() -> None:
    assert str(GroupVersionKind.of("apps/v1", "Deployment")) == "apps/v1 Deployment"
    assert str(GroupVersionKind.of("v1", "Pod")) == "v1 Pod"
    assert str(GroupVersionResource.of("v1", "pods")) == "v1 pods"
    assert str(GroupKind("apps", "Deployment")) == "Deployment.apps"
    assert str(GroupKind("", "Pod")) == "Pod"
    assert str(GroupResource("networking.k8s.io", "ingresses")) == "ingresses.networking.k8s.io"
    assert str(GroupResource("", "pods")) == "pods"


def test_resources_know_their_path() -> None:
    assert GroupVersionResource.of("v1", "pods").path == "/api/v1/pods"
    assert GroupVersionResource.of("apps/v1", "deployments").path == "/apis/apps/v1/deployments"


@pytest.mark.parametrize("text", ["Pod", "Deployment.apps", "Ingress.networking.k8s.io"])
def test_group_kind_and_group_resource_round_trip(text: str) -> None:
    assert text == str(GroupKind.parse(text))
    assert text == str(GroupResource.parse(text))


def test_a_group_alone_names_no_kind() -> None:
    with pytest.raises(DecodeError, match="names no kind"):
        GroupKind.parse(".apps")
    with pytest.raises(DecodeError, match="names no resource"):
        GroupResource.parse("")


def test_kinds_are_keys() -> None:
    assert {GroupVersionKind("a", "v1", "B"): 1}[GroupVersionKind("a", "v1", "B")] == 1


def test_versions_sort_with_the_preferred_one_first() -> None:
    expected = ["v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1", "foo10"]

    mixed = [*expected[5:], *expected[:5]]

    assert expected == sorted(mixed, key=version_key)
    assert min(["v1beta1", "v1", "v1alpha1"], key=version_key) == "v1"


@pytest.mark.parametrize("text", ["1", "v1gamma1", "v", "vx", "v1beta", "v1beta1x", ""])
def test_unusual_versions_come_last(text: str) -> None:
    assert sorted([text, "v1alpha1"], key=version_key) == ["v1alpha1", text]
