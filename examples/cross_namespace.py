"""Cross-namespace references: use what lies in another namespace, if those who own it agree.

    kubewright run --embedded examples/cross_namespace.py

    echo '
    apiVersion: v1
    kind: List
    items:
    - apiVersion: v1
      kind: Namespace
      metadata: {name: team-a}
    - apiVersion: v1
      kind: ConfigMap
      metadata: {name: mirrors, namespace: default, annotations: {share.example.io/with: "team-a, team-b"}}
      data: {pypi: "https://pypi.example.io"}
    - apiVersion: share.example.io/v1
      kind: ConfigImport
      metadata: {name: mirrors, namespace: team-a}
      spec: {source: {namespace: default, name: mirrors}}
    ' | kubectl apply -f -

Look at `kubectl get configimport,configmap -n team-a`. Change the source and the copy follows; take team-a out of the
annotation and the copy is removed.

The traps: an owner in another namespace. It cannot be found there, so garbage collection would delete the child; hence
the copy is pulled by an object beside it, not pushed from the source. And the confused deputy: the operator may read
every namespace, those who write a ConfigImport may not. So the source has to say who may have it. A copy does not carry
that permission on.
"""

from kubewright import Context, Model, ObjectKey, Resource, Spec, Status, by_index, controller
from kubewright.k8s.core.v1 import ConfigMap

SHARED_WITH = "share.example.io/with"


class Source(Model):
    namespace: str
    name: str


class ConfigImportSpec(Spec):
    source: Source


class ConfigImport(
    Resource[ConfigImportSpec, Status],
    group="share.example.io",
    version="v1",
    columns={"Imported": '.status.conditions[?(@.type=="Imported")].reason'},
):
    """A copy of a ConfigMap of another namespace, under this object's name."""


def key_of_source(config_import: ConfigImport) -> ObjectKey:
    return ObjectKey(config_import.spec.source.namespace, config_import.spec.source.name)


@controller(
    ConfigImport,
    owns=[ConfigMap],
    indexes={"source": lambda config_import: [str(key_of_source(config_import))]},
    watches=[(ConfigMap, by_index("source", lambda config: [str(config.key)], everywhere=True))],
)
async def reconcile(config_import: ConfigImport, ctx: Context) -> None:
    source = await ctx.client.find(ConfigMap, key_of_source(config_import))
    if source is None or not is_shared(source, config_import.metadata.namespace):
        # One answer to both, or else anybody could find out what there is in any namespace.
        message = (
            f"{key_of_source(config_import)} does not exist, or is not shared with {config_import.metadata.namespace}"
        )
        ctx.condition("Imported", False, reason="NotShared", message=message)
        await ctx.remove(ConfigMap, config_import.metadata.name)
        return
    await ctx.apply(ConfigMap.named(config_import.metadata.name, data=source.data, binary_data=source.binary_data))
    ctx.condition("Imported", True, reason="Imported")


def is_shared(source: ConfigMap, namespace: str) -> bool:
    allowed = source.metadata.annotations.get(SHARED_WITH, "").split(",")
    return namespace in (name.strip() for name in allowed)
