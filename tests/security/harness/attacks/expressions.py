"""CEL: in definitions, in admission policies, in devices' selectors."""

from __future__ import annotations

from typing import Any

from tests.builders.definitions import definition_tree
from tests.security.harness.attack import Target, attack, many
from tests.security.harness.exchange import Answer

_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
_BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
_CLAIMS = "/apis/resource.k8s.io/v1/namespaces/edited/resourceclaims"
_SLICES = "/apis/resource.k8s.io/v1/resourceslices"
_PODS = "/api/v1/namespaces/edited/pods"
_NUMBER = iter(range(1, 1_000_000))


def _policy(expression: str, **spec: Any) -> dict[str, Any]:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    inside = {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": expression}], **spec}
    return {"metadata": {"name": f"policy-{next(_NUMBER)}"}, "spec": inside}


async def _devices(on: Target) -> None:
    devices = [{"name": f"gpu-{n}", "attributes": {"model": {"string": "a" * 60}}} for n in range(100)]
    nodes = await on.get("/api/v1/nodes")
    name = "node-1" if b'"node-1"' in nodes.body else "node"
    pool = {"name": "pool", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "nodeName": name, "pool": pool, "devices": devices}
    await on.post(_SLICES, {"metadata": {"name": "gpus"}, "spec": spec})
    await on.post("/apis/resource.k8s.io/v1/deviceclasses", {"metadata": {"name": "gpu"}, "spec": {}})


async def _claim(on: Target, expression: str) -> Answer:
    name = f"claim-{next(_NUMBER)}"
    request = {"name": "r", "exactly": {"deviceClassName": "gpu", "selectors": [{"cel": {"expression": expression}}]}}
    answer = await on.post(_CLAIMS, {"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}})
    container = {"name": "c", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}
    spec = {"containers": [container], "resourceClaims": [{"name": "gpu", "resourceClaimName": name}]}
    await on.post(_PODS, {"metadata": {"name": name}, "spec": spec})
    return answer


@attack(by="editor", prepare=_devices, spoils=True)
async def catastrophic_pattern_for_a_device(on: Target) -> Answer:
    """A selector of devices whose pattern has exponential many ways to fail."""
    return await _claim(on, 'device.attributes["gpu.example.com"].model.matches("^(a+)+$$b")')


@attack(by="editor", prepare=_devices, spoils=True)
async def a_billion_numbers_for_a_device(on: Target) -> Answer:
    """A selector of devices with a list of a billion numbers."""
    return await _claim(on, "lists.range(1000000000).size() > 0")


@attack(by="editor", prepare=_devices, spoils=True)
async def ten_million_numbers_for_a_device(on: Target) -> Answer:
    """A selector of devices with a list of ten million numbers."""
    return await _claim(on, "lists.range(10000000).size() > 0")


@attack(by="editor", prepare=_devices, spoils=True)
async def distinct_items_for_a_device(on: Target) -> Answer:
    """A selector that looks for equals among thirty thousand items."""
    return await _claim(on, "lists.range(30000).map(x, [x]).distinct().size() > 0")


@attack(by="editor", prepare=_devices, spoils=True)
async def nested_loops_for_a_device(on: Target) -> Answer:
    """A selector with loops in loops."""
    return await _claim(on, "[1,2,3,4,5,6,7,8,9,0].all(a, " * 8 + "true" + ")" * 8)


@attack(by="editor", prepare=_devices, spoils=True)
async def loops_within_the_limit_for_each_device(on: Target) -> Answer:
    """The same with as many rounds as one selector may have, for each of a hundred devices."""
    return await _claim(on, "[1,2,3,4,5,6,7,8,9,0].all(a, " * 5 + "true" + ")" * 5 + " && device.driver == 'none'")


@attack(by="editor", prepare=_devices, spoils=True)
async def doubled_strings_for_a_device(on: Target) -> Answer:
    """A selector whose string doubles again and again."""
    return await _claim(on, "['x'].map(a, a+a)" + ".map(a, a+a+a+a+a+a+a+a)" * 12 + ".size() > 0")


@attack(by="editor", prepare=_devices, spoils=True)
async def replacements_for_a_device(on: Target) -> Answer:
    """A selector that replaces each letter by many, again and again."""
    return await _claim(on, "'aaaaaaaaaa'" + ".replace('a','aaaaaaaaaa')" * 9 + ".size() > 0")


@attack(by="editor", prepare=_devices, spoils=True)
async def split_and_join_for_a_device(on: Target) -> Answer:
    """A selector that joins with long separators, again and again."""
    return await _claim(on, "'aaaaaaaaaa'" + ".split('').join('aaaaaaaaaa')" * 9 + ".size() > 0")


@attack(by="editor", prepare=_devices, spoils=True)
async def formats_for_a_device(on: Target) -> Answer:
    """A selector that formats a number with a million places."""
    return await _claim(on, "'%.1000000000f'.format([1.0]).size() > 0")


@attack(by="editor", prepare=_devices, spoils=True)
async def sorted_items_for_a_device(on: Target) -> Answer:
    """A selector that sorts, flattens and slices a hundred thousand items."""
    return await _claim(on, "lists.range(100000).map(x, -x).sort().reverse().slice(0, 99999).size() > 0")


@attack(by="admin")
async def a_long_expression(on: Target) -> Answer:
    """A policy whose expression is a sum of a million ones."""
    return await on.post(_POLICIES, _policy("1" + "+1" * 1_000_000 + " > 0"))


@attack(by="admin")
async def a_deep_expression(on: Target) -> Answer:
    """A policy whose expression has a million parentheses."""
    return await on.post(_POLICIES, _policy("(" * 1_400_000 + "1" + ")" * 1_400_000))


@attack(by="admin")
async def unbalanced_parentheses(on: Target) -> Answer:
    """The same without an end."""
    return await on.post(_POLICIES, _policy("(" * 2_900_000))


@attack(by="admin")
async def exclamations(on: Target) -> Answer:
    """Negations without end."""
    return await on.post(_POLICIES, _policy("!" * 2_900_000 + "true"))


@attack(by="admin")
async def conditionals(on: Target) -> Answer:
    """Conditions in conditions."""
    return await on.post(_POLICIES, _policy("true ? true : " * 200_000 + "true"))


@attack(by="admin")
async def selects(on: Target) -> Answer:
    """A chain of fields without end."""
    return await on.post(_POLICIES, _policy("object" + ".a" * 1_400_000 + " == 1"))


@attack(by="admin")
async def a_long_list(on: Target) -> Answer:
    """A literal list of a million numbers."""
    return await on.post(_POLICIES, _policy("[" + "1," * 1_400_000 + "1].size() > 0"))


@attack(by="admin")
async def a_long_map(on: Target) -> Answer:
    """A literal map of two hundred thousand entries."""
    return await on.post(_POLICIES, _policy("{" + ",".join(f"'k{n}':1" for n in range(250_000)) + "}.size() > 0"))


@attack(by="admin")
async def macros_in_macros(on: Target) -> Answer:
    """Macros in macros, which expand."""
    return await on.post(_POLICIES, _policy("[1].all(a, " * 3_000 + "true" + ")" * 3_000))


@attack(by="admin")
async def many_validations(on: Target) -> Answer:
    """A policy with fifty thousand expressions."""
    return await on.post(
        _POLICIES,
        _policy(
            "true", validations=[{"expression": f"object.metadata.name != 'a{n}'"} for n in range(many(60, values=2))]
        ),
    )


@attack(by="admin")
async def many_equal_validations(on: Target) -> Answer:
    """A policy with eighty thousand times the same short expression."""
    return await on.post(_POLICIES, _policy("true", validations=[{"expression": "1"}] * many(20, values=2)))


@attack(by="admin")
async def variables_that_double(on: Target) -> Answer:
    """Variables each of which is the one before, twice."""
    variables = [{"name": "v0", "expression": "'x' + object.metadata.name"}]
    variables += [{"name": f"v{n}", "expression": f"variables.v{n - 1} + variables.v{n - 1}"} for n in range(1, 40)]
    policy = _policy("variables.v39.size() > 0", variables=variables)
    answer = await on.post(_POLICIES, policy)
    name = policy["metadata"]["name"]
    binding = {"metadata": {"name": name}, "spec": {"policyName": name, "validationActions": ["Deny"]}}
    await on.post(_BINDINGS, binding)
    await on.post("/api/v1/namespaces/edited/configmaps", {"metadata": {"name": name}})
    await on.ask("DELETE", f"{_BINDINGS}/{name}")
    return answer


@attack(by="admin")
async def a_rule_over_a_large_object(on: Target) -> Answer:
    """A definition whose rule compares each item with each, and an object with thousands."""
    schema = {
        "type": "object",
        "properties": {"items": {"type": "array", "maxItems": 100_000, "items": {"type": "integer"}}},
        "x-kubernetes-validations": [{"rule": "self.items.all(a, self.items.exists(b, b == a))"}],
    }
    answer = await on.post(_CRDS, definition_tree("loops", schema=schema))
    await on.post(
        "/apis/example.io/v1/namespaces/edited/loops",
        {"apiVersion": "example.io/v1", "kind": "Loops", "metadata": {"name": "a"}, "items": list(range(many(8)))},
    )
    return answer


async def _costly_rule(on: Target) -> None:
    schema = {
        "type": "object",
        "properties": {"items": {"type": "array", "maxItems": 1000, "items": {"type": "integer"}}},
        "x-kubernetes-validations": [
            {"rule": "!has(self.items) || self.items.all(a, self.items.all(b, a == a && b == b))"}
        ],
    }
    await on.post(_CRDS, definition_tree("squares", schema=schema))
    await on.get("/apis/example.io/v1")


@attack(by="admin", prepare=_costly_rule)
async def a_rule_within_its_budget(on: Target) -> Answer:
    """An object on which an accepted rule works until its budget is spent."""
    body = {"apiVersion": "example.io/v1", "kind": "Squares", "metadata": {"name": "a"}, "items": list(range(1000))}
    return await on.post("/apis/example.io/v1/namespaces/edited/squares", body)


async def _small_rules(on: Target) -> None:
    item = {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "x-kubernetes-validations": [{"rule": "!has(self.a) || self.a.matches('^(a|b|c)*$')"}],
    }
    schema = {"type": "object", "properties": {"items": {"type": "array", "items": item, "maxItems": 1000}}}
    await on.post(_CRDS, definition_tree("rules", schema=schema))
    unbounded = {
        "type": "object",
        "properties": {
            "m": {
                "type": "object",
                "additionalProperties": {
                    "type": "string",
                    "maxLength": 1,
                    "x-kubernetes-validations": [{"rule": "true"}],
                },
            }
        },
    }
    await on.post(_CRDS, definition_tree("entries", schema=unbounded))
    await on.get("/apis/example.io/v1")


@attack(by="admin", prepare=_small_rules)
async def a_rule_for_each_item(on: Target) -> Answer:
    """An object with a hundred thousand items, each of which has a rule."""
    body = {
        "apiVersion": "example.io/v1",
        "kind": "Entries",
        "metadata": {"name": "a"},
        "m": {f"{n}": "" for n in range(many(11))},
    }
    return await on.post("/apis/example.io/v1/namespaces/edited/entries", body)


@attack(by="admin", prepare=_small_rules)
async def a_pattern_for_each_item(on: Target) -> Answer:
    """An object with items of long texts, each matched by a rule."""
    body = {
        "apiVersion": "example.io/v1",
        "kind": "Rules",
        "metadata": {"name": "a"},
        "items": [{"a": "abc" * 900}] * 1000,
    }
    return await on.post("/apis/example.io/v1/namespaces/edited/rules", body)
