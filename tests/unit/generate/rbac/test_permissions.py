"""Roles from declarations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from kubewright._base import yaml
from kubewright.generate.rbac.grants import Grant, covered_by, grants_of
from kubewright.generate.rbac.permissions import HOME, Access, access_of, roles_of
from kubewright.generate.rbac.roles import rbac_files, services_grants
from kubewright.manager.operator import Operator, load_operator


def operator_of(folder: Path, name: str, text: str, **facts: Any) -> Operator:
    (folder / f"{name}.py").write_text(text)
    return msgspec.structs.replace(load_operator(str(folder / f"{name}.py")), **facts)


def granted(access: Access, resource: str) -> str:
    return " ".join(sorted(grant.verb for grant in access.cluster if grant.resource == resource))


START = """
from kubewright import Context, Owned, Resource, Spec, Status, controller, rbac
from kubewright.k8s.apps.v1 import Deployment
from kubewright.k8s.core.v1 import ConfigMap, Node, Secret, Service
import kubewright.k8s.batch.v1 as batch

class WebSpec(Spec):
    size: int = 1

class Web(Resource[WebSpec, Status], group="web.example.io", version="v1"):
    pass

class Bare(Resource[WebSpec, None], group="web.example.io", version="v1", scope="Cluster"):
    pass
"""


def test_what_is_declared_and_called_is_all_that_is_granted(operator: Operator) -> None:
    access = access_of(operator)

    assert {grant.resource: granted(access, grant.resource) for grant in access.cluster if grant.resource} == {
        "caches": "get list patch watch",
        "caches/finalizers": "update",
        "caches/status": "patch",
        "configmaps": "get list watch",
        "deployments": "create delete get list patch watch",
        "events": "create patch",
        "namespaces": "get list watch",
        "pods/log": "get",
        "secrets": "get list watch",
    }
    assert Grant("", "", "get", url="/metrics") in access.cluster
    assert access.namespaces == {
        "kube-system": frozenset([Grant("coordination.k8s.io", "leases", "delete", "old-lock")])
    }


def test_a_controller_without_status_children_and_clean_up_only_reads(tmp_path: Path) -> None:
    found = operator_of(
        tmp_path, "reading_operator", START + "@controller(Bare)\nasync def reconcile(bare, ctx): pass\n"
    )

    assert granted(access_of(found), "bares") == "get list watch"
    assert {grant.resource for grant in access_of(found).cluster} == {"bares", "events"}


def test_what_the_manager_watches_of_a_kind_is_granted_where_it_watches_it(tmp_path: Path) -> None:
    code = """
from kubewright import Manager, Scope, Watch
from kubewright.manager import setup_with_manager

def to_none(change): return ()

@controller(Web, watches=[Watch(Secret, to_none), Watch(ConfigMap, to_none, scope=Scope(namespaces=("*",)))])
async def reconcile(web: Web, ctx: Context) -> None: ...

@setup_with_manager(scopes={Secret: Scope(namespaces=("vault",)), ConfigMap: Scope(namespaces=("vault",))})
def setup(manager: Manager) -> None: ...
"""
    access = access_of(operator_of(tmp_path, "set_up_operator", START + code))

    assert granted(access, "secrets") == ""
    assert granted(access, "configmaps") == "get list watch"
    assert {grant.resource for grant in access.namespaces["vault"]} == {"secrets"}


@pytest.mark.parametrize("scope", ["cluster", "namespace"])
def test_what_is_watched_in_namespaces_that_the_declaration_names_may_be_read_only_there(
    tmp_path: Path, scope: str
) -> None:
    code = """
from kubewright import Scope, Watch
from kubewright.controllers.mapping import to_self

