"""Image names and simulated pulls."""

from __future__ import annotations

import pytest

from kubewright.cluster.kubelet.pods.images import full_name, image_id, is_well_formed, pull_error


@pytest.mark.parametrize(
    ("image", "full"),
    [
        ("nginx", "docker.io/library/nginx:latest"),
        ("team/web:1", "docker.io/team/web:1"),
        ("localhost:5000/web", "localhost:5000/web:latest"),
        ("registry.k8s.io/pause:3.10", "registry.k8s.io/pause:3.10"),
        ("web@sha256:" + "a" * 64, "docker.io/library/web@sha256:" + "a" * 64),
    ],
)
def test_a_name_is_completed_as_a_runtime_does(image: str, full: str) -> None:
    assert full_name(image) == full


def test_the_same_image_has_the_same_digest() -> None:
    assert image_id("nginx") == image_id("docker.io/library/nginx:latest")
    assert image_id("nginx") != image_id("nginx:1")
    assert image_id("nginx").startswith("docker.io/library/nginx@sha256:")


@pytest.mark.parametrize("image", ["nginx:does-not-exist", "nonexistent/web", "invalid.example.io/web"])
def test_an_image_with_a_reserved_word_cannot_be_pulled(image: str) -> None:
    error = pull_error(image)

    assert error is not None
    assert error.endswith(f"{full_name(image)}: not found")


def test_other_images_can_be_pulled() -> None:
    assert pull_error("nginx") is None


@pytest.mark.parametrize("image", ["", "UPPER/Case", "web:", "a b", "web::1"])
def test_an_invalid_reference_is_not_well_formed(image: str) -> None:
    assert not is_well_formed(image)


def test_names_with_ports_tags_and_digests_are_well_formed() -> None:
    assert is_well_formed("localhost:5000/team/web_x.y-z:v1.2@sha256:" + "0" * 64)
