"""What is asked before ModelBox objects are stored. The rules themselves are in `modelbox.defaults` and
`modelbox.validation`, because the reconciler needs them too."""

from kubewright import FieldErrors, Warnings, default, validate

from modelbox.api.v1.modelbox import ModelBox
from modelbox.defaults import fill_defaults
from modelbox.validation import check

__all__ = ("default_modelbox", "validate_modelbox")


@default(ModelBox)
def default_modelbox(modelbox: ModelBox) -> None:
    """Fill in what the defaults of the schema cannot."""
    fill_defaults(modelbox)


@validate(ModelBox)
def validate_modelbox(modelbox: ModelBox, old: ModelBox | None, errors: FieldErrors, warnings: Warnings) -> None:
    """Say what the rules of the schema cannot.

    What is stored already may stay: rules that became stricter must not keep labels from being edited.
    """
    if old is not None and old.spec == modelbox.spec:
        return
    check(modelbox, errors, old=old)
    spec = modelbox.spec
    if floats(spec.image):
        warnings.add(f"spec.image: {spec.image} names no fixed version, so that a restarted pod may run another one")
    if spec.replicas == 0:
        warnings.add("spec.replicas: with 0 replicas nothing answers")
    if spec.rolling_update == "100%":
        warnings.add(
            "spec.rollingUpdate: with 100% all pods may be replaced at once, so that nothing answers meanwhile"
        )


def floats(image: str) -> bool:
    """Whether an image may be another one tomorrow: no tag, or latest, and no digest."""
    if "@" in image:
        return False
    _, colon, tag = image.rpartition("/")[2].partition(":")
    return not colon or tag == "latest"
