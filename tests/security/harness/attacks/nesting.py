"""Deep trees in each place that takes one."""

from __future__ import annotations

from tests.security.harness.attack import CONFIG_MAPS, Target, attack
from tests.security.harness.exchange import Answer

_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@attack(by="nobody")
async def lists(on: Target) -> Answer:
    """A list in a list, three million times."""
    return await on.post(_REVIEWS, b"[" * 2_900_000)


@attack(by="nobody")
async def objects(on: Target) -> Answer:
    """An object in an object, half a million times."""
    return await on.post(_REVIEWS, b'{"a":' * 580_000)


@attack(by="nobody")
async def closed_objects(on: Target) -> Answer:
    """The same, with an end."""
    return await on.post(_REVIEWS, b'{"a":' * 480_000 + b"1" + b"}" * 480_000)


@attack(by="nobody")
async def closed_objects_of_a_thousand_levels(on: Target) -> Answer:
    """A thousand levels: about what Python's own decoder takes."""
    answer = Answer(0)
    for levels in (900, 950, 990, 1000, 1024, 3000, 9_990, 10_001):
        answer = await on.post(_REVIEWS, b'{"spec":' + b'{"a":' * levels + b"1" + b"}" * levels + b"}")
        if answer.is_internal_error:
            return answer
    return answer


@attack(by="editor")
async def an_object_that_is_kept(on: Target) -> Answer:
    """Levels in an annotation's place, in a patch, in an apply and in options of a delete."""
    deep = b'{"a":' * 2000 + b"1" + b"}" * 2000
    answer = Answer(0)
    for method, path, body, kind in (
        ("POST", CONFIG_MAPS, b'{"metadata":{"name":"n","annotations":' + deep + b"}}", "json"),
        ("PATCH", f"{CONFIG_MAPS}/n", b'{"data":' + deep + b"}", "merge-patch+json"),
        (
            "PATCH",
            f"{CONFIG_MAPS}/n?fieldManager=m",
            b'{"apiVersion":"v1","kind":"ConfigMap","data":' + deep + b"}",
            "apply-patch+yaml",
        ),
        ("PATCH", f"{CONFIG_MAPS}/n", b'[{"op":"add","path":"/data","value":' + deep + b"}]", "json-patch+json"),
        ("PATCH", f"{CONFIG_MAPS}/n", b'{"data":' + deep + b"}", "strategic-merge-patch+json"),
        ("DELETE", f"{CONFIG_MAPS}/n", b'{"preconditions":' + deep + b"}", "json"),
        ("PUT", f"{CONFIG_MAPS}/n", b'{"metadata":{"name":"n","ownerReferences":[' + deep + b"]}}", "json"),
    ):
        answer = await on.ask(method, path, body, content_type=f"application/{kind}")
        if answer.is_internal_error:
            return answer
    return answer


@attack(by="admin")
async def an_object_without_schema(on: Target) -> Answer:
    """Two thousand levels in an object of a kind that keeps everything, read in each form, patched and applied."""
    from tests.builders.definitions import definition_tree

    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    await on.post(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition_tree("deep", "nesting.io", schema=schema)
    )
    path = "/apis/nesting.io/v1/namespaces/edited/deep"
    await on.get(path)
    answer = Answer(0)
    for levels in (150, 300, 700, 980, 3000, 9000):
        deep = b'{"a":' * levels + b"1" + b"}" * levels
        head = b'{"apiVersion":"nesting.io/v1","kind":"Deep","metadata":{"name":"l%d"},"spec":' % levels
        answers = [await on.post(path, head + deep + b"}")]
        name = f"{path}/l{levels}"
        answers += [
            await on.get(name),
            await on.get(name, Accept="application/yaml"),
            await on.get(f"{name}?pretty=true"),
        ]
        answers += [await on.patch(name, b'{"spec":{"b":' + deep + b"}}")]
        answers += [await on.patch(name, b'[{"op":"copy","from":"/spec","path":"/x"}]', "json-patch+json")]
        answers += [await on.patch(f"{name}?fieldManager=m", head + deep + b"}", "apply-patch+yaml")]
        answers += [await on.put(name, head + deep + b"}"), await on.ask("DELETE", name)]
        answer = max(answers, key=lambda each: (each.is_internal_error, each.code))
        if answer.is_internal_error:
            return answer
    return answer
