"""The labels by which people, selectors and the operator itself know what belongs to a ModelBox."""

from kubewright import ObjectMeta

from modelbox.api.v1.modelbox import ModelBox
from modelbox.defaults import container_name_of

__all__ = ("OWNER_LABEL", "labels_of", "metadata_of_child", "selector_of")

OWNER_LABEL = "model.github.com/modelbox"


def selector_of(modelbox: ModelBox) -> dict[str, str]:
    """What selects its pods. A Deployment's selector can never be changed, so nothing in it depends on the spec."""
    return {OWNER_LABEL: modelbox.metadata.name}


def labels_of(modelbox: ModelBox) -> dict[str, str]:
    """What every child carries."""
    return {
        "app.kubernetes.io/name": container_name_of(modelbox),
        "app.kubernetes.io/instance": modelbox.metadata.name,
        "app.kubernetes.io/managed-by": "modelbox-operator",
        **selector_of(modelbox),
    }


def metadata_of_child(modelbox: ModelBox) -> ObjectMeta:
    """Children have the name of the object, whatever its spec says: so nothing is ever left behind under an old one."""
    return ObjectMeta(name=modelbox.metadata.name, namespace=modelbox.metadata.namespace, labels=labels_of(modelbox))
