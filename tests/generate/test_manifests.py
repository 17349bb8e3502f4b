"""What the generators write, on a real server: it is accepted as it is, and without a warning.

Covers: kubewright.generate
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import pytest

from kubewright import Field, Model, Resource, Spec
from kubewright._base import yaml
from kubewright.api.resource import KubeObject
from kubewright.cluster.planes.real import RealCluster
from kubewright.generate.crds.manifests import crd_for
from kubewright.generate.output import write_files
from kubewright.generate.project import project_files
from kubewright.manager.operator import Operator, Settings, load_operator

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]

OPERATOR = Path(__file__).parents[1] / "unit" / "generate" / "operators" / "cache_operator"


class PodSetSpec(Spec):
    """PodSetSpec defines the desired state of PodSet"""

    size: Annotated[int, Field(format="int32")]
    """Size is the size of the PodSet deployment"""


class PodSetStatus(Model):
    """PodSetStatus defines the observed state of PodSet"""

    nodes: Annotated[list[str], Field(required=True)] = []
    """Nodes are the names of the PodSet pods"""


class PodSet(Resource[PodSetSpec, PodSetStatus], group="apps.jicki.cn", version="v1alpha1"):
    """PodSet is the Schema for the podsets API"""

    spec: Annotated[PodSetSpec, Field(required=False)]


# As controller-gen 0.4.1 prints it for the same class in Go, without what belongs to the tool or the server.
PRINTED = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: podsets.apps.jicki.cn
spec:
  group: apps.jicki.cn
  names:
    kind: PodSet
    listKind: PodSetList
    plural: podsets
    singular: podset
  scope: Namespaced
  versions:
  - name: v1alpha1
    schema:
      openAPIV3Schema:
        description: PodSet is the Schema for the podsets API
        properties:
          apiVersion:
            description: 'APIVersion defines the versioned schema of this representation
              of an object. Servers should convert recognized schemas to the latest
              internal value, and may reject unrecognized values. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources'
            type: string
          kind:
            description: 'Kind is a string value representing the REST resource this
              object represents. Servers may infer this from the endpoint the client
              submits requests to. Cannot be updated. In CamelCase. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds'
            type: string
          metadata:
            type: object
          spec:
            description: PodSetSpec defines the desired state of PodSet
            properties:
              size:
                description: Size is the size of the PodSet deployment
                format: int32
                type: integer
            required:
            - size
            type: object
          status:
            description: PodSetStatus defines the observed state of PodSet
            properties:
              nodes:
                description: Nodes are the names of the PodSet pods
                items:
                  type: string
                type: array
            required:
            - nodes
            type: object
        type: object
    served: true
    storage: true
    subresources:
      status: {}
"""


def test_the_first_class_of_the_go_tutorials_gives_the_same_definition() -> None:
    assert crd_for(PodSet) == yaml.load(PRINTED)


