"""All generated files of a project, from the command line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from kubewright._base import yaml
from kubewright.cli.commands.generate import generate
from kubewright.generate.project import operator_crds, project_files
from kubewright.manager.operator import Operator, load_operator

OPERATOR = Path(__file__).parent / "operators" / "cache_operator"


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(generate, [str(argument) for argument in arguments])


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A folder with everything generated."""
    result = run("--operator", OPERATOR, "--output", tmp_path / "config")
    assert result.exit_code == 0, result.output
    return tmp_path / "config"


def test_everything_is_written_and_then_found_up_to_date(config: Path) -> None:
    names = {file.relative_to(config).as_posix() for file in config.rglob("*.yaml")}

    assert {
        "crd/bases/cache.example.io_caches.yaml",
        "crd/bases/cache.example.io_pools.yaml",
        "crd/kustomization.yaml",
        "rbac/role.yaml",
        "rbac/leader_election_role.yaml",
        "rbac/metrics_reader_role.yaml",
        "rbac/cache_viewer_role.yaml",
        "webhook/manifests.yaml",
        "webhook/service.yaml",
        "certmanager/certificate.yaml",
    } <= names
    assert run("--operator", OPERATOR, "--output", config, "--check").exit_code == 0
    assert "0 of them changed" in run("--operator", OPERATOR, "--output", config).stderr


def test_every_file_is_listed_by_its_kustomization(config: Path) -> None:
    for part in ("crd", "rbac", "rbac/other_namespaces", "webhook", "certmanager"):
        tree = yaml.load((config / part / "kustomization.yaml").read_text())
        files = {file.relative_to(config / part).as_posix() for file in (config / part).rglob("*.yaml")}
        files = {name for name in files if not name.startswith("other_namespaces/")}
        assert {*tree["resources"], *tree.get("configurations", ())} == files - {"kustomization.yaml"}


def test_without_webhooks_a_kind_that_has_to_be_converted_is_served_in_its_stored_version_alone() -> None:
    operator = load_operator(str(OPERATOR))
    name = "caches.cache.example.io"

    with_them, without = operator_crds(operator)[name]["spec"], operator_crds(operator, webhooks=False)[name]["spec"]

    assert with_them["conversion"]["strategy"] == "Webhook"
    assert {version["name"] for version in with_them["versions"] if version["served"]} == {"v1", "v1alpha1"}
    assert [version["name"] for version in without["versions"] if version["served"]] == ["v1"]
    assert len(without["versions"]) == 2


def test_stale_output_is_shown_as_a_diff_and_left_as_it_is(config: Path) -> None:
    role = config / "rbac" / "role.yaml"
    role.write_text(role.read_text().replace("deployments", "daemonsets"))
    (config / "webhook" / "service.yaml").unlink()
    (config / "crd" / "bases" / "cache.example.io_olds.yaml").write_text("kind: CustomResourceDefinition\n")

    result = run("--operator", OPERATOR, "--output", config, "--check")

    assert result.exit_code == 1
    assert "-  - daemonsets" in result.stdout
    assert "+  - deployments" in result.stdout
    assert "service.yaml is missing" in result.stdout
    assert "cache.example.io_olds.yaml is left over" in result.stdout
    assert "3 files in" in result.stderr
    assert "daemonsets" in role.read_text()


def test_a_kustomization_keeps_its_own_lines(config: Path) -> None:
    file = config / "crd" / "kustomization.yaml"
    file.write_text("# ours\nnamePrefix: x-\nresources:\n- bases/cache.example.io_caches.yaml\n")

    assert run("crds", "--operator", OPERATOR, "--output", config, "--check").exit_code == 1
    assert run("crds", "--operator", OPERATOR, "--output", config).exit_code == 0
    assert file.read_text().startswith("# ours\nnamePrefix: x-\n")
    assert "bases/cache.example.io_pools.yaml" in file.read_text()


def test_the_same_operator_gives_the_same_bytes(operator: Operator, tmp_path: Path) -> None:
    assert project_files(operator, tmp_path) == project_files(operator, tmp_path)


