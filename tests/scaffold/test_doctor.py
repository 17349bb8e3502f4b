"""`kubewright doctor` on a cluster: what may not be looked at is a hint, and all else is checked and called.

Covers: kubewright.cli
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.planes import Plane, client, namespace, plane

from kubewright import Client, Config, ObjectKey
from kubewright._base import yaml
from kubewright.api.codec import from_tree
from kubewright.k8s.core.v1 import Endpoints, Service, ServiceAccount
from kubewright.k8s.rbac.v1 import ClusterRole, ClusterRoleBinding
from kubewright.testing import gone, until
from kubewright.webhooks.registration.targets import VALIDATING

__all__ = ("client", "namespace", "plane")

pytestmark = pytest.mark.timeout(120)

OPERATOR = '''
from kubewright import Context, Resource, Spec, Status, controller
from kubewright.k8s.core.v1 import ConfigMap

class Parcel(Resource[Spec, Status], group="{name}.example.io", version="v1"):
    """A parcel."""

@controller(Parcel, owns=[ConfigMap])
async def reconcile(parcel: Parcel, ctx: Context) -> None: ...
'''


@pytest.fixture
def name(tmp_path: Path) -> str:
    """An operator in this folder."""
    found = f"doctor{uuid4().hex[:8]}"
    (tmp_path / f"{found}.py").write_text(OPERATOR.format(name=found))
    (tmp_path / "pyproject.toml").write_text(f'[tool.kubewright]\noperator = "{found}"\n')
    return found


async def findings(folder: Path, command: str, kubeconfig: Path) -> dict[str, list[tuple[str, str]]]:
    """The results and sentences of a command, by what they are about."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "kubewright.cli", command, "--kubeconfig", str(kubeconfig), "-o", "json",
        cwd=folder, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    told, errors = await child.communicate()
    assert told, errors.decode()
    tree = json.loads(told)
    found: dict[str, list[tuple[str, str]]] = {}
    for finding in tree if isinstance(tree, list) else ():
        found.setdefault(finding["about"], []).append((finding["result"], finding["text"]))
    return found


async def account_kubeconfig(client: Client, plane: Plane, namespace: str, folder: Path) -> Path:
    """The kubeconfig of a service account that nobody has given any right."""
    await client.create(ServiceAccount.named("reader", namespace))
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/reader/token"
    answer = await client.request("POST", path, body=json.dumps(review).encode())
    tree = yaml.load(plane.kubeconfig.read_bytes())
    (user,) = tree["users"]
    user["user"] = {"token": json.loads(answer.body)["status"]["token"]}
    file = folder / "kubeconfig"
    file.write_text(json.dumps(tree))
    assert Config.load(kubeconfig=file).server == plane.config.server
    return file


async def test_a_service_account_learns_what_it_may_not_do(
    plane: Plane, client: Client, namespace: str, name: str, tmp_path: Path
) -> None:
    kubeconfig = await account_kubeconfig(client, plane, namespace, tmp_path)

    found = await findings(tmp_path, "doctor", kubeconfig)

    ((result, text),) = found["permissions"]
    assert result == "wrong"
    assert text.startswith("you may not ")
    assert f"watch on parcels in {name}.example.io" in text
    assert [result for result, _ in found["CRD"]] == ["hint"]
    assert f"parcels.{name}.example.io cannot be looked at: " in found["CRD"][0][1]
    ((result, text),) = found["webhooks"]
    assert (result, text.startswith("they cannot be looked at: ")) == ("hint", True)

    everything = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
    role = {
        "metadata": {"name": name},
        "rules": [{**everything, "apiGroups": ["", f"{name}.example.io", "events.k8s.io"]}],
    }
    await client.create(from_tree(ClusterRole, role))
    subject = {"kind": "ServiceAccount", "name": "reader", "namespace": namespace}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    binding = {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]}
    await client.create(from_tree(ClusterRoleBinding, binding))
    while (permissions := (await findings(tmp_path, "doctor", kubeconfig))["permissions"])[0][0] == "wrong":
        continue  # an authorizer learns of a role a moment after it was written
    assert permissions[0][0] == "good"


async def test_a_webhook_behind_a_service_that_nobody_stands_behind_is_named(
    plane: Plane, client: Client, namespace: str, name: str, tmp_path: Path
) -> None:
    await findings(tmp_path, "install", plane.kubeconfig)
    spec = {"ports": [{"port": 443}], "selector": {"app": "nobody"}}
    service: dict[str, Any] = {"metadata": {"name": "lonely", "namespace": namespace}, "spec": spec}
    await client.create(from_tree(Service, service))
    await until(client, Endpoints, ObjectKey(namespace, "lonely"))
    rule = {
        "apiGroups": [f"{name}.example.io"],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["parcels"],
    }
    webhooks = [
        {
            "name": f"{service}.{name}.example.io",
            "clientConfig": {"service": {"namespace": namespace, "name": service, "path": "/check"}},
            "failurePolicy": policy,
            "rules": [rule],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        for service, policy in (("absent", "Fail"), ("lonely", "Ignore"))
    ]
    made = await client.create(VALIDATING.named(name, content={"webhooks": webhooks}))
    try:
        found = await findings(tmp_path, "doctor", plane.kubeconfig)
    finally:
        await client.delete(made)
        await gone(client, VALIDATING, name)

    (absent, lonely) = found["webhooks"]
    assert absent[0] == "wrong"
    assert absent[1].startswith(f"absent.{name}.example.io of ValidatingWebhookConfiguration {name} is dead: ")
    assert 'services "absent" not found; every request that it is asked about is refused; see whether' in absent[1]
    assert lonely[0] == "hint"
    assert 'no endpoints available for service "' in lonely[1]
    assert "requests go on without it" in lonely[1]