class Kubectl:
    """kubectl with the administrator's kubeconfig."""

    def __init__(self, cluster: RealCluster) -> None:
        self._command = [str(cluster.kubectl), f"--kubeconfig={cluster.kubeconfig}"]

    def __call__(self, *arguments: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
        command = [*self._command, *map(str, arguments)]
        answer = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
        assert answer.returncode == 0, answer.stderr
        return answer


@pytest.fixture(scope="module")
def run(real_cluster: RealCluster) -> Kubectl:
    return Kubectl(real_cluster)


@pytest.fixture(scope="module")
def operator() -> Operator:
    """The operator under a name of its own, so that nothing is left in anybody's way."""
    name = f"caches-{uuid4().hex[:6]}"
    return load_operator(str(OPERATOR), settings=Settings(name=name))


@pytest.fixture(scope="module")
def config(operator: Operator, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The generated folder, and an overlay as a scaffolded project has it."""
    folder = tmp_path_factory.mktemp("generated") / "config"
    write_files(folder, project_files(operator, folder))
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "system"}}
    parts = ["../crd", "../rbac", "../webhook"]
    prefix, home = f"{operator.name}-", operator.namespace
    for name, more in {"default": {}, "certified": {"components": ["../certmanager"]}}.items():
        overlay = {"namespace": home, "namePrefix": prefix, "resources": [*parts, "namespace.yaml"], **more}
        files = {"kustomization.yaml": yaml.dump(overlay), "namespace.yaml": yaml.dump(namespace)}
        write_files(folder / name, {file: text.encode() for file, text in files.items()})
    return folder


def built(run: Kubectl, folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    trees: Sequence[dict[str, Any]] = yaml.load_all(run("kustomize", folder).stdout)
    return {(tree["kind"], tree["metadata"]["name"]): tree for tree in trees}


def test_the_overlay_leads_every_reference_to_its_object(run: Kubectl, operator: Operator, config: Path) -> None:
    trees = built(run, config / "default")
    service = {"name": f"{operator.name}-webhook-service", "namespace": operator.namespace}

    configuration = trees["ValidatingWebhookConfiguration", f"{operator.name}-validating-webhook-configuration"]
    crd = trees["CustomResourceDefinition", "caches.cache.example.io"]
    binding = trees["ClusterRoleBinding", f"{operator.name}-manager-rolebinding"]
    assert trees["Service", service["name"]]["metadata"]["namespace"] == service["namespace"]
    assert configuration["webhooks"][0]["clientConfig"]["service"].items() >= service.items()
    assert crd["spec"]["conversion"]["webhook"]["clientConfig"]["service"].items() >= service.items()
    assert ("ClusterRole", binding["roleRef"]["name"]) in trees
    (subject,) = binding["subjects"]
    assert subject["namespace"] == operator.namespace
    assert ("ServiceAccount", subject["name"]) in trees


def test_with_certificates_every_caller_is_told_whom_to_trust(run: Kubectl, operator: Operator, config: Path) -> None:
    trees = built(run, config / "certified")
    (certificate,) = (tree for (kind, _), tree in trees.items() if kind == "Certificate")
    (issuer,) = (name for kind, name in trees if kind == "Issuer")
    (service,) = (name for kind, name in trees if kind == "Service")
    told = {
        kind
        for (kind, _), tree in trees.items()
        if tree["metadata"].get("annotations", {}).get("cert-manager.io/inject-ca-from")
        == f"{operator.namespace}/{certificate['metadata']['name']}"
    }

    assert certificate["spec"]["issuerRef"]["name"] == issuer
    assert certificate["spec"]["dnsNames"][0] == f"{service}.{operator.namespace}.svc"
    assert told == {"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "CustomResourceDefinition"}


def test_the_server_takes_everything_without_a_warning(run: Kubectl, operator: Operator, config: Path) -> None:
    run("create", "namespace", operator.namespace)
    try:
        answer = run("apply", "--server-side", "--dry-run=server", "-k", config / "default")
    finally:
        run("delete", "namespace", operator.namespace, "--wait=false")

    elsewhere = run("apply", "--server-side", "--dry-run=server", "-k", config / "rbac" / "other_namespaces")
    assert answer.stderr + elsewhere.stderr == ""
    assert answer.stdout.count("serverside-applied") == len(built(run, config / "default"))
    assert elsewhere.stdout.count("serverside-applied") == 2


class NamedSpec(Spec):
    size: int = 1


class Older(
    Resource[NamedSpec, None],
    group="generated.example.io",
    version="v1alpha1",
    kind="Named",
    storage=False,
    served=False,
    deprecated=True,
    crd_annotations={"example.io/why": "test"},
):
    """A version that nobody gets any more."""


class Named(
    Resource[NamedSpec, None],
    group="generated.example.io",
    version="v1",
    object_names=Field(min_length=2, max_length=10, pattern="^[a-z]+$", description="Short."),
    crd_labels={"example.io/team": "test"},
):
    """A kind whose objects have short names."""


@pytest.fixture(scope="module")
def named(run: Kubectl) -> type[KubeObject]:
    answer = run("apply", "--server-side", "-f", "-", stdin=yaml.dump_all([crd_for(Named, Older), crd_for(PodSet)]))
    assert answer.stderr == ""
    run("wait", "--for=condition=Established", "--timeout=30s", "crd", "nameds.generated.example.io")
    # kubectl goes by what the server lists, which comes a moment later.
    while "nameds" not in run("api-resources", "--api-group=generated.example.io", "-o", "name").stdout:
        continue
    return Named


@pytest.mark.usefixtures("named")
def test_the_server_keeps_the_names_of_objects_as_the_class_says(run: Kubectl) -> None:
    manifest = {"apiVersion": "generated.example.io/v1", "kind": "Named", "metadata": {"name": "good"}}
    run("apply", "--dry-run=server", "-f", "-", stdin=yaml.dump(manifest))
    manifest["metadata"] = {"name": "much-too-long"}

    with pytest.raises(AssertionError, match=r"metadata.name: Too long: may not be more than 10 bytes"):
        run("apply", "--dry-run=server", "-f", "-", stdin=yaml.dump(manifest))
