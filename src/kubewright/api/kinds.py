"""Group, version, kind and resource: the names of an API.

`apps/v1` is a group and version; with a kind it names what an object is (`Deployment`), with a resource it names where
it is served (`deployments`). All are plain frozen values, usable as dictionary keys. Only the server or the class knows
which kind is served as which resource; `pluralize` guesses, as the CRD generators do.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from kubewright.errors import DecodeError

__all__ = (
    "GroupKind",
    "GroupResource",
    "GroupVersion",
    "GroupVersionKind",
    "GroupVersionResource",
    "pluralize",
    "version_key",
)


class GroupVersion(Struct, frozen=True, order=True, gc=False):
    """`apps/v1`, or `v1` for the core group, whose name is empty."""

    group: str
    version: str

    @classmethod
    def parse(cls, api_version: str) -> GroupVersion:
        """From the apiVersion of an object."""
        group, slash, version = api_version.rpartition("/")
        if not version or "/" in group or bool(slash) != bool(group):
            raise DecodeError(f"{api_version!r} is not an apiVersion: write group/version, or v1 for the core group")
        return cls(group, version)

    @property
    def api_version(self) -> str:
        """As in the apiVersion of an object."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def with_kind(self, kind: str) -> GroupVersionKind:
        """This group and version, and a kind."""
        return GroupVersionKind(self.group, self.version, kind)

    def with_resource(self, resource: str) -> GroupVersionResource:
        """This group and version, and a resource."""
        return GroupVersionResource(self.group, self.version, resource)

    def __str__(self) -> str:
        return self.api_version


class GroupKind(Struct, frozen=True, order=True, gc=False):
    """A kind in any version: `Deployment.apps`."""

    group: str
    kind: str

    @classmethod
    def parse(cls, text: str) -> GroupKind:
        """From `Deployment.apps`, or `Pod` in the core group."""
        kind, _, group = text.partition(".")
        if not kind:
            raise DecodeError(f"{text!r} names no kind: write Kind.group, or Kind for the core group")
        return cls(group, kind)

    def __str__(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind


class GroupResource(Struct, frozen=True, order=True, gc=False):
    """A resource in any version: `deployments.apps`."""

    group: str
    resource: str

    @classmethod
    def parse(cls, text: str) -> GroupResource:
        """From `deployments.apps`, or `pods` in the core group."""
        resource, _, group = text.partition(".")
        if not resource:
            raise DecodeError(f"{text!r} names no resource: write resource.group, or resource for the core group")
        return cls(group, resource)

    def __str__(self) -> str:
        return f"{self.resource}.{self.group}" if self.group else self.resource


class GroupVersionKind(Struct, frozen=True, order=True, gc=False):
    """What an object is: `apps/v1 Deployment`."""

    group: str
    version: str
    kind: str

    @classmethod
    def of(cls, api_version: str, kind: str) -> GroupVersionKind:
        """From the two fields every object has."""
        return GroupVersion.parse(api_version).with_kind(kind)

    @property
    def api_version(self) -> str:
        """As in the apiVersion of an object."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_version(self) -> GroupVersion:
        """Without the kind."""
        return GroupVersion(self.group, self.version)

    @property
    def group_kind(self) -> GroupKind:
        """Without the version."""
        return GroupKind(self.group, self.kind)

    def __str__(self) -> str:
        return f"{self.api_version} {self.kind}"


class GroupVersionResource(Struct, frozen=True, order=True, gc=False):
    """Where objects are served: `apps/v1 deployments`."""

    group: str
    version: str
    resource: str

    @classmethod
    def of(cls, api_version: str, resource: str) -> GroupVersionResource:
        """From an apiVersion and the plural name."""
        return GroupVersion.parse(api_version).with_resource(resource)

    @property
    def api_version(self) -> str:
        """As in the apiVersion of an object."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_version(self) -> GroupVersion:
        """Without the resource."""
        return GroupVersion(self.group, self.version)

    @property
    def group_resource(self) -> GroupResource:
        """Without the version."""
        return GroupResource(self.group, self.resource)

    @property
    def path(self) -> str:
        """The path on the API server, without a namespace: `/apis/apps/v1/deployments`."""
        return f"/apis/{self.api_version}/{self.resource}" if self.group else f"/api/{self.version}/{self.resource}"

    def __str__(self) -> str:
        return f"{self.api_version} {self.resource}"


# Words whose plural follows no rule below, kept to those that are plausible ends of a kind's name.
_IRREGULAR: Final = {
    "alias": "aliases",
    "appendix": "appendices",
    "axis": "axes",
    "child": "children",
    "criterion": "criteria",
    "echo": "echoes",
    "gas": "gases",
    "half": "halves",
    "hero": "heroes",
    "index": "indices",
    "leaf": "leaves",
    "life": "lives",
    "matrix": "matrices",
    "person": "people",
    "quiz": "quizzes",
    "shelf": "shelves",
    "vertex": "vertices",
}
_UNCHANGED: Final = ("chassis", "criteria", "data", "equipment", "information", "media")
_TAKES_ES: Final = ("ss", "us", "sh", "ch", "x", "z")


def pluralize(kind: str) -> str:
    """The likely resource name of a kind: `NetworkPolicy` -> `networkpolicies`.

    English plurals as the CRD generators make them: a name that already ends like a plural (`Endpoints`, `Settings`,
    `Redis`) stays as it is. A kind with another plural declares it.
    """
    word = kind.lower()
    for singular, plural in _IRREGULAR.items():
        if word == singular or (len(singular) > 4 and word.endswith(singular)):
            return word[: -len(singular)] + plural
    if word.endswith(_UNCHANGED):
        return word
    if word.endswith("sis"):
        return f"{word[:-2]}es"
    if word.endswith(_TAKES_ES):
        return f"{word}es"
    if word.endswith("s"):
        return word
    if word.endswith("y") and word[-2:-1] not in tuple("aeiou"):
        return f"{word[:-1]}ies"
    return f"{word}s"


_VERSION: Final = re.compile(r"v([0-9]{1,18})(?:(alpha|beta)([0-9]{1,18}))?")
_STABILITY: Final = {None: 0, "beta": 1, "alpha": 2}


def version_key(version: str) -> tuple[int, int, int, int, str]:
    """For sorting versions, the preferred first, as Kubernetes does (apimachinery: pkg/version/helpers.go).

    v2, v1, v1beta2, v1beta1, v1alpha1; other names come last, alphabetically. `sorted(versions, key=version_key)`; the
    preferred one alone is `min(versions, key=version_key)`.
    """
    match = _VERSION.fullmatch(version)
    if match is None:
        return (1, 0, 0, 0, version)
    major, stability, minor = match.groups()
    return (0, _STABILITY[stability], -int(major), -int(minor or 0), version)
