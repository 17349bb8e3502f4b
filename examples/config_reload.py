"""Config reload: when a ConfigMap changes, roll out those who use it, found through an index.

    kubewright run --embedded examples/config_reload.py

    echo '
    apiVersion: v1
    kind: List
    items:
    - apiVersion: v1
      kind: ConfigMap
      metadata: {name: limits, namespace: default}
      data: {cpu: "2"}
    - apiVersion: reload.example.io/v1
      kind: App
      metadata: {name: web, namespace: default}
      spec: {image: "nginx:1.29", config: limits}
    ' | kubectl apply -f -

Look at `kubectl get replicasets -w` and change the ConfigMap: the pods are replaced, because their template carries a
hash of what they were configured with.

The traps: polling, or listing all Apps at each change of any ConfigMap. An index knows who uses which; `by_index` wakes
just those. And a ConfigMap that is missing is no error: say so in a condition and wait, its creation will wake the App.
"""

import hashlib
import json

from kubewright import Context, ObjectMeta, Resource, Spec, Status, by_index, controller
from kubewright.k8s.apps.v1 import Deployment, DeploymentSpec
from kubewright.k8s.core.v1 import ConfigMap, ConfigMapEnvSource, Container, EnvFromSource, PodSpec, PodTemplateSpec
from kubewright.k8s.meta.v1 import LabelSelector

HASH = "reload.example.io/config-hash"


class AppSpec(Spec):
    image: str
    config: str
    """The ConfigMap its environment comes from."""


class App(Resource[AppSpec, Status], group="reload.example.io", version="v1"):
    """A program that reads its configuration when it starts."""


def config_of(app: App) -> list[str]:
    return [app.spec.config]


@controller(App, owns=[Deployment], indexes={"config": config_of}, watches=[(ConfigMap, by_index("config"))])
async def reconcile(app: App, ctx: Context) -> None:
    config = await ctx.client.find(ConfigMap, app.spec.config)
    if config is None:  # what runs goes on running with what it was given
        ctx.condition("Configured", False, reason="Missing", message=f"there is no ConfigMap {app.spec.config}")
        return
    ctx.condition("Configured", True, reason="Found")
    await ctx.apply(deployment_for(app, config))


def deployment_for(app: App, config: ConfigMap) -> Deployment:
    labels = {"app": app.metadata.name}
    source = EnvFromSource(config_map_ref=ConfigMapEnvSource(name=app.spec.config))
    container = Container(name="app", image=app.spec.image, env_from=[source])
    return Deployment.named(
        app.metadata.name,
        spec=DeploymentSpec(
            selector=LabelSelector(match_labels=labels),
            template=PodTemplateSpec(
                metadata=ObjectMeta(labels=labels, annotations={HASH: hash_of(config)}),
                spec=PodSpec(containers=[container]),
            ),
        ),
    )


def hash_of(config: ConfigMap) -> str:
    # Of the data alone: the version of the object also changes with its labels, and nobody needs new pods for that.
    return hashlib.sha256(json.dumps(config.data or {}, sort_keys=True).encode()).hexdigest()[:16]
