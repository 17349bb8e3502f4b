"""@default, @validate, @mutate: declare an admission webhook beside the function that answers it.

    @default(Cache)
    def default_cache(cache: Cache) -> None:
        cache.spec.image = cache.spec.image.strip() or "memcached:1.6"

    @validate(Cache, on=("create", "update", "delete"))
    def validate_cache(cache: Cache, old: Cache | None, errors: FieldErrors) -> None:
        if old is not None and old.spec.image != cache.spec.image:
            errors.forbidden("spec.image", "cannot change")

    @mutate(Pod, on="create", namespace_selector={"inject": "yes"}, failure_policy="Ignore")
    async def inject(pod: Pod, request: AdmissionRequest, client: Client) -> None: ...

    @mutate(Pod, reads=[Team])
    async def label(pod: Pod, cached: CacheReader) -> None: ...        # has every Team, in memory

A decorator only records. The function stays callable as it was written, so that a unit test, and a reconciler that runs
without webhooks, calls it like any other; `validate_cache.check(cache)` passes it fresh errors and returns them.
`admission.arguments` lists the parameters a handler may have. `registration.manifests` makes webhook configurations of
declarations, `admission.handler` answers requests with them. Conversion is in `conversion.declarations`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, Generic, Literal, ParamSpec, TypeVar, final

from kubewright._base.option_names import with_option_names
from kubewright.api.codec import copy_of, to_tree
from kubewright.api.model import Model
from kubewright.api.names import dns1123_subdomain_errors
from kubewright.api.resource import KubeObject, definition_of
from kubewright.errors import ConfigError
from kubewright.webhooks.admission.arguments import Arguments, Parameters
from kubewright.webhooks.admission.field_errors import FieldErrors

__all__ = ("AdmissionDeclaration", "default", "mutate", "validate")

P = ParamSpec("P")
R = TypeVar("R")

Verb = Literal["default", "mutate", "validate"]
WebhookType = Literal["mutating", "validating"]
FailurePolicy = Literal["Fail", "Ignore"]
MatchPolicy = Literal["Equivalent", "Exact"]
SideEffects = Literal["None", "NoneOnDryRun"]
Reinvocation = Literal["Never", "IfNeeded"]
Selector = Mapping[str, Any] | Model

_OPERATIONS: Final = ("CREATE", "UPDATE", "DELETE", "CONNECT", "*")
_PATH: Final = re.compile(r"(/[A-Za-z0-9_-]+)+")
_CHOICES: Final = {
    "failure_policy": ("Fail", "Ignore"),
    "match_policy": ("Equivalent", "Exact"),
    "side_effects": ("None", "NoneOnDryRun"),
    "reinvocation_policy": ("Never", "IfNeeded"),
}


@final
class AdmissionDeclaration(Generic[P, R]):
    """A declared admission webhook. Calling it calls the handler."""

    declares_webhook: ClassVar[bool] = True
    """How a manager tells it from other runnables without importing this module."""

    def __init__(
        self,
        kind: type[KubeObject],
        handler: Callable[P, R],
        *,
        verb: Verb,
        operations: Sequence[str],
        name: str | None = None,
        path: str | None = None,
        failure_policy: FailurePolicy = "Fail",
        match_policy: MatchPolicy = "Equivalent",
        side_effects: SideEffects = "None",
        timeout_seconds: int = 5,
        namespace_selector: Selector | None = None,
        object_selector: Selector | None = None,
        match_conditions: Mapping[str, str] | None = None,
        reinvocation_policy: Reinvocation = "Never",
        resources: Sequence[str] | None = None,
        reads: Sequence[type[KubeObject]] = (),
        ratchet: bool = True,
    ) -> None:
        """See `mutate` and `validate` for the options."""
        self.kind = kind
        self.handler = handler
        self.verb: Verb = verb
        self.type: WebhookType = "validating" if verb == "validate" else "mutating"
        self.operations = tuple(operations)
        """As in AdmissionRequest.operation: CREATE, UPDATE, DELETE, CONNECT."""
        self.name = _full_name(kind, verb, name)
        """A domain name, unique in the cluster."""
        self.path = path or _default_path(kind, self.type, name)
        self.failure_policy: FailurePolicy = failure_policy
        self.match_policy: MatchPolicy = match_policy
        self.side_effects: SideEffects = side_effects
        self.timeout_seconds = timeout_seconds
        self.namespace_selector = _selector(namespace_selector)
        """A label selector as plain data, or None."""
        self.object_selector = _selector(object_selector)
        self.match_conditions = tuple((match_conditions or {}).items())
        """Pairs of a name and a CEL expression."""
        self.reinvocation_policy: Reinvocation = reinvocation_policy
        self.resources = None if resources is None else tuple(resources)
        """Such as `pods/ephemeralcontainers`; None for the kind's own resource alone."""
        self.reads = tuple(reads)
        """Kinds that the manager caches for the handler."""
        self.ratchet = ratchet
        self.parameters = Parameters(handler, what=self._what)
        self.is_async = inspect.iscoroutinefunction(handler)
        self._check()
        self.__doc__ = handler.__doc__
        self.__name__ = getattr(handler, "__name__", verb)
        self.__qualname__ = getattr(handler, "__qualname__", self.__name__)
        self.__module__ = handler.__module__
        self.__wrapped__ = handler

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.handler(*args, **kwargs)

    def check(self, obj: KubeObject, *, old: KubeObject | None = None) -> FieldErrors:
        """The field errors that a synchronous validator reports for an object, without any webhook.

        For a reconciler that may get objects no webhook has checked: `if errors := validate_cache.check(cache): ...`
        """
        if self.verb != "validate" or self.is_async:
            raise ConfigError(f"{self._what} is no synchronous validator, so check() cannot use it; call it yourself")
        if self.parameters.names & {"cached", "client", "request"}:
            raise ConfigError(
                f"{self._what} asks for a request, a client or a cache, which only a webhook has; call it yourself"
            )
        arguments = Arguments(obj=obj, new=obj, old=old)
        self.parameters.call(self.handler, arguments)
        return arguments.errors.with_values_of(to_tree(obj)) if arguments.errors else arguments.errors

    def defaulted(self, obj: Any) -> Any:
        """A copy of an object with the defaults of a synchronous defaulter; the object itself does not change."""
        if self.verb != "default" or self.is_async:
            raise ConfigError(f"{self._what} is no synchronous defaulter; call it yourself")
        arguments = Arguments(obj=copy_of(obj))
        arguments.new = arguments.obj
        result = self.parameters.call(self.handler, arguments)
        return arguments.obj if result is None else result

    @property
    def _what(self) -> str:
        return f"@{self.verb}({self.kind.__name__}) {getattr(self.handler, '__qualname__', '')}".rstrip()

    def _check(self) -> None:
        for option, choices in _CHOICES.items():
            if getattr(self, option) not in choices:
                raise ConfigError(f"{self._what}: {option} is {getattr(self, option)!r}; choose {' or '.join(choices)}")
        if self.timeout_seconds not in range(1, 31):
            raise ConfigError(f"{self._what}: timeout_seconds is {self.timeout_seconds!r}; it can be 1 to 30")
        if _PATH.fullmatch(self.path) is None:
            raise ConfigError(f"{self._what}: the path {self.path!r} cannot be served; write one like /validate-cache")
        if "errors" in self.parameters.names and self.verb == "default":
            raise ConfigError(f"{self._what}: a defaulter refuses nothing; move what asks for errors to a validator")
        if ("cached" in self.parameters.names) != bool(self.reads):
            raise ConfigError(
                f"{self._what}: `reads` and the parameter `cached` belong together; "
                "write reads=[...] and a parameter `cached`, or neither"
            )
        if self.reads and not self.is_async:
            raise ConfigError(
                f"{self._what}: the event loop writes the cache, so a handler with `reads` must run on the loop, "
                "not in a thread; make it async"
            )
        if not self.operations:
            raise ConfigError(f"{self._what}: `on` names no operation; choose from create, update, delete, connect")

    def __repr__(self) -> str:
        return f"<{self.type} webhook {self.name} at {self.path}>"


