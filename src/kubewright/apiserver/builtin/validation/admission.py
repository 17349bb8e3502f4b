"""Validates webhook configurations and admission policies; `expressions.validation` validates their expressions.

Upstream: k8s.io/kubernetes/pkg/apis/admissionregistration/validation/validation.go.
"""

from __future__ import annotations

import re
from typing import Final

from kubewright.apiserver.builtin.validation.fields import (
    JSON,
    Errors,
    choice_errors,
    duplicate,
    each,
    forbidden,
    invalid,
    label_name_errors,
    label_selector_errors,
    long_name_errors,
    one_of,
    required,
    too_many,
)
from kubewright.apiserver.builtin.validation.formats import (
    dns_label_1035,
    dns_subdomain,
    path_segment,
)
from kubewright.apiserver.builtin.validation.webhook_clients import client_config_errors
from kubewright.apiserver.expressions.validation import PolicyExpressions, condition_errors

__all__ = (
    "mutating_webhooks_errors",
    "policy_binding_errors",
    "policy_errors",
    "validating_webhooks_errors",
)

_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_NO_SIDE_EFFECTS: Final = ("None", "NoneOnDryRun")
_REVIEWS: Final = ("v1", "v1beta1")
_REASONS: Final = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_IDENTIFIER: Final = re.compile("[_a-zA-Z][_a-zA-Z0-9]*")


def validating_webhooks_errors(configuration: JSON, old: JSON = None) -> Errors:
    """ValidateValidatingWebhookConfiguration."""
    return _webhooks(configuration, mutating=False)


def mutating_webhooks_errors(configuration: JSON, old: JSON = None) -> Errors:
    """ValidateMutatingWebhookConfiguration."""
    return _webhooks(configuration, mutating=True)


def _webhooks(configuration: JSON, *, mutating: bool) -> Errors:
    errors: Errors = []
    names: set[str] = set()
    for position, hook in enumerate(configuration.get("webhooks") or ()):
        place, name = f"webhooks[{position}]", hook.get("name", "")
        errors += _webhook(place, hook, mutating=mutating)
        errors += _review_versions(f"{place}.admissionReviewVersions", hook.get("admissionReviewVersions") or [])
        if name and name in names:
            errors.append(duplicate(f"{place}.name", name))
        names.add(name)
    return errors


def _webhook(path: str, hook: JSON, *, mutating: bool) -> Errors:
    errors = _qualified(f"{path}.name", hook.get("name", ""))
    for position, rule in enumerate(hook.get("rules") or ()):
        errors += _rule(f"{path}.rules[{position}]", rule)
    errors += choice_errors(f"{path}.failurePolicy", hook.get("failurePolicy"), ("Fail", "Ignore"))
    errors += choice_errors(f"{path}.matchPolicy", hook.get("matchPolicy"), ("Equivalent", "Exact"))
    effects = hook.get("sideEffects")
    if effects is None:
        errors.append(required(f"{path}.sideEffects", f"must specify one of {', '.join(_NO_SIDE_EFFECTS)}"))
    errors += choice_errors(f"{path}.sideEffects", effects, _NO_SIDE_EFFECTS)
    seconds = hook.get("timeoutSeconds")
    if seconds is not None and not 1 <= seconds <= 30:
        detail = "the timeout value must be between 1 and 30 seconds"
        errors.append(invalid(f"{path}.timeoutSeconds", seconds, detail))
    for name in ("namespaceSelector", "objectSelector"):
        errors += label_selector_errors(f"{path}.{name}", hook.get(name))
    if mutating:
        policy = hook.get("reinvocationPolicy")
        errors += choice_errors(f"{path}.reinvocationPolicy", policy, ("IfNeeded", "Never"))
    errors += client_config_errors(f"{path}.clientConfig", hook.get("clientConfig") or {})
    return errors + _match_conditions(f"{path}.matchConditions", hook.get("matchConditions") or ())


