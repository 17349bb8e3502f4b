"""Targets and queries that are long or odd."""

from __future__ import annotations

from tests.security.harness.attack import CONFIG_MAPS, Target, attack
from tests.security.harness.exchange import Answer


@attack(by="anonymous")
async def a_long_path(on: Target) -> Answer:
    """A path of a megabyte."""
    return await on.get("/apis" + "/a" * 30_000)


@attack(by="anonymous")
async def dots_and_slashes(on: Target) -> Answer:
    """A path of dots, slashes and escapes."""
    return await on.get("/" + "%2e%2e/" * 8_000 + "//" * 8_000)


@attack(by="anonymous")
async def many_parameters(on: Target) -> Answer:
    """A query of twenty thousand parameters."""
    return await on.get("/api/v1/pods?" + "a&" * 19_900)


@attack(by="anonymous")
async def parameters_of_a_megabyte(on: Target) -> Answer:
    """A query of a hundred thousand parameters."""
    return await on.get("/api/v1/pods?" + "%41=%41&" * 125_000)


@attack(by="anonymous")
async def escaped_parameters(on: Target) -> Answer:
    """As many parameters as a head may have, with escapes."""
    return await on.get("/api/v1/pods?" + "%41%42=%41&" * 19_900)


@attack(by="anonymous")
async def a_field_selector_for_authorization(on: Target) -> Answer:
    """A field selector that authorization looks into, as long as a head may be."""
    return await on.get("/api/v1/pods?fieldSelector=metadata.name=" + "\\," * 15_000 + "a" * 200_000)


@attack(by="editor")
async def a_label_selector_within_the_limit(on: Target) -> Answer:
    """A label selector of as many requirements as a head may have, over what is there."""
    return await on.get(f"{CONFIG_MAPS}?labelSelector=" + "a%2C" * 19_900 + "a")


@attack(by="editor")
async def a_label_selector_of_signs(on: Target) -> Answer:
    """A label selector of parentheses, as long as a head may be."""
    return await on.get(f"{CONFIG_MAPS}?labelSelector=a+in+" + "(" * 255_000)


@attack(by="editor")
async def ports_of_a_pod(on: Target) -> Answer:
    """A forwarding of twenty thousand ports."""
    return await on.ask(
        "POST",
        "/api/v1/namespaces/edited/pods/none/portforward?" + "ports=1&" * 19_900,
        headers={"Connection": "Upgrade", "Upgrade": "SPDY/3.1"},
    )


@attack(by="editor")
async def a_long_label_selector(on: Target) -> Answer:
    """A selector of ten thousand requirements."""
    return await on.get(f"{CONFIG_MAPS}?labelSelector=" + ",".join(f"l{n}" for n in range(9_000)))


@attack(by="editor")
async def an_odd_label_selector(on: Target) -> Answer:
    """A selector of parentheses."""
    return await on.get(f"{CONFIG_MAPS}?labelSelector=a+in+" + "(" * 60_000)


@attack(by="editor")
async def a_long_field_selector(on: Target) -> Answer:
    """A selector of fields with escapes without end."""
    return await on.get(f"{CONFIG_MAPS}?fieldSelector=metadata.name!=" + "\\," * 25_000)


@attack(by="editor")
async def odd_numbers(on: Target) -> Answer:
    """Numbers of five thousand digits, negative ones, and none."""
    answer = Answer(0)
    for name in ("limit", "timeoutSeconds", "resourceVersion", "gracePeriodSeconds", "sinceSeconds", "tailLines"):
        for value in ("9" * 5000, "-1", "1e9", "0x10", "%00", "٣", "1_000", " 1", "+1", "1.0", ""):
            answer = await on.get(f"{CONFIG_MAPS}?{name}={value}".replace("٣", "%D9%A3").replace(" ", "+"))
            if answer.is_internal_error:
                return answer
    return answer


@attack(by="anonymous")
async def documents(on: Target) -> Answer:
    """All documents of OpenAPI, one after the other."""
    import json

    listed = json.loads((await on.as_user("admin").get("/openapi/v3")).body)
    answer = Answer(0)
    for path in listed["paths"]:
        answer = await on.as_user("admin").get(f"/openapi/v3/{path}")
    return answer


@attack(by="nobody")
async def the_large_document(on: Target) -> Answer:
    """The document of OpenAPI v2, in JSON and in protobuf."""
    await on.get("/openapi/v2", Accept="application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
    return await on.get("/openapi/v2")


@attack(by="nobody")
async def discovery(on: Target) -> Answer:
    """All of discovery in one document, a hundred times."""
    answer = Answer(0)
    for _ in range(100):
        answer = await on.get("/apis", Accept="application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
    return answer
