"""Memcached: the kind as a class."""

from typing import Annotated

from kubewright import Field, Resource, Spec, Status


class MemcachedSpec(Spec):
    """What people ask for."""

    size: Annotated[int, Field(ge=1, le=5)] = 1
    """How many pods to keep."""
    container_port: Annotated[int, Field(ge=1, le=65535)] = 11211
    """Where they listen."""


class MemcachedStatus(Status):
    """What is there; brings observedGeneration and conditions."""

    nodes: Annotated[list[str], Field(list_type="set")] = []
    """The names of the pods that are ready."""


class Memcached(
    Resource[MemcachedSpec, MemcachedStatus],
    group="cache.example.com",
    version="v1alpha1",
    columns={"Size": ".spec.size", "Nodes": ".status.nodes"},
    object_names=Field(max_length=52),  # leaves room for the suffixes of its pods
):
    """A number of memcached pods."""