def _qualified(path: str, name: str) -> Errors:
    if not name:
        return [required(path)]
    if wrong := dns_subdomain(name):
        return [invalid(path, name, ",".join(wrong))]
    if name.count(".") < 2:
        return [invalid(path, name, "should be a domain with at least three segments separated by dots")]
    return []


def _review_versions(path: str, versions: list[str]) -> Errors:
    if not versions:
        return [required(path, f"must specify one of {', '.join(_REVIEWS)}")]
    errors: Errors = []
    for position, version in enumerate(versions):
        if version in versions[:position]:
            errors.append(invalid(f"{path}[{position}]", version, "duplicate version"))
        else:
            errors += each(f"{path}[{position}]", version, dns_label_1035(version))
    if not set(versions) & set(_REVIEWS):
        errors.append(invalid(path, versions, f"must include at least one of {', '.join(_REVIEWS)}"))
    return errors


def _rule(path: str, rule: JSON) -> Errors:
    operations = rule.get("operations") or []
    errors = [] if operations else [required(f"{path}.operations")]
    if len(operations) > 1 and "*" in operations:
        detail = "if '*' is present, must not specify other operations"
        errors.append(invalid(f"{path}.operations", operations, detail))
    for position, operation in enumerate(operations):
        if operation not in _OPERATIONS:
            errors.append(one_of(f"{path}.operations[{position}]", operation, _OPERATIONS))
    for name, word in (("apiGroups", "groups"), ("apiVersions", "versions")):
        values = rule.get(name) or []
        if not values:
            errors.append(required(f"{path}.{name}"))
        if len(values) > 1 and "*" in values:
            detail = f"if '*' is present, must not specify other API {word}"
            errors.append(invalid(f"{path}.{name}", values, detail))
    versions = rule.get("apiVersions") or ()
    errors += [required(f"{path}.apiVersions[{position}]") for position, one in enumerate(versions) if not one]
    errors += _resources(f"{path}.resources", rule.get("resources") or [])
    return errors + choice_errors(f"{path}.scope", rule.get("scope"), ("*", "Cluster", "Namespaced"))


def _resources(path: str, resources: list[str]) -> Errors:
    if not resources:
        return [required(path)]
    errors: Errors = []
    all_subresources: set[str] = set()
    of_all: set[str] = set()
    plain = False
    for position, entry in enumerate(resources):
        place = f"{path}[{position}]"
        if not entry:
            errors.append(required(place))
            continue
        resource, slash, sub = entry.partition("/")
        if not slash:
            plain = entry != "*"
            continue
        if resource in all_subresources:
            errors.append(invalid(place, entry, f"if '{resource}/*' is present, must not specify {entry}"))
        if sub in of_all:
            errors.append(invalid(place, entry, f"if '*/{sub}' is present, must not specify {entry}"))
        if sub == "*":
            all_subresources.add(resource)
        if resource == "*":
            of_all.add(sub)
    if len(resources) > 1 and "*/*" in resources:
        errors.append(invalid(path, resources, "if '*/*' is present, must not specify other resources"))
    if "*" in resources and plain:
        detail = "if '*' is present, must not specify other resources without subresources"
        errors.append(invalid(path, resources, detail))
    return errors


def _match_conditions(path: str, conditions: JSON, *, params: bool = False) -> Errors:
    errors = [too_many(path, len(conditions), 64)] if len(conditions) > 64 else []
    names: set[str] = set()
    for position, condition in enumerate(conditions):
        place, name = f"{path}[{position}]", condition.get("name", "")
        text = condition.get("expression", "")
        if not text.strip():
            errors.append(required(f"{place}.expression"))
        else:
            errors += condition_errors(f"{place}.expression", text, params=params)
        errors += label_name_errors(f"{place}.name", name) if name else [required(f"{place}.name")]
        if name and name in names:
            errors.append(duplicate(f"{place}.name", name))
        names.add(name)
    return errors


