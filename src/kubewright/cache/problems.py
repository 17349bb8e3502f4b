"""Problem: why a kind cannot be watched, in one sentence a person can act on.

Shown in the log and in readiness. `cache.reflector` reports a missing kind and a missing permission at once, with the
CRD or the rule that would help, and other failures when they last.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import final

import msgspec

from kubewright.api.resource import Definition, KubeObject
from kubewright.errors import Forbidden, KubewrightError, MethodNotAllowed, NotFound, Unauthorized

__all__ = ("Problem", "is_lasting", "sentence_for")

_ITSELF = "the watch starts by itself once that is done"


@final
class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Why a kind cannot be watched."""

    kind: type[KubeObject]
    sentence: str
    since: datetime

    def __str__(self) -> str:
        return self.sentence


def is_lasting(error: KubewrightError) -> bool:
    """Whether a person has to act: waiting alone does not help."""
    return isinstance(error, Forbidden | NotFound | Unauthorized | MethodNotAllowed)


def sentence_for(error: KubewrightError, definition: Definition, *, verb: str, namespace: str) -> str:
    """What is wrong and what to do; `verb` is what was tried, in one namespace or (if empty) in all."""
    what = f"{definition.kind} ({definition.api_version})"
    if isinstance(error, Forbidden):
        return f"{what} cannot be watched: {_missing_rule(definition, verb, namespace)}; {_ITSELF}. {error.message}"
    if isinstance(error, NotFound):
        return f"{what} cannot be watched: the server has no such kind; {_install(definition)}; {_ITSELF}"
    if isinstance(error, MethodNotAllowed):
        return f"{what} cannot be watched: the server offers no {verb} for this kind; read it live instead"
    if isinstance(error, Unauthorized):
        return f"{what} cannot be watched: the server does not accept the credentials; renew them. {error.message}"
    return f"{what} is not being watched, trying again: {error}"


def _missing_rule(definition: Definition, verb: str, namespace: str) -> str:
    rule = {"apiGroups": [definition.gvk.group], "resources": [definition.plural], "verbs": ["get", "list", "watch"]}
    where = f"in namespace {namespace}" if namespace else "in all namespaces" if definition.namespaced else ""
    role = f"a Role in namespace {namespace} (or a ClusterRole)" if namespace else "a ClusterRole"
    asked = " ".join(part for part in (f"the permission to {verb} {definition.plural}", where) if part)
    return f"{asked} is missing; add the rule {json.dumps(rule)} to {role} of this operator"


def _install(definition: Definition) -> str:
    if "." in definition.gvk.group and not definition.gvk.group.endswith(".k8s.io"):
        name = f"{definition.plural}.{definition.gvk.group}" if definition.plural else definition.gvk.group
        return f"install the CRD {name} with version {definition.gvk.version}"
    return "use a server that serves it, or enable its API group and version"