@controller(Bare, watches=[
    Watch(Secret, to_self, scope=Scope(namespaces=("vault", "safe"), labels="a=b")),
    Watch(ConfigMap, to_self, scope=Scope(namespaces=("*",))),
    Watch(Service, to_self, scope=Scope(labels="a=b")),
    Watch(Node, to_self, scope=Scope(namespaces=("vault",))),
])
async def reconcile(bare, ctx): pass
"""
    found = operator_of(tmp_path, f"scoped_{scope}_operator", START + code, scope=scope)

    access = access_of(found)

    reading = "get list watch"
    wide = {name: granted(access, name) for name in ("secrets", "configmaps", "services", "nodes")}
    home = {} if scope == "cluster" else {"services": reading}
    assert wide == {
        "secrets": "",
        "configmaps": reading,
        "services": reading,
        "nodes": reading,
        **dict.fromkeys(home, ""),
    }
    for place in ("vault", "safe"):
        assert {str(grant.verb) for grant in access.namespaces[place]} == {*reading.split()}
        assert {grant.resource for grant in access.namespaces[place]} == {"secrets"}
    if home:
        assert "services" in {grant.resource for grant in access.namespaces[HOME]}


SCOPED = """
from kubewright import Scope

VAULT = Scope(namespaces=("vault",))

@controller(Web, owns=[ConfigMap, Owned(Secret, scope=VAULT)], scope=Scope(namespaces=("a", "b")))
class Webs:
    async def reconcile(self, web: Web, ctx: Context) -> None:
        await ctx.client.get(Service, "main", namespace="a")
        await ctx.delete(child_of(web))

    async def finalize(self, web: Web, ctx: Context) -> None: ...
"""


def test_a_controller_in_some_namespaces_needs_nothing_elsewhere(tmp_path: Path) -> None:
    access = access_of(operator_of(tmp_path, "limited_operator", START + SCOPED))

    assert access.cluster == frozenset()
    assert access.namespaces.keys() == {"a", "b", "vault"}
    assert access.namespaces["a"] == access.namespaces["b"]
    found = {name: {grant.verb for grant in access.namespaces["a"] if grant.resource == name} for name in (
        "webs", "webs/status", "webs/finalizers", "configmaps", "secrets", "services", "events",
    )}  # fmt: skip
    assert found == {
        "webs": {"get", "list", "watch", "patch"},
        "webs/status": {"patch"},
        "webs/finalizers": {"update"},
        "configmaps": {"get", "list", "watch", "create", "patch", "delete"},
        "secrets": {"create", "patch", "delete"},
        "services": {"get", "list", "watch"},
        "events": {"create", "patch"},
    }
    assert {(grant.resource, grant.verb) for grant in access.namespaces["vault"]} == {
        ("secrets", verb) for verb in ("get", "list", "watch")
    }


def test_beside_a_controller_for_all_namespaces_one_in_some_needs_nothing_more(tmp_path: Path) -> None:
    code = SCOPED + "@controller(Web, name='all', owns=[ConfigMap])\nasync def everywhere(web, ctx): pass\n"

    access = access_of(operator_of(tmp_path, "both_operator", START + code))

    assert granted(access, "webs") == "get list watch"
    assert granted(access, "events") == "create patch"
    assert "events" not in {grant.resource for grant in access.namespaces["a"]}
    assert {(grant.resource, grant.verb) for grant in access.namespaces["a"]} >= {("webs", "patch")}


def test_children_that_are_watched_for_another_reason_too_are_watched_in_one_scope(tmp_path: Path) -> None:
    code = """
from kubewright import Scope, Watch

HERE = Scope(namespaces=("a",), labels="x=y")