@with_option_names
def default(
    kind: type[KubeObject],
    *,
    on: str | Sequence[str] = ("create", "update"),
    name: str | None = None,
    path: str | None = None,
    failure_policy: FailurePolicy = "Fail",
    match_policy: MatchPolicy = "Equivalent",
    side_effects: SideEffects = "None",
    timeout_seconds: int = 5,
    namespace_selector: Selector | None = None,
    object_selector: Selector | None = None,
    match_conditions: Mapping[str, str] | None = None,
    reinvocation_policy: Reinvocation = "Never",
    resources: Sequence[str] | None = None,
    reads: Sequence[type[KubeObject]] = (),
) -> Callable[[Callable[P, R]], AdmissionDeclaration[P, R]]:
    """Fill in defaults that the schema cannot express; the options are those of `mutate`."""
    return _decorator(kind, "default", on, locals())


@with_option_names
def mutate(
    kind: type[KubeObject],
    *,
    on: str | Sequence[str] = "create",
    name: str | None = None,
    path: str | None = None,
    failure_policy: FailurePolicy = "Fail",
    match_policy: MatchPolicy = "Equivalent",
    side_effects: SideEffects = "None",
    timeout_seconds: int = 5,
    namespace_selector: Selector | None = None,
    object_selector: Selector | None = None,
    match_conditions: Mapping[str, str] | None = None,
    reinvocation_policy: Reinvocation = "Never",
    resources: Sequence[str] | None = None,
    reads: Sequence[type[KubeObject]] = (),
) -> Callable[[Callable[P, R]], AdmissionDeclaration[P, R]]:
    """Change objects of a kind before they are stored, often of a kind that is not the operator's own.

    `name` tells several webhooks for one kind apart: a word, or a whole domain name. `failure_policy="Ignore"` lets the
    request through when the webhook cannot be called, or fails. Selectors are `{"label": "value"}`, or whole
    label selectors; `match_conditions` are CEL expressions by name. `resources` names others than the kind's own,
    such as `("pods/ephemeralcontainers",)`. `reads` names kinds that the operator watches for the handler, which
    finds them in its parameter `cached`.
    """
    return _decorator(kind, "mutate", on, locals())