def policy_errors(policy: JSON, old: JSON = None) -> Errors:
    """ValidateValidatingAdmissionPolicy."""
    spec = policy.get("spec") or {}
    failure = spec.get("failurePolicy")
    errors = [required("spec.failurePolicy")] if failure is None else []
    errors += choice_errors("spec.failurePolicy", failure, ("Fail", "Ignore"))
    if spec.get("paramKind") is not None:
        errors += _param_kind("spec.paramKind", spec["paramKind"])
    constraints = spec.get("matchConstraints")
    if constraints is None:
        errors.append(required("spec.matchConstraints"))
    else:
        errors += _match_resources("spec.matchConstraints", constraints)
        if not constraints.get("resourceRules"):
            errors.append(required("spec.matchConstraints.resourceRules"))
    params = spec.get("paramKind") is not None
    errors += _match_conditions("spec.matchConditions", spec.get("matchConditions") or (), params=params)
    expressions = PolicyExpressions(params=params, composed=bool(spec.get("variables")))
    for position, variable in enumerate(spec.get("variables") or ()):
        errors += _variable(f"spec.variables[{position}]", variable, expressions)
    return errors + _validations(policy, spec, expressions)


def _validations(policy: JSON, spec: JSON, expressions: PolicyExpressions) -> Errors:
    validations, notes = spec.get("validations") or (), spec.get("auditAnnotations") or ()
    if not validations and not notes:
        detail = "validations or auditAnnotations must contain at least one item"
        return [required("spec.validations", detail), required("spec.auditAnnotations", detail)]
    errors: Errors = []
    for position, validation in enumerate(validations):
        errors += _validation(f"spec.validations[{position}]", validation, expressions)
    name = (policy.get("metadata") or {}).get("name", "")
    keys: set[str] = set()
    for position, note in enumerate(notes):
        place, key = f"spec.auditAnnotations[{position}]", note.get("key", "")
        errors += label_name_errors(f"{place}.key", f"{name}/{key}")
        if not note.get("valueExpression", "").strip():
            errors.append(required(f"{place}.valueExpression", "valueExpression is not specified"))
        else:
            errors += expressions.annotation(f"{place}.valueExpression", note["valueExpression"].strip())
        if key in keys:
            errors.append(duplicate(f"{place}.key", key))
        keys.add(key)
    return errors


def _validation(path: str, validation: JSON, expressions: PolicyExpressions) -> Errors:
    message, expression = validation.get("message", ""), validation.get("messageExpression", "")
    errors: Errors = []
    if not validation.get("expression", "").strip():
        errors.append(required(f"{path}.expression", "expression is not specified"))
    else:
        errors += expressions.validation(f"{path}.expression", validation["expression"])
    if expression and not expression.strip():
        errors.append(invalid(f"{path}.messageExpression", expression, "must be non-empty if specified"))
    elif expression:
        errors += expressions.message(f"{path}.messageExpression", expression)
    if message and not message.strip():
        errors.append(invalid(f"{path}.message", message, "must be non-empty if specified"))
    elif "\n" in message.strip() or "\r" in message.strip():
        errors.append(invalid(f"{path}.message", message, "must not contain line breaks"))
    return errors + choice_errors(f"{path}.reason", validation.get("reason"), _REASONS)


def _variable(path: str, variable: JSON, expressions: PolicyExpressions) -> Errors:
    name = variable.get("name", "")
    errors: Errors = []
    if not name.strip():
        errors.append(required(f"{path}.name", "name is not specified"))
    elif not _IDENTIFIER.fullmatch(name):
        errors.append(invalid(f"{path}.name", name, "must be a valid CEL identifier"))
    if not variable.get("expression", "").strip():
        errors.append(required(f"{path}.expression", "expression is not specified"))
    else:
        errors += expressions.variable(f"{path}.expression", name, variable["expression"])
    return errors


