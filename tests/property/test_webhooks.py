"""Whatever an object holds and whatever a handler changes, a mutation touches nothing else.

Covers: kubewright.webhooks.admission
"""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kubewright import Model, Resource, Spec, Status, mutate
from kubewright._base.http.messages import Request
from kubewright.api.patches import apply_json_patch
from kubewright.webhooks.serving.router import WebhookRouter


class Part(Model):
    name: str
    weight: int | None = None


class WebSpec(Spec):
    size: int = 1
    parts: list[Part] = []
    notes: dict[str, str] = {}


class Web(Resource[WebSpec, Status], group="shop.example.io", version="v1"):
    """A web site."""


NAMES = st.sampled_from(["a", "b", "c/d", "e~f"])
SCALARS = st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3)
UNKNOWN = st.dictionaries(
    st.sampled_from(["x", "y/z"]), st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=2))
)
PARTS = st.lists(
    st.builds(lambda name, rest: {"name": name, **rest}, NAMES, UNKNOWN),
    max_size=3,
    unique_by=lambda part: part["name"],
)
SPECS = st.builds(
    lambda known, unknown: {**unknown, **known},
    st.fixed_dictionaries(
        {}, optional={"size": st.integers(0, 3), "parts": PARTS, "notes": st.dictionaries(NAMES, st.text(max_size=2))}
    ),
    UNKNOWN,
)


@given(SPECS, st.integers(0, 3), st.sets(NAMES), st.booleans())
def test_a_mutation_changes_what_the_handler_changed_and_nothing_else(
    spec: dict[str, Any], size: int, dropped: set[str], heavier: bool
) -> None:
    @mutate(Web)
    async def change(web: Web) -> None:
        web.spec.size = size
        web.spec.parts = [part for part in web.spec.parts if part.name not in dropped]
        for part in web.spec.parts:
            part.weight = 9 if heavier else part.weight
        web.spec.notes["new"] = "note"

    sent = {"apiVersion": "shop.example.io/v1", "kind": "Web", "metadata": {"name": "w", "odd": 1}, "spec": spec}
    result = _mutated(change, sent)

    expected = {**spec, "size": size, "notes": {**spec.get("notes", {}), "new": "note"}}
    if "size" not in spec and size == 1:
        del expected["size"]  # what the class fills in by itself is no change
    if "parts" in spec:
        kept = [part for part in spec["parts"] if part["name"] not in dropped]
        expected["parts"] = [{**part, "weight": 9} if heavier else part for part in kept]
    assert result == {**sent, "spec": expected}


def _mutated(declaration: Any, sent: dict[str, Any]) -> Any:
    kind = {"group": "shop.example.io", "version": "v1", "kind": "Web"}
    request = {"uid": "u", "operation": "CREATE", "kind": kind, "namespace": "shop", "object": sent}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}

    async def ask() -> Any:
        webhooks = WebhookRouter([declaration])
        request = Request(
            method="POST",
            target=declaration.path,
            headers={"content-type": "application/json"},
            body=json.dumps(review).encode(),
        )
        return json.loads((await webhooks.handle(request)).body)["response"]

    answered = asyncio.run(ask())
    assert answered["allowed"], answered
    patch = json.loads(base64.b64decode(answered["patch"])) if "patch" in answered else []
    return apply_json_patch(sent, patch)
