"""Objects of built-in kinds are refused as kube-apiserver refuses them.

The cases are in test_validation_cases.yaml: what people get wrong. The answers are kube-apiserver's, recorded by
tests/differential/components/test_builtin_validation.py, which also checks that they still hold.
"""

from __future__ import annotations

import gzip
import json
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from kubewright.api.field_errors import FieldError, summary
from kubewright.api.kinds import GroupVersion, GroupVersionKind
from kubewright.apiserver.builtin.canonical import canonicalize
from kubewright.apiserver.builtin.golang.decoder import normalize
from kubewright.apiserver.builtin.validation import error_kind, name_rule, validate_create, validate_update
from kubewright.apiserver.wire.status_errors import StatusError, bad_request, invalid, status_error

FOLDER = Path(__file__).parent
CASES_FILE = FOLDER / "test_validation_cases.yaml"
ANSWERS_FILE = FOLDER / "test_validation_answers.json.gz"
NAMESPACE = "validation-cases"
FILLED = ("Namespace", "Node", "PersistentVolume", "PersistentVolumeClaim", "Pod")
"""Kinds that get a status when they are made, which is not the matter here."""

Tree = dict[str, Any]


class Case(NamedTuple):
    """One mistake: a base, what is done with it, and what is changed."""

    base: str
    operation: str
    subresource: str
    does: str
    changes: Tree

    @property
    def id(self) -> str:
        target = "/".join(filter(None, (self.base, self.operation, self.subresource)))
        return f"{target}: {self.does}"


def load_cases() -> tuple[dict[str, Tree], list[Case], list[Case]]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast, where it was built
    tables = yaml.load(CASES_FILE.read_text().replace("{ns}", NAMESPACE), Loader=loader)
    return tables["bases"], _cases(tables["cases"]), _cases(tables["shapes"])


def _cases(rows: list[Any]) -> list[Case]:
    made = []
    for target, does, changes in rows:
        base, operation, subresource = (*target.split("/"), "", "")[:3]
        made.append(Case(base, operation, subresource, does, changes))
    return made


def changed(tree: Tree, changes: Tree) -> Tree:
    """A copy of the tree with the changes of a case made."""
    made = deepcopy(tree)
    for path, value in changes.items():
        *steps, last = _steps(path)
        place: Any = made
        for step in steps:
            place = place[int(step)] if isinstance(place, list) else place.setdefault(step, {})
        if value == "gone":
            place.pop(last, None)
        elif last == "+1":
            place.append(deepcopy(value))
        elif isinstance(place, list):
            place[int(last)] = deepcopy(value)
        else:
            place[last] = deepcopy(value)
    return made


def _steps(path: str) -> list[str]:
    """Dots separate, but not those of a resource's name, such as example.com/gpu."""
    head, limits, rest = path.partition(".limits.")
    return [*head.split("."), "limits", rest] if limits and not rest[:1].isdigit() else path.split(".")


def kind_of(tree: Tree) -> GroupVersionKind:
    version = GroupVersion.parse(tree["apiVersion"])
    return GroupVersionKind(version.group, version.version, tree["kind"])


def our_answer(tree: Tree, *, old: Tree | None = None, subresource: str = "") -> Tree | None:
    """The Status this server answers with; None if the object is fine."""
    gvk, new = kind_of(tree), deepcopy(tree)
    try:
        unknown = normalize(gvk, new)
    except StatusError as error:
        return dict(error.status)
    if unknown:
        fields = ", ".join(f'unknown field "{path}"' for path in unknown)
        head = f'{gvk.kind} in version "{gvk.version}" cannot be handled as a {gvk.kind}'
        return dict(bad_request(f"{head}: strict decoding error: {fields}").status)
    name = (new.get("metadata") or {}).get("name", "")
    errors: list[FieldError] = []
    if old is None:
        wrong = name_rule(gvk)(name, False)
        errors += [FieldError("metadata.name", "Invalid", detail, name) for detail in wrong if name]
        errors += validate_create(gvk, new)
    else:
        errors += validate_update(gvk, new, old, subresource=subresource)
    if errors and gvk.kind == "Binding":  # kube-apiserver has no proper error for this one
        return dict(status_error(500, "", summary(errors)).status)
    return dict(invalid(error_kind(gvk), name, errors).status) if errors else None


def comparable(status: Tree | None) -> Tree | None:
    """A Status without the order of its causes, which is random where kube-apiserver walks a map."""
    if status is None:
        return None
    details = status.get("details") or {}
    causes = sorted(details.get("causes") or (), key=lambda cause: (cause.get("field", ""), cause.get("message", "")))
    message = status["message"] if len(causes) < 2 else status["message"].partition(": ")[0]
    return {
        "code": status["code"],
        "reason": status.get("reason"),
        "message": message,
        "causes": causes,
        "about": {name: details.get(name) for name in ("name", "group", "kind")},
    }


def our_form(tree: Tree) -> Tree:
    """How this server would print the object."""
    made = deepcopy(tree)
    assert normalize(kind_of(tree), made) == []
    canonicalize(kind_of(tree), made)
    if tree["kind"] in FILLED:
        made.pop("status", None)
    return made


BASES, CASES, SHAPES = load_cases()
ANSWERS: Tree = json.loads(gzip.decompress(ANSWERS_FILE.read_bytes())) if ANSWERS_FILE.exists() else {}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_an_invalid_object_has_kube_apiservers_status(case: Case) -> None:
    stored = ANSWERS["stored" if case.operation else "bases"][case.base]

    answer = our_answer(
        changed(stored, case.changes), old=stored if case.operation else None, subresource=case.subresource
    )

    assert comparable(answer) == comparable(ANSWERS["answers"][case.id])


@pytest.mark.parametrize("case", SHAPES, ids=lambda case: case.id)
def test_an_object_is_encoded_as_by_kube_apiserver(case: Case) -> None:
    tree = changed(ANSWERS["bases"][case.base], case.changes)

    assert our_form(tree) == ANSWERS["shapes"][case.id]