def _param_kind(path: str, kind: JSON) -> Errors:
    version, word = kind.get("apiVersion", ""), kind.get("kind", "")
    errors: Errors = []
    if not version:
        errors.append(required(f"{path}.apiVersion"))
    elif version.count("/") > 1:
        errors.append(invalid(f"{path}.apiVersion", version, f"unexpected GroupVersion string: {version}"))
    else:
        group, _, number = version.rpartition("/")
        if group and (wrong := dns_subdomain(group)):
            errors.append(invalid(f"{path}.apiVersion", group, ",".join(wrong)))
        if not number:
            errors.append(invalid(f"{path}.apiVersion", version, "version must be specified"))
        elif wrong := dns_label_1035(number):
            errors.append(invalid(f"{path}.apiVersion", number, ",".join(wrong)))
    if not word:
        errors.append(required(f"{path}.kind"))
    elif wrong := dns_label_1035(word.lower()):
        detail = f"may have mixed case, but should otherwise match: {','.join(wrong)}"
        errors.append(invalid(f"{path}.kind", word, detail))
    return errors


def _match_resources(path: str, match: JSON) -> Errors:
    policy = match.get("matchPolicy")
    errors = [required(f"{path}.matchPolicy")] if policy is None else []
    errors += choice_errors(f"{path}.matchPolicy", policy, ("Equivalent", "Exact"))
    for name in ("namespaceSelector", "objectSelector"):
        if match.get(name) is None:
            errors.append(required(f"{path}.{name}"))
        errors += label_selector_errors(f"{path}.{name}", match.get(name))
    for name in ("resourceRules", "excludeResourceRules"):
        for position, rule in enumerate(match.get(name) or ()):
            place = f"{path}.{name}[{position}]"
            names = rule.get("resourceNames") or []
            for index, resource in enumerate(names):
                errors += each(f"{place}.resourceNames[{index}]", resource, path_segment(resource))
                if resource in names[:index]:
                    errors.append(duplicate(f"{place}.resourceNames[{index}]", resource))
            errors += _rule(place, rule)
    return errors


def policy_binding_errors(binding: JSON, old: JSON = None) -> Errors:
    """ValidateValidatingAdmissionPolicyBinding."""
    spec = binding.get("spec") or {}
    name = spec.get("policyName", "")
    errors = long_name_errors("spec.policyName", name) if name else [required("spec.policyName")]
    if spec.get("paramRef") is not None:
        errors += _param_ref("spec.paramRef", spec["paramRef"])
    if spec.get("matchResources") is not None:
        errors += _match_resources("spec.matchResources", spec["matchResources"])
    return errors + _actions("spec.validationActions", spec.get("validationActions") or [])


def _actions(path: str, actions: list[str]) -> Errors:
    errors: Errors = []
    for position, action in enumerate(actions):
        if action not in ("Audit", "Deny", "Warn"):
            errors.append(one_of(f"{path}[{position}]", action, ("Audit", "Deny", "Warn")))
        if action in actions[:position]:
            errors.append(duplicate(f"{path}[{position}]", action))
    if {"Deny", "Warn"} <= set(actions):
        detail = (
            "must not contain both Deny and Warn (repeating the same validation failure information in the API "
            "response and headers serves no purpose)"
        )
        errors.append(invalid(path, actions, detail))
    return errors if actions else [*errors, required(path, "at least one validation action is required")]


def _param_ref(path: str, reference: JSON) -> Errors:
    name, selector = reference.get("name", ""), reference.get("selector")
    both = "name and selector are mutually exclusive"
    errors = each(f"{path}.name", name, path_segment(name)) if name else []
    if name and selector is not None:
        errors.append(forbidden(f"{path}.name", both))
    errors += label_selector_errors(f"{path}.selector", selector)
    if name and selector is not None:
        errors.append(forbidden(f"{path}.selector", both))
    if not name and selector is None:
        errors.append(required(path, "one of name or selector must be specified"))
    action, place = reference.get("parameterNotFoundAction", ""), f"{path}.parameterNotFoundAction"
    if not action:
        errors.append(required(place))
    elif action not in ("Allow", "Deny"):
        errors.append(one_of(place, action, ("Deny", "Allow")))
    return errors
