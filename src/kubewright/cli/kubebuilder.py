"""What to type in place of a command or flag of kubebuilder or Operator SDK that is not here.

Many commands and flags are the same; these are not. `CommandOfKubebuilder` is a command of which kubebuilder has more
flags, and `answer_to` is asked by the tree of commands for a command that it does not have. Neither does anything but
end with wrong usage and a sentence: a flag that was taken and ignored would be a promise nobody keeps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, final

import click

__all__ = ("ANSWERS", "CREATE_API", "CREATE_WEBHOOK", "EDIT", "INIT", "CommandOfKubebuilder", "answer_to")

_THEIRS: Final = (
    "For a kind of somebody else, `kubewright generate models --crd FILE --output PACKAGE` writes its class."
)
_GENERATED: Final = "Manifests are generated at once, so leave it out."
_PLUGINS: Final = "There is one layout, in Python, and it has no plug-ins, so leave it out."
_GROUPS: Final = "Several groups need no switch, so leave it out."
_LICENSE: Final = "No file gets a licence header, so leave it out."
_NO_GO: Final = "Nothing of Go is needed, so leave it out."
_KUBEBUILDER_1: Final = (
    "A webhook that changes objects (--type=mutating) is --defaulting here, one that refuses them (--type=validating) "
    "is --validation; --operation is --operations."
)

INIT: Final = {
    "--repo": "There is no Go module to name, so leave it out. The name of the project is --project-name.",
    "--license": _LICENSE,
    "--fetch-deps": _NO_GO,
    "--skip-go-version-check": _NO_GO,
    "--plugins": _PLUGINS,
    "--multigroup": _GROUPS,
    "--project-version": "There is one form of projects, so leave it out.",
    "--component-config": "Every operator reads the file that its option --config names, so leave it out.",
}
"""Flags of `init`, in kubebuilder from version 1 on and in Operator SDK, and the sentence that answers each."""

CREATE_API: Final = {
    "--make": _GENERATED,
    "--plugins": _PLUGINS,
    "--pattern": _PLUGINS,
    "--example": "The class that is written has no fields of an example, so leave it out.",
    "--crd-version": "CRDs are those of apiextensions.k8s.io/v1, so leave it out.",
    "--external-api-path": _THEIRS,
    "--external-api-domain": _THEIRS,
    "--external-api-module": _THEIRS,
    "--image": "No Deployment is written; let the controller apply one, as the tutorial does, with this image.",
}
CREATE_WEBHOOK: Final = {
    "--type": _KUBEBUILDER_1,
    "--operation": _KUBEBUILDER_1,
    "--make": _GENERATED,
    "--plugins": _PLUGINS,
    "--legacy": "There is one layout of webhooks, so leave it out.",
    "--webhook-version": "Webhooks are those of admissionregistration.k8s.io/v1, so leave it out.",
    "--spoke": "No version is the hub, so leave it out: --conversion converts between this version and the others.",
    "--defaulting-path": "Say it in the code: @default(Kind, path=...).",
    "--validation-path": "Say it in the code: @validate(Kind, path=...).",
    "--external-api-path": _THEIRS,
    "--external-api-domain": _THEIRS,
    "--external-api-module": _THEIRS,
}
EDIT: Final = {"--multigroup": _GROUPS, "--license": _LICENSE, "--plugins": _PLUGINS}

_OLM: Final = (
    "There are no bundles for the Operator Lifecycle Manager. `kubewright deploy` installs the operator, and "
    "`make build-installer` writes one file for `kubectl apply`."
)
ANSWERS: Final = {
    "alpha webhook": f"Say `kubewright create webhook`. {_KUBEBUILDER_1}",
    "alpha generate": "Say `kubewright update`: it renders the project anew and merges your edits.",
    "alpha update": "Say `kubewright update`: it renders the project anew and merges your edits.",
    "alpha": "Nothing here is alpha; kubewright --help lists the commands.",
    "create config": "Manifests follow from the code: say `kubewright generate`.",
    "generate kustomize": "The folder config is ready for kustomize: say `kubewright generate`.",
    "generate bundle": _OLM,
    "generate packagemanifests": _OLM,
    "generate k8s": "There is no code to generate for a class; for the manifests, say `kubewright generate`.",
    "generate openapi": "The class is the schema; for the CRDs, say `kubewright generate crds`.",
    "bundle": _OLM,
    "olm": _OLM,
    "pkgman-to-bundle": _OLM,
    "catalog": _OLM,
    "scorecard": "Test the operator with pytest, on the cluster of `kubewright.testing.running`.",
    "cleanup": "Say `kubewright undeploy`.",
    "new": "Say `kubewright init --domain DOMAIN` in a new folder.",
    "add": "Say `kubewright create api --group GROUP --version VERSION --kind KIND`.",
    "build": "Say `make docker-build` with IMG=IMAGE in the project's folder.",
    "up": "Say `kubewright run`, or `kubewright dev` for a cluster that it brings along.",
    "test": "Say `make test`, or pytest, in the project's folder.",
    "migrate": "Say `kubewright update`: it renders the project anew and merges your edits.",
}
"""Commands of kubebuilder and of Operator SDK, from their first versions on, and the sentence that answers each."""


def answer_to(words: list[str]) -> str | None:
    """The sentence for a command line that begins with a command which is not here."""
    return next((ANSWERS[command] for end in (2, 1) if (command := " ".join(words[:end])) in ANSWERS), None)


@final
class CommandOfKubebuilder(click.Command):
    """A command that says what takes the place of a flag it does not have."""

    def __init__(self, *arguments: Any, answers: Mapping[str, str], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._answers = answers

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            answer = self._answers.get(error.option_name)
            if answer is None:
                raise
            raise click.UsageError(f"There is no {error.option_name}. {answer}", ctx) from None