@controller(Web, owns=[ConfigMap, Web], watches=[Watch(ConfigMap, lambda change: [])], scope=HERE)
async def reconcile(web: Web, ctx: Context) -> None: ...
"""
    operator = operator_of(tmp_path, "twofold_operator", START + code)
    (declaration,) = operator.controllers

    assert all(len(scopes) == 1 for scopes in declaration.scopes.values())
    access = access_of(operator)
    assert granted(access, "configmaps") == "get list watch"
    assert {grant.verb for grant in access.namespaces["a"] if grant.resource == "configmaps"} == {"create", "patch"}


def test_children_are_watched_where_their_owners_are(tmp_path: Path) -> None:
    (declaration,) = operator_of(tmp_path, "narrow_operator", START + SCOPED).controllers

    scopes = {
        kind.__name__: [scope and scope.namespaces for scope in found] for kind, found in declaration.scopes.items()
    }

    assert scopes == {"Web": [("a", "b")], "ConfigMap": [("a", "b")], "Secret": [("vault",)]}


def test_what_a_webhook_reads_from_the_cache_may_be_read(tmp_path: Path) -> None:
    code = """
from kubewright import validate

@validate(Bare, reads=[Node])
async def check(bare, cached): pass
"""
    access = access_of(operator_of(tmp_path, "asked_operator", START + code))

    assert granted(access, "nodes") == "get list watch"
    assert {grant.resource for grant in access.cluster} == {"nodes"}


@pytest.mark.parametrize(
    ("call", "resource", "verbs"),
    [
        ("await ctx.client.get(Secret, 'x')", "secrets", "get list watch"),
        ("await ctx.client.list(Service)", "services", "get list watch"),
        ("await ctx.create(batch.Job.named('x'))", "jobs", "create"),
        ("await ctx.apply(ConfigMap(data={}))", "configmaps", "create patch"),
        ("await ctx.client.patch_by_name(Node, 'x', {})", "nodes", "patch"),
        ("await ctx.client.delete(Secret, 'x')", "secrets", "delete"),
        ("await ctx.client.delete_collection(Secret)", "secrets", "deletecollection"),
        ("await ctx.patch(web)", "webs", "get list patch watch"),
        ("await ctx.client.update(child)", "deployments", "create get list patch update watch"),
        ("await ctx.delete(child)", "deployments", "create delete get list patch watch"),
        ("{}.update({}); {}.get(Secret)", "deployments", "create get list patch watch"),
        ("await ctx.client.get(Web, 'x', subresource='scale')", "webs/scale", "get list watch"),
    ],
)
def test_calls_in_the_code_are_understood(
    tmp_path: Path, request: pytest.FixtureRequest, call: str, resource: str, verbs: str
) -> None:
    name = f"calling_operator_{request.node.callspec.indices['call']}"
    code = f"@controller(Web, owns=[Deployment])\nasync def reconcile(web, ctx):\n    child = None\n    {call}\n"

    assert granted(access_of(operator_of(tmp_path, name, START + code)), resource) == verbs


def test_an_operator_of_one_namespace_gets_a_role_there_and_a_cluster_role_for_the_rest(tmp_path: Path) -> None:
    code = (
        "@controller(Web, owns=[Deployment])\nasync def reconcile(web, ctx):\n"
        "    await ctx.client.get(Node, 'x')\nrbac('pods', verbs='get')\n"
    )
    found = operator_of(tmp_path, "narrow_operator", START + code, scope="namespace")
    access = access_of(found)

    assert {grant.resource for grant in access.cluster} == {"nodes"}
    assert {"webs", "deployments", "events", "pods"} <= {grant.resource for grant in access.namespaces[HOME]}
    assert [(role["kind"], role["metadata"].get("namespace")) for role in roles_of(access)] == [
        ("ClusterRole", None),
        ("Role", "system"),
    ]


def test_an_operator_of_several_namespaces_gets_a_role_in_each(tmp_path: Path) -> None:
    code = "@controller(Web, owns=[ConfigMap])\nasync def reconcile(web, ctx): pass\n"
    places = ("shop", "several-operator-system")

    access = access_of(
        operator_of(tmp_path, "several_operator", START + code, scope="namespace", watch_namespaces=places)
    )

    assert access.cluster == frozenset()
    assert access.namespaces.keys() == {"shop", HOME}
    assert access.namespaces["shop"] == access.namespaces[HOME]


def test_a_permission_for_its_own_namespace_goes_to_the_role_there(tmp_path: Path) -> None:
    code = "rbac('secrets', verbs='get', namespace='home-operator-system')\n"
    access = access_of(operator_of(tmp_path, "home_operator", START + code))

    assert access == Access(namespaces={HOME: frozenset([Grant("", "secrets", "get")])})


def test_there_is_a_binding_for_every_role_and_every_subject_exists(operator: Operator) -> None:
    files = rbac_files(operator)
    trees = [tree for name, text in files.items() if "/" not in name for tree in yaml.load_all(text)]
    roles = {
        (tree["kind"], tree["metadata"]["name"], tree["metadata"].get("namespace", "")): tree
        for tree in trees
        if tree["kind"] in ("Role", "ClusterRole")
    }
    bindings = [tree for tree in trees if tree["kind"].endswith("Binding")]
    bound = {
        (tree["roleRef"]["kind"], tree["roleRef"]["name"], tree["metadata"].get("namespace", "")) for tree in bindings
    }

    assert bound <= roles.keys()
    assert {name for _, name, _ in roles.keys() - bound} == {
        "metrics-reader",
        *(f"{kind}-{role}-role" for kind in ("cache", "pool") for role in ("admin", "editor", "viewer")),
    }
    accounts = {tree["metadata"]["name"] for tree in trees if tree["kind"] == "ServiceAccount"}
    assert {subject["name"] for tree in bindings for subject in tree["subjects"]} == accounts


def test_a_role_in_another_namespace_is_complete_by_itself(operator: Operator) -> None:
    role, binding = yaml.load_all(rbac_files(operator)["other_namespaces/kube-system.yaml"])

    assert (role["kind"], role["metadata"]["namespace"]) == ("Role", "kube-system")
    assert binding["metadata"]["namespace"] == "kube-system"
    assert binding["roleRef"]["name"] == role["metadata"]["name"] == "cache-operator-manager-role"
    assert binding["subjects"] == [
        {
            "kind": "ServiceAccount",
            "name": "cache-operator-controller-manager",
            "namespace": "cache-operator-system",
        }
    ]


def test_people_are_given_as_much_as_their_role_says(operator: Operator) -> None:
    files = rbac_files(operator)

    def grants(name: str) -> set[Grant]:
        return grants_of(yaml.load(files[name])["rules"])

    group = "cache.example.io"
    assert covered_by(Grant(group, "caches", "deletecollection"), grants("cache_admin_role.yaml"))
    assert not covered_by(Grant(group, "caches", "deletecollection"), grants("cache_editor_role.yaml"))
    assert covered_by(Grant(group, "caches/scale", "update"), grants("cache_editor_role.yaml"))
    assert not covered_by(Grant(group, "caches/scale", "update"), grants("cache_viewer_role.yaml"))
    assert {grant.verb for grant in grants("cache_viewer_role.yaml")} == {"get", "list", "watch"}
    assert {grant.resource for grant in grants("pool_viewer_role.yaml")} == {"pools"}


def test_only_the_own_webhook_configurations_may_be_written(operator: Operator) -> None:
    written = {grant for grant in services_grants(operator) if grant.verb == "patch"}

    assert {grant.name for grant in written} == {
        "cache-operator-mutating-webhook-configuration",
        "cache-operator-validating-webhook-configuration",
        "caches.cache.example.io",
    }
    assert not any(
        grant.resource == "secrets" for grant in services_grants(msgspec.structs.replace(operator, webhooks=()))
    )


def test_kinds_of_one_name_in_two_groups_get_roles_of_their_own(tmp_path: Path) -> None:
    code = 'class Other(Resource[WebSpec, None], group="other.example.io", version="v1", kind="Web"):\n    pass\n'

    files = rbac_files(operator_of(tmp_path, "twice_operator", START + code))

    assert {"web-example-io-web_admin_role.yaml", "other-example-io-web_admin_role.yaml"} <= files.keys()
    assert "role.yaml" not in files