@with_option_names
def validate(
    kind: type[KubeObject],
    *,
    on: str | Sequence[str] = ("create", "update"),
    name: str | None = None,
    path: str | None = None,
    failure_policy: FailurePolicy = "Fail",
    match_policy: MatchPolicy = "Equivalent",
    side_effects: SideEffects = "None",
    timeout_seconds: int = 5,
    namespace_selector: Selector | None = None,
    object_selector: Selector | None = None,
    match_conditions: Mapping[str, str] | None = None,
    resources: Sequence[str] | None = None,
    reads: Sequence[type[KubeObject]] = (),
    ratchet: bool = True,
) -> Callable[[Callable[P, R]], AdmissionDeclaration[P, R]]:
    """Report what is wrong with an object before it is stored; the options are those of `mutate`.

    The handler is not called for an update that changes nothing but finalizers, owners or status, nor, while the object
    is being deleted, for one that changes nothing but metadata: a rule that became stricter must not block a deletion.
    `ratchet=False` calls it for those too.
    """
    return _decorator(kind, "validate", on, locals())


def _decorator(
    kind: type[KubeObject], verb: Verb, on: str | Sequence[str], keywords: dict[str, Any]
) -> Callable[[Callable[P, R]], AdmissionDeclaration[P, R]]:
    if inspect.isfunction(kind):
        raise ConfigError(f"@{verb} above {kind.__name__} does not say what it is for; write @{verb}(Kind)")
    definition_of(kind)
    options = {option: value for option, value in keywords.items() if option not in ("kind", "on")}
    operations = [word.upper() for word in ((on,) if isinstance(on, str) else on)]
    for word in operations:
        if word not in _OPERATIONS:
            raise ConfigError(
                f"@{verb}({kind.__name__}): {word.lower()!r} is no operation; use create, update, delete or connect"
            )

    def declare(handler: Callable[P, R]) -> AdmissionDeclaration[P, R]:
        _check_handler(f"@{verb}({kind.__name__})", handler)
        return AdmissionDeclaration(kind, handler, verb=verb, operations=operations, **options)

    return declare


def _check_handler(where: str, handler: object) -> None:
    """A function of an object, which returns."""
    if not callable(handler) or isinstance(handler, type):
        shown = handler.__name__ if isinstance(handler, type) else repr(handler)
        raise ConfigError(f"{where} stands above {shown}, which is no function; write it like def check(obj): ...")
    if inspect.isgeneratorfunction(handler) or inspect.isasyncgenfunction(handler):
        raise ConfigError(
            f"{where}: {getattr(handler, '__name__', handler)} yields, so that calling it does nothing; return instead"
        )
    if not inspect.signature(handler).parameters:
        name = getattr(handler, "__name__", "it")
        raise ConfigError(f"{where}: {name} takes no arguments, so it sees no object; write it like def {name}(obj)")


def _full_name(kind: type[KubeObject], verb: str, name: str | None) -> str:
    gvk = definition_of(kind).gvk
    first = name or verb
    # The API server requires a fully qualified name, that is three parts at least (kubernetes:
    # pkg/apis/admissionregistration/validation/validation.go); the core group has no name of its own.
    full = first if "." in first else f"{first}.{gvk.version}.{gvk.kind.lower()}.{gvk.group or 'core'}"
    if problems := dns1123_subdomain_errors(full):
        raise ConfigError(f"@{verb}({kind.__name__}): the name {full!r} cannot be used: {problems[0]}")
    if full.count(".") < 2:
        raise ConfigError(
            f"@{verb}({kind.__name__}): the name {full!r} needs three parts, such as quota.shop.example.io"
        )
    return full


def _default_path(kind: type[KubeObject], type_: WebhookType, name: str | None) -> str:
    gvk = definition_of(kind).gvk
    start = "mutate" if type_ == "mutating" else "validate"
    # kubebuilder's path (/mutate--v1-pod for the core group), so that ported manifests keep working.
    path = f"/{start}-{gvk.group.replace('.', '-')}-{gvk.version}-{gvk.kind.lower()}"
    return f"{path}-{name.replace('.', '-')}" if name else path


def _selector(selector: Selector | None) -> dict[str, Any] | None:
    if selector is None:
        return None
    tree = to_tree(selector) if isinstance(selector, Model) else dict(selector)
    return tree if not tree or {"matchLabels", "matchExpressions"} & tree.keys() else {"matchLabels": tree}
