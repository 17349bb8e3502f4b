"""What is asked before Application objects are stored, in whichever version they come.

The API server converts a v1beta1 object before it asks, so each rule is written once. Both functions are plain: the
reconciler calls them too, for objects that came in while no webhook was there.
"""

from collections import Counter

from kubewright import FieldErrors, default, validate

from application.api.v1alpha1.application import Application
from application.images import repository_of


@default(Application)
def default_application(application: Application) -> None:
    """Fill in what the defaults of the schema (one replica, deletion policy Delete) cannot."""
    application.spec.image = application.spec.image.strip()


@validate(Application)
def validate_application(application: Application, old: Application | None, errors: FieldErrors) -> None:
    """Say everything that is wrong at once; bounds and patterns are the schema's."""
    if application.metadata.deletion_timestamp is not None:
        # A rule that became stricter must not hold up a deletion, so only this is asked of what is on its way out.
        if old is not None and old.spec.deletion_policy != application.spec.deletion_policy:
            errors.forbidden("spec.deletionPolicy", "cannot change while the Application is being deleted")
        return
    if old is not None and old.spec == application.spec:
        return  # nor an edit of labels
    _check_image(application.spec.image, errors)
    _check_env([variable.name for variable in application.spec.env], errors)
    if application.spec.deletion_policy == "Retain" and application.spec.drain_seconds:
        errors.forbidden(
            "spec.drainSeconds", "pods that are retained are not drained; leave it out, or choose the policy Delete"
        )


def _check_image(image: str, errors: FieldErrors) -> None:
    path = "spec.image"
    if not image:
        errors.required(path, "name the image to run")
    elif any(character.isspace() for character in image):
        errors.add(path, "must not contain white space")
    elif not all((repository := repository_of(image)).split("/")):
        errors.add(path, "must name a repository, as in registry.example/team/shop:1")
    elif repository != repository.lower():
        errors.add(path, f"the repository {repository} must be lower case")


def _check_env(names: list[str], errors: FieldErrors) -> None:
    counts = Counter[str]()
    for place, name in enumerate(names):
        counts[name] += 1
        if counts[name] > 1:
            errors.duplicate(f"spec.env[{place}].name", name)
