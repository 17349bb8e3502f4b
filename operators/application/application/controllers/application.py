"""The controller of Applications: it applies a Deployment and perhaps a Service, and drains the pods before deletion.

It only calls the other modules: `children` builds the children, `config` reads the ConfigMap, `drain` and `ownership`
handle deletion, `status` reports conditions and counts, `failures` says what each error means.
"""

from collections.abc import Iterable

from kubewright import Context, ObjectKey, Result, Watch, by_index, controller, for_each, on
from kubewright.api import KubeObject
from kubewright.errors import ApiError
from kubewright.k8s.apps.v1 import Deployment
from kubewright.k8s.core.v1 import ConfigMap, Service

from application.api.v1alpha1.application import Application
from application.children.deployment import desired_deployment
from application.children.service import desired_service
from application.config import Configuration, config_names, find_configuration
from application.drain import PodMetadata, drain
from application.failures import Failures, Problem, problem_of
from application.names import FIELD_MANAGER, FINALIZER, INSTANCE, identity_of
from application.ownership import find_child, release
from application.predicates import data_changed, desired_state_changed
from application.status import GAUGES, Findings, report, report_problem
from application.webhooks.v1alpha1.application import default_application, validate_application


def application_of(pod: KubeObject) -> Iterable[ObjectKey]:
    """The Application a pod belongs to, by its label: the pod's own owner is a ReplicaSet."""
    name = pod.metadata.labels.get(INSTANCE)
    return [ObjectKey(pod.metadata.namespace, name)] if name else []


@controller(
    Application,
    when=desired_state_changed,
    owns=[Deployment, Service],
    indexes={"config": config_names},
    watches=[
        Watch(ConfigMap, by_index("config"), when=data_changed),
        Watch(PodMetadata, for_each(application_of), when=on("deleted")),  # a drain may be waiting for it
    ],
    finalizer=FINALIZER,  # because of `finalize`, it is on the server before `reconcile` first runs
    field_manager=FIELD_MANAGER,
    gauges=GAUGES,
)
class ApplicationController:
    """Applies the children, and drains them before the Application is deleted."""

    async def reconcile(self, application: Application, ctx: Context) -> Result | None:
        """Bring the cluster in line with the Application. Runs after each change, and may run at any other time."""
        wanted = default_application.defaulted(application)
        configuration = await find_configuration(wanted, ctx)
        failures = Failures()
        faults = validate_application.check(wanted)
        if not faults and not wanted.spec.paused:
            with failures.collected():
                await keep_deployment(wanted, configuration, ctx)
            with failures.collected():
                await keep_service(wanted, ctx)
        findings = Findings(
            deployment=await find_child(Deployment, application, ctx),
            configuration=configuration,
            problem=Problem("InvalidSpec", str(faults)) if faults else failures.problem,
        )
        report(application, findings, ctx)
        return failures.verdict()

    async def finalize(self, application: Application, ctx: Context) -> None:
        """Runs until it succeeds once the Application is being deleted; then the finalizer is taken off."""
        try:
            if application.spec.deletion_policy == "Retain":
                await release_children(application, ctx)
            else:
                await drain(application, ctx)
        except ApiError as error:
            if problem := problem_of(error):
                report_problem(application, problem, ctx)
            raise


async def keep_deployment(application: Application, configuration: Configuration, ctx: Context) -> None:
    """Without its configuration, pods could not start: those that run are better left alone."""
    if configuration.missing:
        return
    before = await ctx.client.find(Deployment, application.key)
    after = await ctx.apply(desired_deployment(application, configuration.hash), adopt=identity_of(application))
    announce(before, after, ctx)


async def keep_service(application: Application, ctx: Context) -> None:
    """One with a port, none without; a foreign one is left alone."""
    port = application.spec.port
    if port is not None:
        before = await ctx.client.find(Service, application.key)
        after = await ctx.apply(desired_service(application, port), adopt=identity_of(application))
        announce(before, after, ctx)
    elif await ctx.remove(Service, application.metadata.name):
        ctx.event("Deleted", f"Service {application.metadata.name}, since no port is asked for")


async def release_children(application: Application, ctx: Context) -> None:
    """Let the children live on without an owner; an Application of the same name will find them by their label."""
    for kind in (Deployment, Service):
        if child := await find_child(kind, application, ctx):
            await release(child, application, ctx)


def announce(before: KubeObject | None, after: KubeObject, ctx: Context) -> None:
    """An event for what has really changed."""
    if before is None:
        ctx.event("Created", f"{after.kind} {after.metadata.name}")
    elif before.metadata.resource_version != after.metadata.resource_version:
        ctx.event("Updated", f"{after.kind} {after.metadata.name}")
