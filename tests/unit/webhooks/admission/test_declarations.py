"""Declaring webhooks: names, paths, options, and functions that stay functions."""

from __future__ import annotations

from typing import Any

import pytest

from kubewright import FieldErrors, Resource, Spec, Status, default, mutate, validate
from kubewright.errors import ConfigError, SchemaError
from kubewright.k8s.core.v1 import Pod
from kubewright.k8s.meta.v1 import LabelSelector


class CacheSpec(Spec):
    size: int = 1
    image: str = ""


class Cache(Resource[CacheSpec, Status], group="cache.example.io", version="v1alpha1"):
    """A cache."""


@default(Cache)
def default_cache(cache: Cache) -> None:
    """Fills in the image."""
    cache.spec.image = cache.spec.image or "memcached:1.6"


@validate(Cache, on=("create", "update", "delete"))
def validate_cache(cache: Cache, old: Cache | None, errors: FieldErrors) -> None:
    if cache.spec.size < 0:
        errors.add("spec.size", "must not be negative")
    if old is not None and old.spec.image != cache.spec.image:
        errors.forbidden("spec.image", "cannot change")


def test_names_and_paths_are_those_people_know() -> None:
    @mutate(Pod)
    def inject(pod: Pod) -> None: ...

    assert (default_cache.path, default_cache.type) == ("/mutate-cache-example-io-v1alpha1-cache", "mutating")
    assert (validate_cache.path, validate_cache.type) == ("/validate-cache-example-io-v1alpha1-cache", "validating")
    assert inject.path == "/mutate--v1-pod"
    assert default_cache.name == "default.v1alpha1.cache.cache.example.io"
    assert inject.name == "mutate.v1.pod.core"


def test_a_name_tells_two_webhooks_for_one_kind_apart() -> None:
    @validate(Cache, name="quota")
    def quota(cache: Cache) -> None: ...

    @validate(Cache, name="names.shop.example.io", path="/names")
    def names(cache: Cache) -> None: ...

    assert quota.name == "quota.v1alpha1.cache.cache.example.io"
    assert quota.path == "/validate-cache-example-io-v1alpha1-cache-quota"
    assert (names.name, names.path) == ("names.shop.example.io", "/names")


def test_defaults_are_the_safe_ones() -> None:
    assert default_cache.operations == ("CREATE", "UPDATE")
    assert validate_cache.operations == ("CREATE", "UPDATE", "DELETE")
    for declared in (default_cache, validate_cache):
        assert (declared.failure_policy, declared.match_policy, declared.side_effects) == ("Fail", "Equivalent", "None")
        assert (declared.timeout_seconds, declared.reinvocation_policy, declared.resources) == (5, "Never", None)


def test_options_are_kept_as_the_wire_has_them() -> None:
    @mutate(
        Pod,
        on=("create", "connect"),
        namespace_selector={"inject": "yes"},
        object_selector=LabelSelector(match_labels={"app": "web"}),
        match_conditions={"people": "!request.userInfo.username.startsWith('system:')"},
        resources=("pods/ephemeralcontainers",),
        failure_policy="Ignore",
        timeout_seconds=2,
    )
    def inject(pod: Pod) -> None: ...

    assert inject.operations == ("CREATE", "CONNECT")
    assert inject.namespace_selector == {"matchLabels": {"inject": "yes"}}
    assert inject.object_selector == {"matchLabels": {"app": "web"}}
    assert inject.match_conditions == (("people", "!request.userInfo.username.startsWith('system:')"),)
    assert (inject.resources, inject.failure_policy, inject.timeout_seconds) == (
        ("pods/ephemeralcontainers",),
        "Ignore",
        2,
    )


def test_a_declared_function_is_called_as_it_was_written() -> None:
    cache, errors = Cache.named("a", spec=CacheSpec(size=-1)), FieldErrors()

    default_cache(cache)
    validate_cache(cache, None, errors)

    assert cache.spec.image == "memcached:1.6"
    assert str(errors) == "spec.size: Invalid value: must not be negative"
    assert (default_cache.__name__, default_cache.__doc__) == ("default_cache", "Fills in the image.")


def test_a_reconciler_checks_and_defaults_without_webhooks() -> None:
    cache = Cache.named("a", spec=CacheSpec(size=-1))

    errors = validate_cache.check(cache, old=Cache.named("a", spec=CacheSpec(image="x")))
    filled = default_cache.defaulted(cache)

    assert [error.message for error in errors] == [
        "spec.size: Invalid value: -1: must not be negative",
        "spec.image: Forbidden: cannot change",
    ]
    assert (filled.spec.image, cache.spec.image) == ("memcached:1.6", "")
    assert not validate_cache.check(Cache.named("b"))


def test_what_only_a_webhook_has_cannot_be_checked_with() -> None:
    @validate(Cache)
    def asks(cache: Cache, client: Any) -> None: ...

    @validate(Cache)
    async def waits(cache: Cache) -> None: ...

    for declared in (asks, waits, default_cache):
        with pytest.raises(ConfigError, match="call it yourself"):
            declared.check(Cache.named("a"))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"on": "creation"}, "'creation' is no operation; use create, update, delete or connect"),
        ({"on": ()}, "names no operation"),
        ({"timeout_seconds": 31}, "timeout_seconds is 31; it can be 1 to 30"),
        ({"failure_policy": "Maybe"}, "failure_policy is 'Maybe'; choose Fail or Ignore"),
        ({"side_effects": "Some"}, "choose None or NoneOnDryRun"),
        ({"path": "no slash"}, "cannot be served"),
        ({"name": "Upper"}, "cannot be used"),
        ({"name": "two.parts"}, "needs three parts"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused_at_once(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):

        @validate(Cache, **options)
        def check(cache: Cache) -> None: ...


def test_a_parameter_that_nobody_can_give_is_refused_at_once() -> None:
    with pytest.raises(ConfigError, match="nothing called 'database' to give; a handler takes obj, new, old, request"):

        @validate(Cache)
        def check(cache: Cache, database: str) -> None: ...

    with pytest.raises(ConfigError, match=r"\*rest says nothing about what it wants"):

        @mutate(Cache)
        def change(cache: Cache, *rest: str) -> None: ...

    with pytest.raises(ConfigError, match="a defaulter refuses nothing"):

        @default(Cache)
        def fill(cache: Cache, errors: FieldErrors) -> None: ...


def yields(cache: Cache) -> Any:
    yield cache


@pytest.mark.parametrize(
    ("kind", "handler", "options", "words"),
    [
        (Cache, lambda: None, {}, "takes no arguments, so it sees no object; write it like def"),
        (Cache, CacheSpec, {}, "stands above CacheSpec, which is no function; write it like"),
        (Cache, 3, {}, r"@validate\(Cache\) stands above 3, which is no function"),
        (Cache, yields, {}, "yields yields, so that calling it does nothing; return instead"),
        (yields, yields, {}, r"@validate above yields does not say what it is for; write @validate\(Kind\)"),
        (
            Cache,
            validate_cache,
            {"failure_polcy": "Ignore"},
            "has no option failure_polcy; did you mean failure_policy?",
        ),
        (Cache, validate_cache, {"timeout_seconds": "5"}, "timeout_seconds is '5'; it can be 1 to 30"),
    ],
)
def test_what_is_no_webhook_is_refused_where_it_is_declared(
    kind: Any, handler: Any, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        validate(kind, **options)(handler)


@pytest.mark.parametrize("given", ["Cache", CacheSpec])
def test_a_webhook_is_for_a_kind(given: Any) -> None:
    with pytest.raises(SchemaError, match="Cache"):
        mutate(given)