def test_an_operator_without_webhooks_has_no_manifests_for_them(operator: Operator, tmp_path: Path) -> None:
    files = project_files(msgspec.structs.replace(operator, webhooks=()), tmp_path)

    assert not [name for name in files if name.startswith(("webhook/", "certmanager/")) or "webhook" in name]
    assert b"conversion" not in files["crd/bases/cache.example.io_caches.yaml"]


def test_the_definition_of_a_kind_with_converters_says_who_converts(config: Path) -> None:
    crd = yaml.load((config / "crd" / "bases" / "cache.example.io_caches.yaml").read_text())
    pool = yaml.load((config / "crd" / "bases" / "cache.example.io_pools.yaml").read_text())

    assert crd["spec"]["conversion"]["webhook"]["clientConfig"]["service"] == {
        "name": "webhook-service",
        "namespace": "system",
        "path": "/convert",
        "port": 443,
    }
    assert crd["metadata"]["labels"] == {"team": "storage"}
    v1, old = crd["spec"]["versions"]
    assert v1["schema"]["openAPIV3Schema"]["properties"]["metadata"]["properties"] == {
        "name": {"type": "string", "maxLength": 40, "pattern": "^[a-z]"}
    }
    assert (old["storage"], old["deprecated"]) == (False, True)
    assert old["deprecationWarning"] == "cache.example.io/v1alpha1 Cache is deprecated; use v1"
    assert "conversion" not in pool["spec"]


def test_webhooks_spare_the_operators_own_namespace(config: Path) -> None:
    trees = yaml.load_all((config / "webhook" / "manifests.yaml").read_text())

    assert {tree["kind"] for tree in trees} == {"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}
    for tree in trees:
        (webhook,) = tree["webhooks"]
        assert webhook["namespaceSelector"]["matchExpressions"][0]["values"] == ["cache-operator-system"]
        assert webhook["clientConfig"]["service"]["namespace"] == "system"


def test_who_works_in_its_own_namespace_alone_is_asked_about_that(operator: Operator, tmp_path: Path) -> None:
    files = project_files(msgspec.structs.replace(operator, scope="namespace"), tmp_path)

    trees = yaml.load_all(files["webhook/manifests.yaml"].decode())

    assert ["namespaceSelector" in tree["webhooks"][0] for tree in trees] == [False, False]


def test_what_was_written_and_what_is_stale_is_told_to_programs(tmp_path: Path) -> None:
    arguments = ("--operator", OPERATOR, "--output", tmp_path / "config", "-o", "json")
    first = json.loads(run(*arguments).stdout)
    second = json.loads(run(*arguments).stdout)
    file = tmp_path / "config/rbac/role.yaml"
    file.write_text(file.read_text().replace("watch", "touch"))
    check = run(*arguments, "--check")

    assert (first["files"], second["changed"]) == (len(first["changed"]), [])
    assert check.exit_code == 1
    (stale,) = json.loads(check.stdout)["stale"]
    assert stale["file"] == str(file)
    assert "+  - watch" in stale["difference"]


def test_one_part_alone_touches_nothing_else(tmp_path: Path) -> None:
    assert run("rbac", "--operator", OPERATOR, "--output", tmp_path).exit_code == 0
    assert {file.name for file in tmp_path.iterdir()} == {"rbac"}
    assert run("webhooks", "--operator", OPERATOR, "--output", tmp_path).exit_code == 0
    assert {file.name for file in tmp_path.iterdir()} == {"rbac", "webhook", "certmanager"}


def test_what_would_break_is_named_with_its_path(config: Path) -> None:
    crds = config / "crd" / "bases"
    same = run("crds", "--operator", OPERATOR, "--check-compat", crds)
    file = crds / "cache.example.io_caches.yaml"
    file.write_text(file.read_text().replace("maximum: 10", "maximum: 20"))
    shutil.copy(crds / "cache.example.io_pools.yaml", crds / "gone.yaml")
    (crds / "gone.yaml").write_text((crds / "gone.yaml").read_text().replace("pools", "ponds"))

    result = run("crds", "--operator", OPERATOR, "--check-compat", crds)
    as_json = run("crds", "--operator", OPERATOR, "--check-compat", crds, "-o", "json")

    assert (same.exit_code, same.stderr) == (0, "Nothing would break.\n")
    assert result.exit_code == 1
    assert "caches.cache.example.io: v1 .spec.replicas: maximum tightened: 20 became 10" in result.stdout
    assert "ponds.cache.example.io: kind removed" in result.stdout
    assert "problems found: 2" in result.stderr
    assert {finding["change"] for finding in json.loads(as_json.stdout)} == {"maximum tightened", "kind removed"}


def test_an_audit_log_becomes_a_role_or_is_compared_with_one(tmp_path: Path) -> None:
    user = "system:serviceaccount:cache-operator-system:cache-operator-controller-manager"
    log = tmp_path / "audit.log"
    events = [
        {"verb": "list", "objectRef": {"resource": "pods"}},
        {"verb": "get", "objectRef": {"resource": "leases", "apiGroup": "coordination.k8s.io",
                                      "namespace": "cache-operator-system"}},
    ]  # fmt: skip
    log.write_text(
        "".join(json.dumps({"kind": "Event", "user": {"username": user}, **event}) + "\n" for event in events)
    )

    role = run("rbac", "--operator", OPERATOR, "--from-audit", log)
    check = run("rbac", "--operator", OPERATOR, "--from-audit", log, "--check")

    assert role.exit_code == 0
    assert [(tree["kind"], tree["rules"]) for tree in yaml.load_all(role.stdout)] == [
        ("ClusterRole", [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]),
        ("Role", [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get"]}]),
    ]
    assert check.exit_code == 1
    assert "too narrow: list on pods was requested" in check.stdout
    assert "too wide: create on deployments in apps is granted and was never requested" in check.stdout
    assert "leases in coordination.k8s.io was requested" not in check.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        ((), 2, "Which operator? Give --operator"),
        (("--check", "crds"), 2, "Put the options behind the word crds"),
        (("rbac", "--operator", OPERATOR, "--user", "x"), 2, "--user goes with --from-audit"),
        (("crds", "--operator", OPERATOR, "--context", "x"), 2, "--context goes with --against-cluster"),
    ],
)
def test_a_wrong_call_is_explained_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str | Path, ...], code: int, sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)

    result = run(*arguments)

    assert result.exit_code == code
    assert sentence in " ".join(result.stderr.split())
    assert list(tmp_path.iterdir()) == []


