"""What endpoints may not own."""

from __future__ import annotations

from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.managedfields.field_sets import FieldSet
from kubewright.apiserver.managedfields.reset_fields import (
    ResetInRequestVersion,
    filter_fields,
    reset_fields_of_custom_kind,
    reset_fields_of_kind,
)

POD = GroupVersionKind("", "v1", "Pod")
BOTH: FieldSet = {"f:spec": {"f:nodeName": {}}, "f:status": {"f:phase": {}}, "f:metadata": {"f:labels": {}}}


def test_the_main_endpoint_does_not_own_the_status() -> None:
    assert set(filter_fields(BOTH, reset_fields_of_kind(POD), request_version=True)) == {"f:spec", "f:metadata"}


def test_the_status_endpoint_does_not_own_the_spec() -> None:
    assert set(filter_fields(BOTH, reset_fields_of_kind(POD, "status"), request_version=True)) == {
        "f:status",
        "f:metadata",
    }


def test_some_status_endpoints_do_not_own_metadata_either() -> None:
    claim = GroupVersionKind("resource.k8s.io", "v1", "ResourceClaim")
    assert set(filter_fields(BOTH, reset_fields_of_kind(claim, "status"), request_version=True)) == {"f:status"}
    labelled = filter_fields(
        BOTH, reset_fields_of_kind(GroupVersionKind("apps", "v1", "Deployment"), "status"), request_version=True
    )
    assert set(labelled) == {"f:status"}


def test_a_kind_without_a_status_owns_everything() -> None:
    assert (
        filter_fields(BOTH, reset_fields_of_kind(GroupVersionKind("", "v1", "ConfigMap")), request_version=True) == BOTH
    )


def test_resize_owns_resources_and_their_parents() -> None:
    item: FieldSet = {".": {}, "f:image": {}, "f:resources": {".": {}, "f:limits": {}}}
    fields: FieldSet = {"f:spec": {"f:containers": {'k:{"name":"a"}': item}, "f:nodeName": {}}, "f:metadata": {}}
    kept = filter_fields(fields, reset_fields_of_kind(POD, "resize"), request_version=True)
    assert kept == {"f:spec": {"f:containers": {'k:{"name":"a"}': {".": {}, "f:resources": {".": {}, "f:limits": {}}}}}}


def test_each_endpoint_of_a_signing_request_owns_its_own_part() -> None:
    request = GroupVersionKind("certificates.k8s.io", "v1", "CertificateSigningRequest")
    status: FieldSet = {"f:certificate": {}, "f:conditions": {}}
    fields: FieldSet = {"f:spec": {"f:usages": {}}, "f:status": status, "f:metadata": {"f:labels": {}}}

    assert set(filter_fields(fields, reset_fields_of_kind(request), request_version=True)) == {"f:metadata"}
    approved = filter_fields(fields, reset_fields_of_kind(request, "approval"), request_version=True)
    assert approved == {"f:status": {"f:conditions": {}}, "f:metadata": {"f:labels": {}}}


def test_the_endpoint_of_ephemeral_containers_owns_nothing_else() -> None:
    added: FieldSet = {"f:ephemeralContainers": {".": {}, 'k:{"name":"a"}': {}}}
    fields: FieldSet = {"f:spec": {**added, "f:nodeName": {}}, "f:metadata": {}}

    kept = filter_fields(fields, reset_fields_of_kind(POD, "ephemeralcontainers"), request_version=True)
    assert kept == {"f:spec": added}


def test_the_main_endpoint_of_a_custom_resource_resets_the_status_in_its_own_version_only() -> None:
    reset = reset_fields_of_custom_kind(has_status=True)
    assert isinstance(reset, ResetInRequestVersion)
    assert "f:status" not in filter_fields(BOTH, reset, request_version=True)
    assert "f:status" in filter_fields(BOTH, reset, request_version=False)
    assert reset_fields_of_custom_kind(has_status=False) == {}
