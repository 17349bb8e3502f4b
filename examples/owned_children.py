"""Owned children: one object of yours, several of Kubernetes' own that follow it.

    kubewright run --embedded examples/owned_children.py

    echo '
    apiVersion: web.example.io/v1
    kind: Site
    metadata: {name: shop, namespace: default}
    spec: {replicas: 3}
    ' | kubectl apply -f -

Look at `kubectl get site,deployment,service`. Scale the Deployment by hand, or delete the Service: both come back,
because `owns` wakes the owner when a child changes. Delete the Site: its children go too, by garbage collection.

The trap: code that asks "is it there? create it. is it different? update it." for every child and every field.
`ctx.apply` says what should be, sets the owner, leaves fields of others alone and sends nothing where all stands. What
is left for you is the child that is no longer wanted: nobody but you knows that it should go.
"""

from typing import Annotated

from kubewright import Context, Field, ObjectMeta, Resource, Spec, Status, controller
from kubewright.k8s.apps.v1 import Deployment, DeploymentSpec
from kubewright.k8s.core.v1 import Container, ContainerPort, PodSpec, PodTemplateSpec, Service, ServicePort, ServiceSpec
from kubewright.k8s.meta.v1 import LabelSelector


class SiteSpec(Spec):
    image: str = "nginx:1.29"
    replicas: Annotated[int, Field(ge=0, le=10)] = 1
    public: bool = True
    """Whether a Service leads to the pods."""


class SiteStatus(Status):
    ready: int = 0
    """How many pods are ready."""


class Site(
    Resource[SiteSpec, SiteStatus],
    group="web.example.io",
    version="v1",
    scale=("spec.replicas", "status.ready"),
    columns={"Ready": ".status.ready", "Image": ".spec.image"},
):
    """A web server."""


@controller(Site, owns=[Deployment, Service])
async def reconcile(site: Site, ctx: Context) -> None:
    deployment = await ctx.apply(deployment_for(site))
    if site.spec.public:
        await ctx.apply(service_for(site))
    else:
        await ctx.remove(Service, site.metadata.name)  # only if it is ours
    site.status.ready = deployment.status.ready_replicas or 0
    up = site.status.ready >= site.spec.replicas
    ctx.condition("Ready", up, message=f"{site.status.ready} of {site.spec.replicas} pods are ready")


def deployment_for(site: Site) -> Deployment:
    labels = {"site": site.metadata.name}
    container = Container(name="web", image=site.spec.image, ports=[ContainerPort(container_port=80)])
    return Deployment.named(
        site.metadata.name,
        spec=DeploymentSpec(
            replicas=site.spec.replicas,
            selector=LabelSelector(match_labels=labels),
            template=PodTemplateSpec(metadata=ObjectMeta(labels=labels), spec=PodSpec(containers=[container])),
        ),
    )


def service_for(site: Site) -> Service:
    spec = ServiceSpec(selector={"site": site.metadata.name}, ports=[ServicePort(port=80)])
    return Service.named(site.metadata.name, spec=spec)
