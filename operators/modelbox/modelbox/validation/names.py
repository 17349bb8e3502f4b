"""The object's name becomes the name of a Service and the value of a label."""

from kubewright import FieldErrors
from kubewright.api import dns1035_label_errors

from modelbox.api.v1.modelbox import ModelBox

__all__ = ("check_name",)


def check_name(modelbox: ModelBox, errors: FieldErrors) -> None:
    """Services are named more strictly than most objects. A name that the server has yet to generate is not checked."""
    for problem in dns1035_label_errors(modelbox.metadata.name) if modelbox.metadata.name else ():
        errors.add("metadata.name", problem)