def test_a_project_says_itself_which_operator_is_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.kubewright]\noperator = "quiet_operator"\n')
    (tmp_path / "quiet_operator.py").write_text("")
    monkeypatch.chdir(tmp_path)

    crds, webhooks = run("crds"), run("webhooks")

    assert (crds.exit_code, webhooks.exit_code) == (1, 1)
    assert "quiet_operator declares nothing to generate from" in crds.stderr
    assert "quiet_operator declares no webhook" in webhooks.stderr


KIND = '''
from kubewright import Resource, Spec
from kubewright.k8s.core.v1 import PodTemplateSpec


class ShopSpec(Spec):
    template: PodTemplateSpec
    """{0}"""


class Shop(Resource[ShopSpec, None], group="{1}", version="v1"):
    """A shop."""
'''


@pytest.mark.parametrize("group", ["batch", "storage.k8s.io"])
def test_a_class_in_a_group_of_kubernetes_is_named_since_it_gets_no_definition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: str
) -> None:
    (tmp_path / "foreign_operator.py").write_text(KIND.format("", group))
    monkeypatch.chdir(tmp_path)

    result = run("crds", "--operator", "foreign_operator.py")

    assert result.exit_code == 1
    assert f"foreign_operator.Shop is in the group {group}, which belongs to Kubernetes" in result.stderr


def test_a_definition_that_is_too_large_for_kubectl_apply_is_named_and_can_be_made_smaller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "large_operator.py").write_text(KIND.format("x" * 300_000, "large.example.io"))
    monkeypatch.chdir(tmp_path)

    whole = run("crds", "--operator", "large_operator.py")
    (tmp_path / "pyproject.toml").write_text("[tool.kubewright]\nmax_description = 0\n")
    without = run("crds", "--operator", "large_operator.py")

    assert "shops.large.example.io has" in whole.stderr
    assert "kubectl apply takes it with --server-side only" in whole.stderr
    assert "--server-side" not in without.stderr
    assert "description:" not in (tmp_path / "config/crd/bases/large.example.io_shops.yaml").read_text()
