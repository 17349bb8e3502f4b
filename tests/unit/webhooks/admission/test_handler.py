"""What an admission webhook answers, whatever it is asked and whatever its handler does."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.unit.webhooks.reviews import admit, patched, request, response, review

from kubewright import (
    AdmissionRequest,
    Client,
    FieldErrors,
    Model,
    Resource,
    Spec,
    Status,
    Warnings,
    default,
    deny,
    mutate,
    validate,
)
from kubewright.api import definition_of
from kubewright.client.transport.transport import HttpRequest, HttpResponse
from kubewright.errors import NotFound
from kubewright.k8s.core.v1 import ConfigMap
from kubewright.webhooks.serving.router import WebhookRouter


class Part(Model):
    name: str = ""
    weight: int | None = None


class WebSpec(Spec):
    size: int = 1
    image: str | None = None
    parts: list[Part] = []


class Web(Resource[WebSpec, Status], group="shop.example.io", version="v1"):
    """A web site."""


GVK = definition_of(Web).gvk


def web(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "shop.example.io/v1", "kind": "Web", "metadata": {"name": "web"}, "spec": spec}


@pytest.fixture
def serving() -> Iterator[Callable[..., WebhookRouter]]:
    made: list[WebhookRouter] = []

    def serve(*declarations: Any, **options: Any) -> WebhookRouter:
        made.append(WebhookRouter(declarations, **options))
        return made[-1]

    yield serve
    for webhooks in made:
        webhooks.close()


async def test_what_the_class_does_not_know_survives(serving: Callable[..., WebhookRouter]) -> None:
    @mutate(Web)
    async def change(obj: Web) -> None:
        obj.spec.image = "web:2"
        obj.spec.parts[1].weight = 5
        del obj.spec.parts[0]

    sent = web(novel={"a": [1, None]}, parts=[{"name": "a", "x": 1}, {"name": "b", "y": {"z": 2}}])
    sent["metadata"]["novel"] = True
    answered = await admit(serving(change), change.path, review(GVK, sent))

    result = patched(sent, answered)
    assert result["spec"] == {
        "novel": {"a": [1, None]},
        "parts": [{"name": "b", "y": {"z": 2}, "weight": 5}],
        "image": "web:2",
    }
    assert result["metadata"] == {"name": "web", "novel": True}


async def test_a_default_of_the_class_is_no_change(serving: Callable[..., WebhookRouter]) -> None:
    @default(Web)
    def keep(obj: Web) -> None:
        assert obj.metadata.namespace == "shop"

    answered = await admit(serving(keep), keep.path, review(GVK, web()))

    assert answered == {"uid": "7d3f", "allowed": True}


async def test_a_handler_may_return_another_object(serving: Callable[..., WebhookRouter]) -> None:
    @mutate(Web)
    def replace(obj: Web) -> Web:
        return Web(metadata=obj.metadata, spec=WebSpec(size=3))

    answered = await admit(serving(replace), replace.path, review(GVK, web(size=1, unknown="kept")))

    assert patched(web(size=1, unknown="kept"), answered)["spec"] == {"size": 3, "unknown": "kept"}


async def test_a_defaulter_is_not_asked_about_a_deletion(serving: Callable[..., WebhookRouter]) -> None:
    asked: list[str] = []

    @default(Web, on=("create", "delete"))
    def fill(obj: Web) -> None:
        asked.append(obj.metadata.name)

    answered = await admit(serving(fill), fill.path, review(GVK, old=web(), operation="DELETE"))

    assert (answered["allowed"], asked) == (True, [])


async def test_a_handler_gets_what_it_names(serving: Callable[..., WebhookRouter]) -> None:
    seen: dict[str, Any] = {}
    transport = RecordingTransport()
    client = Client(transport)

    @validate(Web, on=("create", "update", "delete"))
    async def look(
        new: Web | None,
        old: Web | None,
        request: AdmissionRequest,
        client: Client,
        audit: dict[str, str],
        extra: int = 3,
    ) -> None:
        seen.update(new=new, old=old, request=request, client=client, extra=extra)
        audit["looked"] = "yes"

    webhooks = serving(look, client=client)
    body = review(GVK, web(size=2), old=web(size=1), operation="UPDATE", subResource="scale")
    answered = await admit(webhooks, look.path, body)

    assert (seen["new"].spec.size, seen["old"].spec.size, seen["extra"]) == (2, 1, 3)
    request: AdmissionRequest = seen["request"]
    assert (request.user.username, request.user.groups, request.subresource) == ("jo", ("dev",), "scale")
    assert seen["client"] is client
    assert answered["auditAnnotations"] == {"looked": "yes"}

    await admit(webhooks, look.path, review(GVK, old=web(size=1), operation="DELETE"))
    assert seen["new"] is None


async def test_writes_of_a_handler_are_dry_runs_in_a_dry_run(serving: Callable[..., WebhookRouter]) -> None:
    transport = RecordingTransport()

    @validate(Web)
    async def write(obj: Web, client: Client) -> None:
        await client.create(ConfigMap.named("a", "shop"))
        await client.delete(ConfigMap, "a", namespace="shop")

    webhooks = serving(write, client=Client(transport))
    await admit(webhooks, write.path, review(GVK, web(), dryRun=True))
    create, delete = transport.requests
    assert ("dryRun", "All") in create.query
    assert json.loads(delete.body or b"{}")["dryRun"] == ["All"]

    transport.requests.clear()
    await admit(webhooks, write.path, review(GVK, web()))
    create, delete = transport.requests
    assert "dryRun" not in dict(create.query)
    assert "dryRun" not in json.loads(delete.body or b"{}")


async def test_errors_become_one_refusal_with_a_cause_each(serving: Callable[..., WebhookRouter]) -> None:
    @validate(Web)
    def check(obj: Web, errors: FieldErrors, warnings: Warnings) -> None:
        errors.add("spec.size", "must be odd")
        errors.required("spec.image", "name an image")
        errors.duplicate("spec.parts[1].name")
        errors.add("metadata.labels[app]", "is taken", value="x")
        warnings.add("think of\nyour disk")

    sent = web(size=2, parts=[{"name": "a"}, {"name": "a"}])
    answered = await admit(serving(check), check.path, review(GVK, sent))

    assert (answered["allowed"], answered["warnings"]) == (False, ["think of your disk"])
    status = answered["status"]
    assert (status["code"], status["reason"], status["status"]) == (422, "Invalid", "Failure")
    assert status["message"].startswith(
        'Web.shop.example.io "web" is invalid: [spec.size: Invalid value: 2: must be odd'
    )
    assert (status["details"]["kind"], status["details"]["name"]) == ("Web", "web")
    assert [(cause["field"], cause["reason"], cause["message"]) for cause in status["details"]["causes"]] == [
        ("spec.size", "FieldValueInvalid", "Invalid value: 2: must be odd"),
        ("spec.image", "FieldValueRequired", "Required value: name an image"),
        ("spec.parts[1].name", "FieldValueDuplicate", 'Duplicate value: "a"'),
        ("metadata.labels[app]", "FieldValueInvalid", 'Invalid value: "x": is taken'),
    ]


@pytest.mark.parametrize(("code", "reason"), [(403, "Forbidden"), (400, "BadRequest"), (409, "Conflict")])
async def test_deny_refuses_with_its_own_code(serving: Callable[..., WebhookRouter], code: int, reason: str) -> None:
    @validate(Web)
    def check(obj: Web) -> None:
        deny("not today", code=code)

    answered = await admit(serving(check), check.path, review(GVK, web()))

    assert answered["allowed"] is False
    assert answered["status"] == {"status": "Failure", "message": "not today", "code": code, "reason": reason}


async def test_an_error_of_a_request_the_handler_made_denies_nothing(serving: Callable[..., WebhookRouter]) -> None:
    @validate(Web)
    async def check(obj: Web) -> None:
        raise NotFound("no such pod", code=404, request="GET /pods/a")

    answered = await admit(serving(check), check.path, review(GVK, web()))

    assert answered["status"]["code"] == 500


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
async def test_a_handler_that_raises_is_answered_for(
    serving: Callable[..., WebhookRouter], policy: Any, caplog: pytest.LogCaptureFixture
) -> None:
    observer = Observer()

    @validate(Web, failure_policy=policy)
    def check(obj: Web) -> None:
        if obj.spec.size:
            raise RuntimeError("the password is 123")

    webhooks = serving(check, observer=observer)
    answer = await webhooks.handle(request(check.path, review(GVK, web())))

    if policy == "Fail":
        assert response(answer)["status"]["code"] == 500
    else:
        assert answer.code == 500
    assert b"123" not in answer.body
    assert "the password is 123" in caplog.text
    assert observer.panics == [check.path]
    assert (await admit(webhooks, check.path, review(GVK, web(size=0))))["allowed"]


async def test_a_handler_that_blocks_is_cut_off_and_the_next_request_works(
    serving: Callable[..., WebhookRouter],
) -> None:
    release = threading.Event()

    @validate(Web)
    def check(obj: Web) -> None:
        if obj.spec.size == 9:
            release.wait(30)

    webhooks = serving(check)
    late = await admit(webhooks, check.path, review(GVK, web(size=9)), query="timeout=50ms")
    fine = await admit(webhooks, check.path, review(GVK, web()), query="timeout=5s")
    release.set()

    assert (late["allowed"], late["status"]["code"], late["status"]["reason"]) == (False, 504, "Timeout")
    assert fine["allowed"]


async def test_an_async_handler_that_hangs_is_cancelled(serving: Callable[..., WebhookRouter]) -> None:
    cancelled = asyncio.Event()

    @validate(Web, failure_policy="Ignore")
    async def check(obj: Web) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    answer = await serving(check).handle(request(check.path, review(GVK, web()), query="timeout=50ms"))

    assert answer.code == 504
    assert cancelled.is_set()


async def test_handlers_wait_for_a_free_place(serving: Callable[..., WebhookRouter]) -> None:
    entered, release = asyncio.Event(), asyncio.Event()

    @validate(Web)
    async def check(obj: Web) -> None:
        entered.set()
        await release.wait()

    webhooks = serving(check, concurrency=1)
    first = asyncio.create_task(admit(webhooks, check.path, review(GVK, web())))
    await entered.wait()
    crowded = await admit(webhooks, check.path, review(GVK, web()), query="timeout=50ms")
    release.set()

    assert crowded["status"]["code"] == 429
    assert (await first)["allowed"]
    assert (await admit(webhooks, check.path, review(GVK, web())))["allowed"]


@pytest.mark.parametrize(
    ("body", "content_type", "code"),
    [
        (b"", "application/json", 400),
        (b"{", "application/json", 400),
        (b"[1, 2]", "application/json", 400),
        (b'"\xff"', "application/json", 400),
        (b'{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}', "application/json", 400),
        (
            b'{"kind": "Pod", "apiVersion": "v1", "request": {"uid": "a", "operation": "CREATE"}}',
            "application/json",
            400,
        ),
        (b'{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": {}}', "application/json", 400),
        (b"{}", "application/yaml", 415),
        (b"{}", "", 415),
    ],
)
async def test_what_is_no_review_is_refused(
    serving: Callable[..., WebhookRouter], body: bytes, content_type: str, code: int
) -> None:
    @validate(Web)
    def check(obj: Web) -> None: ...

    webhooks = serving(check)
    answer = await webhooks.handle(request(check.path, body, content_type=content_type))

    assert answer.code == code
    assert (await admit(webhooks, check.path, review(GVK, web())))["allowed"]


async def test_an_unknown_path_and_method_are_refused(serving: Callable[..., WebhookRouter]) -> None:
    @validate(Web)
    def check(obj: Web) -> None: ...

    webhooks = serving(check)

    assert (await webhooks.handle(request("/nowhere", b"{}"))).code == 404
    assert (await webhooks.handle(request("/convert", b"{}"))).code == 404
    asked = request(check.path, b"{}")
    assert (await webhooks.handle(type(asked)(method="GET", target=check.path))).code == 405


async def test_another_kind_is_refused(serving: Callable[..., WebhookRouter]) -> None:
    @validate(Web)
    def check(obj: Web) -> None: ...

    answered = await admit(serving(check), check.path, review(definition_of(ConfigMap).gvk, {"data": {}}))

    assert answered["status"]["code"] == 400
    assert "is for shop.example.io/v1 Web, but got v1 ConfigMap" in answered["status"]["message"]


async def test_an_object_with_a_wrong_type_is_refused_with_the_field(serving: Callable[..., WebhookRouter]) -> None:
    @validate(Web)
    def check(obj: Web) -> None: ...

    answered = await admit(serving(check), check.path, review(GVK, web(size="many")))

    assert answered["status"]["code"] == 422
    assert 'spec.size: Invalid value: "many": expected `int`, got `str`' in answered["status"]["message"]


async def test_metadata_that_cannot_be_read_is_refused(serving: Callable[..., WebhookRouter]) -> None:
    @validate(Web)
    def check(obj: Web) -> None: ...

    broken = {**web(), "metadata": {"name": "web", "finalizers": 3}}
    answered = await admit(serving(check), check.path, review(GVK, broken))

    assert answered["status"]["code"] == 400
    assert "metadata.finalizers" in answered["status"]["message"]


async def test_a_stored_value_that_the_class_does_not_know_may_stay(serving: Callable[..., WebhookRouter]) -> None:
    seen: list[object] = []

    @validate(Web)
    def check(obj: Web, old: Web) -> None:
        seen.append(obj.spec.size)

    @default(Web)
    def fill(obj: Web) -> None:
        obj.spec.image = "nginx"

    old, new = web(size="many", image="a"), web(size="many", image="b")
    body = review(GVK, new, old=old, operation="UPDATE")
    allowed = await admit(serving(check), check.path, body)
    filled = await admit(serving(fill), fill.path, body)

    assert allowed["allowed"]
    assert seen == ["many"]
    assert patched(new, filled)["spec"] == {"size": "many", "image": "nginx"}


@pytest.mark.parametrize("declare", [validate, mutate])
async def test_a_value_that_the_class_does_not_know_is_refused_where_it_is_new(
    serving: Callable[..., WebhookRouter], declare: Any
) -> None:
    def accept(obj: Web, old: Web) -> None: ...

    check = declare(Web)(accept)
    body = review(GVK, web(size="lots"), old=web(size="many"), operation="UPDATE")
    answered = await admit(serving(check), check.path, body)

    assert answered["status"]["code"] == 422
    assert [cause["field"] for cause in answered["status"]["details"]["causes"]] == ["spec.size"]


async def test_a_handler_that_stumbles_over_a_stored_value_does_not_keep_the_finalizer(
    serving: Callable[..., WebhookRouter],
) -> None:
    @default(Web)
    def fill(obj: Web) -> None:
        obj.spec.size += 1

    old = web(size="many")
    old["metadata"] |= {"finalizers": ["a/b"], "deletionTimestamp": "2025-01-01T00:00:00Z"}
    new = {**old, "metadata": {**old["metadata"], "finalizers": []}}
    answered = await admit(serving(fill), fill.path, review(GVK, new, old=old, operation="UPDATE"))

    assert answered["allowed"]


async def test_a_stored_value_that_the_class_does_not_know_can_be_deleted(
    serving: Callable[..., WebhookRouter],
) -> None:
    @validate(Web, on="delete")
    def check(obj: Web) -> None:
        assert obj.spec.size == "many"  # type: ignore[comparison-overlap]

    answered = await admit(serving(check), check.path, review(GVK, None, old=web(size="many"), operation="DELETE"))

    assert answered["allowed"]


async def test_a_defaulter_leaves_an_object_with_a_wrong_type_to_the_schema(
    serving: Callable[..., WebhookRouter],
) -> None:
    @default(Web)
    def fill(obj: Web) -> None: ...

    answered = await admit(serving(fill), fill.path, review(GVK, web(size="many")))

    assert answered["allowed"]
    assert "patch" not in answered


async def test_the_response_has_the_version_of_the_review(serving: Callable[..., WebhookRouter]) -> None:
    @validate(Web)
    def check(obj: Web) -> None: ...

    answer = await serving(check).handle(request(check.path, review(GVK, web(), version="v1beta1")))

    assert json.loads(answer.body)["apiVersion"] == "admission.k8s.io/v1beta1"


@pytest.mark.parametrize(
    ("change", "asked"),
    [
        ({"metadata": {"finalizers": []}}, False),
        ({"metadata": {"labels": {"a": "b"}}}, True),
        ({"metadata": {"labels": {"a": "b"}, "deletionTimestamp": "2025-01-01T00:00:00Z"}}, False),
        ({"status": {"conditions": []}}, False),
        ({"spec": {"size": 2}}, True),
        ({"spec": {"size": 2}, "metadata": {"deletionTimestamp": "2025-01-01T00:00:00Z"}}, True),
    ],
)
@pytest.mark.parametrize("ratchet", [True, False])
async def test_an_update_of_status_or_finalizers_alone_is_not_validated(
    serving: Callable[..., WebhookRouter], change: dict[str, Any], asked: bool, ratchet: bool
) -> None:
    @validate(Web, ratchet=ratchet)
    def check(obj: Web, errors: FieldErrors) -> None:
        errors.add("spec", "is never right")

    old = web(size=1)
    old["metadata"]["finalizers"] = ["a/b"]
    new = {**old, **change, "metadata": {**old["metadata"], **change.get("metadata", {})}}
    answered = await admit(serving(check), check.path, review(GVK, new, old=old, operation="UPDATE"))

    assert answered["allowed"] is not (asked or not ratchet)


def test_two_webhooks_on_one_path_are_refused() -> None:
    @default(Web)
    def one(obj: Web) -> None: ...

    @mutate(Web)
    def two(obj: Web) -> None: ...

    with pytest.raises(ValueError, match=r"is taken already; .* @mutate\(Web, name="):
        WebhookRouter([one, two])


class Observer:
    """Remembers what it is told."""

    def __init__(self) -> None:
        self.panics: list[str] = []

    def on_start(self, path: str) -> None: ...

    def on_end(self, path: str, code: int, seconds: float) -> None: ...

    def on_panic(self, path: str) -> None:
        self.panics.append(path)


class RecordingTransport:
    """A transport that answers every request with an empty ConfigMap."""

    def __init__(self) -> None:
        self.requests: list[HttpRequest] = []

    async def send(self, request: HttpRequest) -> HttpResponse:
        self.requests.append(request)
        return HttpResponse(status=200, headers={}, body=b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{}}')

    def stream(self, request: HttpRequest) -> Any:
        raise NotImplementedError

    async def close(self) -> None: ...
