"""The embedded server refuses objects of built-in kinds as the real one does: both are asked about every mistake.

KUBEWRIGHT_RECORD=1 writes the real server's answers down, for tests/unit/apiserver/builtin/test_validation.py.

Covers: kubewright.apiserver.builtin.validation
"""

from __future__ import annotations

import base64
import gzip
import http.client
import importlib.util
import json
import os
import ssl
import sys
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from kubewright._base.files import write_private
from kubewright.cluster.planes.real import RealCluster

pytestmark = [pytest.mark.real, pytest.mark.slow]

Tree = dict[str, Any]


def _table() -> ModuleType:
    """The unit test's module, which has the cases and this server's answers."""
    file = Path(__file__).parents[2] / "unit/apiserver/builtin/test_validation.py"
    spec = importlib.util.spec_from_file_location("builtin_validation_table", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses and named tuples look their module up
    spec.loader.exec_module(module)
    return module


table = _table()
NAMESPACE: str = table.NAMESPACE
UNNAMED = ("reviews", "/binding", "/token")
"""What is asked, not stored: there is no base to look at."""
MEANINGFUL = ("APIService", "IPAddress")
"""Kinds whose names cannot be chosen freely."""
UNSTORED = {"resourceVersion", "uid", "creationTimestamp", "managedFields", "generation"}


class Server:
    """Plain requests to the real server, as its administrator."""

    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        pem = folder / "validation-admin.pem"
        encoded = user["client-certificate-data"], user["client-key-data"]
        write_private(pem, b"".join(map(base64.b64decode, encoded)))
        context.load_cert_chain(pem)
        host, _, port = cluster["server"].removeprefix("https://").partition(":")
        self._connection = http.client.HTTPSConnection(host, int(port), context=context)

    def ask(self, method: str, path: str, body: Tree | None = None) -> Tree:
        text = None if body is None else json.dumps(body).encode()
        self._connection.request(method, path, text, {"Content-Type": "application/json"})
        answer = self._connection.getresponse()
        tree: Tree = json.loads(answer.read())
        return tree

    def close(self) -> None:
        self._connection.close()


def refusal(answer: Tree) -> Tree | None:
    return answer if answer.get("kind") == "Status" and answer.get("status") == "Failure" else None


def without_identity(tree: Tree) -> Tree:
    """An object as it might have been sent: without what the server gave it."""
    made = as_sent(tree)
    made.pop("status", None)
    return made


def as_sent(answer: Tree) -> Tree:
    """A stored object without what is different for each: identity, addresses, and some statuses."""
    made = deepcopy(answer)
    for name in UNSTORED:
        (made.get("metadata") or {}).pop(name, None)
    if made["kind"] in table.FILLED:
        made.pop("status", None)
    if made["kind"] == "Service":
        for name in ("clusterIP", "clusterIPs", "healthCheckNodePort"):
            made["spec"].pop(name, None)
        for port in made["spec"]["ports"]:
            port.pop("nodePort", None)
    return made


@pytest.fixture(scope="module")
def server(real_cluster: RealCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Server(real_cluster.kubeconfig, tmp_path_factory.mktemp("admin"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def stored(server: Server) -> Iterator[dict[str, Tree]]:
    """The objects that the cases change, as the server stored them."""
    meta = {"name": NAMESPACE, "labels": {}}
    server.ask("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
    server.ask("POST", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", account)
    found: dict[str, Tree] = {}
    for name in dict.fromkeys(case.base for case in table.CASES if case.operation):
        base = table.BASES[name]
        answer = server.ask("POST", base["at"], base["object"])
        assert refusal(answer) is None, answer["message"]
        found[name] = answer
    yield found
    for name, tree in found.items():
        server.ask("DELETE", f"{table.BASES[name]['at']}/{tree['metadata']['name']}?gracePeriodSeconds=0")
    server.ask("DELETE", f"/api/v1/namespaces/{NAMESPACE}")


@pytest.fixture(scope="module")
def defaulted(server: Server, stored: dict[str, Tree]) -> dict[str, Tree]:
    """The bases with all their defaults."""
    found: dict[str, Tree] = {}
    for name, base in table.BASES.items():
        tree = deepcopy(base["object"])
        if not any(word in base["at"] for word in UNNAMED):
            if tree["kind"] not in MEANINGFUL:
                tree["metadata"]["name"] = f"x{tree['metadata']['name']}"  # the plain name is taken by the stored one
            answer = server.ask("POST", f"{base['at']}?dryRun=All&fieldValidation=Strict", tree)
            assert refusal(answer) is None, answer["message"]
            tree = without_identity(answer)
        found[name] = tree
    return found


def ask_about(
    case: Any, server: Server, stored: dict[str, Tree], defaulted: dict[str, Tree]
) -> tuple[Tree, Tree | None, Tree | None]:
    """The changed object, the one before, and the real server's refusal."""
    at = table.BASES[case.base]["at"]
    if not case.operation:
        tree = table.changed(defaulted[case.base], case.changes)
        query = "" if "reviews" in at else "?dryRun=All&fieldValidation=Strict"
        return tree, None, refusal(server.ask("POST", f"{at}{query}", tree))
    path = f"{at}/{stored[case.base]['metadata']['name']}"
    for _ in range(5):
        old = server.ask("GET", path)
        tree = table.changed(old, case.changes)
        suffix = f"/{case.subresource}" if case.subresource else ""
        answer = server.ask("PUT", f"{path}{suffix}?dryRun=All&fieldValidation=Strict", tree)
        if answer.get("code") != 409:
            break
    return tree, old, refusal(answer)


def test_every_mistake_gets_the_same_answer(
    server: Server, stored: dict[str, Tree], defaulted: dict[str, Tree]
) -> None:
    differences: list[str] = []
    record: Tree = {"bases": defaulted, "stored": {}, "answers": {}, "shapes": {}}
    for case in table.CASES:
        tree, old, theirs = ask_about(case, server, stored, defaulted)
        ours = table.our_answer(tree, old=old, subresource=case.subresource)
        record["answers"][case.id] = theirs
        if old is not None:
            record["stored"][case.base] = old
        if table.comparable(ours) != table.comparable(theirs):
            shown = [json.dumps(table.comparable(side), ensure_ascii=False) for side in (theirs, ours)]
            differences.append(f"{case.id}\n  real {shown[0]}\n  ours {shown[1]}")
    for case in table.SHAPES:
        tree = table.changed(defaulted[case.base], case.changes)
        answer = server.ask("POST", f"{table.BASES[case.base]['at']}?dryRun=All&fieldValidation=Strict", tree)
        theirs = record["shapes"][case.id] = as_sent(answer)
        ours = table.our_form(tree)
        if ours != theirs:
            shown = [json.dumps(side, ensure_ascii=False, sort_keys=True) for side in (theirs, ours)]
            differences.append(f"{case.id}\n  real {shown[0]}\n  ours {shown[1]}")

    if os.environ.get("KUBEWRIGHT_RECORD"):
        text = json.dumps(record, ensure_ascii=False, sort_keys=True).encode()
        table.ANSWERS_FILE.write_bytes(gzip.compress(text, 9, mtime=0))
    assert not differences, "\n".join(differences)
