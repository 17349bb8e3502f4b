"""Which part of an image reference is the repository."""

import pytest

from application.images import repository_of


@pytest.mark.parametrize(
    ("image", "repository"),
    [
        ("nginx", "nginx"),
        ("nginx:1.29", "nginx"),
        ("library/nginx:Stable", "library/nginx"),
        ("registry.example.io/shop/web:v1", "shop/web"),
        ("Registry.Example.IO:5000/shop/web", "shop/web"),
        ("localhost/web@sha256:ABCDEF", "web"),
        ("localhost:5000/web:V1@sha256:ABCDEF", "web"),
    ],
)
def test_registry_tag_and_digest_are_no_part_of_it(image: str, repository: str) -> None:
    assert repository_of(image) == repository
