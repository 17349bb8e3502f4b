"""What is wrong with a ModelBox beyond what its schema can tell: rules between fields.

Pure functions, shared by the validating webhook and by the reconciler, which may meet objects that no webhook has seen.
Each looks at one part of the spec and reports every fault it finds.
"""

from kubewright import FieldErrors

from modelbox.api.v1.modelbox import ModelBox
from modelbox.validation.containers import check_containers
from modelbox.validation.names import check_name
from modelbox.validation.ports import check_ports
from modelbox.validation.probes import check_probes
from modelbox.validation.services import check_service_change
from modelbox.validation.sizes import check_size

__all__ = ("check", "faults_of")


def check(modelbox: ModelBox, errors: FieldErrors, *, old: ModelBox | None = None) -> None:
    """Report everything that is wrong; `old` is the object before an update."""
    check_name(modelbox, errors)
    check_ports(modelbox.spec, errors)
    check_size(modelbox.spec, errors)
    check_containers(modelbox, errors)
    check_probes(modelbox.spec, errors)
    if old is not None:
        check_service_change(modelbox.spec, old.spec, errors)


def faults_of(modelbox: ModelBox) -> FieldErrors:
    """What is wrong with an object that is stored already."""
    errors = FieldErrors()
    check(modelbox, errors)
    return errors
