"""Commands about a project that are called wrongly: one sentence, and not a byte of the folder changed."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple, Protocol

import pytest

from kubewright.cli.main import _run
from kubewright.scaffold.additions import add_api
from kubewright.scaffold.changes import RENDERED, plan, write
from kubewright.scaffold.project import FILE, Project

API = ("create", "api", "--version", "v1alpha1", "--kind", "PodSet", "--group", "apps")
HOOK = ("create", "webhook", "--version", "v1alpha1", "--kind", "PodSet", "--group", "apps")


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


class Kubewright(Protocol):
    """Runs a command in a folder, in this process: nothing here gets as far as importing an operator."""

    def __call__(self, folder: Path, *arguments: str) -> Done: ...


@pytest.fixture
def kubewright(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Kubewright:
    def run(folder: Path, *arguments: str) -> Done:
        monkeypatch.chdir(folder)
        monkeypatch.setenv("KUBECONFIG", str(folder / "no-kubeconfig"))
        code = _run(list(arguments))
        return Done(code, *capsys.readouterr())

    return run


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "pods-operator"
    folder.mkdir()
    made = Project.new(name="pods-operator", domain="example.io")
    write(folder, plan(folder, add_api(made, group="apps", version="v1alpha1", kind="PodSet")))
    return folder


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--domain", "example"), "the domain 'example' has no dot"),
        (("--domain", "Example.io"), "the domain 'Example.io' cannot be used"),
        (("--domain", "example.io", "--project-name", "Mine!"), "the project name 'Mine!' cannot be used"),
        (("--domain", "example.io", "--project-name", "json"), "would hide the Python package json"),
        (("--domain", "example.io", "--namespace", "A"), "the namespace 'A' cannot be used"),
    ],
)
def test_init_refuses_names_and_leaves_the_folder_empty(
    kubewright: Kubewright, tmp_path: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    done = kubewright(tmp_path, "init", *arguments)

    assert done.returncode == 1
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert contents(tmp_path) == {}


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("init", "--domain", "example.io"), 1, "there is a project in"),
        (API, 1, "PodSet in v1alpha1 is in the project already"),
        ((*API[:-1], "core"), 1, "Kubernetes has no PodSet in core/v1alpha1"),
        ((*API, "--kind", "podSet"), 1, "the kind 'podSet' cannot be used"),
        ((*API, "--version", "one"), 1, "the version 'one' is no Kubernetes version"),
        ((*API, "--group", "Apps"), 1, "the group 'Apps' cannot be used"),
        ((*API, "--kind", "Cart", "--plural", "A"), 1, "the plural 'A' cannot be used"),
        ((*API, "--namespaced=perhaps"), 2, "'perhaps' is not a valid boolean"),
        (("create", "api", "--kind", "PodSet"), 2, "Missing option"),
        (HOOK, 1, "which webhook?"),
        ((*HOOK, "--conversion"), 1, "PodSet has one version"),
        ((*HOOK, "--kind", "Cart", "--defaulting"), 1, "there is no Cart in version v1alpha1"),
        ((*HOOK, "--validation", "--operations", "destroy"), 1, "'destroy' is no operation"),
        (("edit",), 2, "What is to change?"),
        (("edit", "--namespace", "No Name"), 1, "the namespace 'No Name' cannot be used"),
        (("deploy", "--overlay", "nowhere"), 1, "nowhere has no kustomization.yaml"),
        (("run", "--embedded", "--context", "x"), 2, "--embedded brings its own cluster"),
    ],
)
def test_what_is_refused_leaves_the_project_untouched(
    kubewright: Kubewright, project: Path, arguments: tuple[str, ...], code: int, sentence: str
) -> None:
    before = contents(project)

    done = kubewright(project, *arguments)

    assert (done.returncode, done.stdout) == (code, "")
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert contents(project) == before


@pytest.mark.parametrize(
    "arguments", [(*API, "--kind", "Cart"), (*HOOK, "--defaulting"), ("edit", "--owner", "x"), ("update",)]
)
def test_a_project_file_that_was_edited_by_hand_stops_every_command(
    kubewright: Kubewright, project: Path, arguments: tuple[str, ...]
) -> None:
    file = project / FILE
    file.write_text(file.read_text().replace("PodSet", "podSet"))
    before = contents(project)

    done = kubewright(project, *arguments)

    assert done.returncode == 1
    assert "PROJECT is invalid: the kind 'podSet' cannot be used" in done.stderr
    assert contents(project) == before


def test_files_in_the_way_of_a_new_project_are_named(kubewright: Kubewright, tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("mine:\n")

    done = kubewright(tmp_path, "init", "--domain", "example.io", "--project-name", "pods-operator")

    assert done.returncode == 1
    assert done.stderr.startswith("Makefile would be overwritten, so nothing was written")
    assert contents(tmp_path) == {"Makefile": b"mine:\n"}


def test_a_conflict_with_an_edit_is_refused_until_it_is_forced(kubewright: Kubewright, project: Path) -> None:
    settings = older(project, "pyproject.toml", 'description = "A ', 'description = "An older ')
    settings.write_text(settings.read_text().replace('"pods-operator-system"', '"mine"'))
    before = contents(project)

    refused = kubewright(project, "edit", "--namespace", "other")

    assert refused.returncode == 1
    assert "pyproject.toml has edits of yours in lines that are to change" in refused.stderr
    assert contents(project) == before

    forced = kubewright(project, "edit", "--namespace", "other", "--force")

    assert forced.returncode == 1
    assert "<<<<<<< yours" in settings.read_text()


def test_options_are_edited_in_a_project_whose_files_were_edited(project: Path) -> None:
    (project / "README.md").write_text("# Mine\n")
    test = project / "tests/test_podset.py"
    test.write_text(test.read_text().replace('PodSet.named("sample", "default",', 'PodSet.named("mine", "default",'))
    edited = test.read_text()
    settings = project / "pyproject.toml"
    settings.write_text(settings.read_text().replace('"pods-operator-system"', '"mine"'))

    done = separately(project, "edit", "--namespaced", "--namespace", "other", "-o", "json")

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["kept"] == ["README.md", "tests/test_podset.py"]
    assert "kept  tests/test_podset.py as you wrote it; a new project has there: made = await" in done.stderr
    assert 'replaced  namespace = "mine" in pyproject.toml' in done.stderr
    assert test.read_text() == edited
    assert 'namespace = "other"\nscope = "namespace"\n' in settings.read_text()
    assert "kind: Role\n" in (project / "config/rbac/role.yaml").read_text()


def test_versions_are_told_for_scripts_even_without_a_server(kubewright: Kubewright, tmp_path: Path) -> None:
    done = kubewright(tmp_path, "version", "-o", "json")

    assert done.returncode == 0
    found = json.loads(done.stdout)
    assert found["server"] is None
    assert found["client"]["kubernetes"].startswith("1.")


@pytest.mark.parametrize("shell", ["bash", "fish", "zsh"])
def test_completion_is_a_script_for_the_shell(kubewright: Kubewright, tmp_path: Path, shell: str) -> None:
    done = kubewright(tmp_path, "completion", shell)

    assert done.returncode == 0
    assert "_KUBEWRIGHT_COMPLETE" in done.stdout


def older(project: Path, path: str, new: str, old: str) -> Path:
    """The project as older templates had made it: one line of a file was another."""
    base = json.loads((project / RENDERED).read_text())
    assert new in base[path]
    base[path] = base[path].replace(new, old)
    (project / RENDERED).write_text(json.dumps(base))
    (project / path).write_text(base[path])
    return project / path


def test_an_update_brings_newer_templates_and_keeps_edits(kubewright: Kubewright, project: Path) -> None:
    manager = older(project, "config/manager/manager.yaml", "GracePeriodSeconds: 45", "GracePeriodSeconds: 10")
    manager.write_text(manager.read_text().replace("replicas: 1", "replicas: 3"))

    stale = kubewright(project, "update", "--check")
    done = kubewright(project, "update")
    again = kubewright(project, "update")

    assert (stale.returncode, done.returncode, again.returncode) == (1, 0, 0)
    assert "GracePeriodSeconds: 45" in manager.read_text()
    assert "replicas: 3" in manager.read_text()
    assert "up to date" in again.stderr


def test_an_update_marks_conflicts_and_loses_nothing(kubewright: Kubewright, project: Path) -> None:
    manager = older(project, "config/manager/manager.yaml", "GracePeriodSeconds: 45", "GracePeriodSeconds: 10")
    manager.write_text(manager.read_text().replace("GracePeriodSeconds: 10", "GracePeriodSeconds: 99"))

    done = kubewright(project, "update")

    assert done.returncode == 1
    assert "conflict  config/manager/manager.yaml" in done.stderr
    text = manager.read_text()
    assert text.index("<<<<<<< yours") < text.index("Seconds: 99") < text.index("Seconds: 45") < text.index(">>>>>>>")


def former(project: Path, path: str, text: str) -> Path:
    """A file that the templates of an earlier version made, and those of this one do not."""
    base = project / RENDERED
    base.write_text(json.dumps({**json.loads(base.read_text()), path: text}))
    (project / path).parent.mkdir(parents=True, exist_ok=True)
    (project / path).write_text(text)
    return project / path


def test_an_update_removes_what_no_template_makes_any_more(kubewright: Kubewright, project: Path) -> None:
    file = former(project, "config/olden/patch.yaml", "a: 1\n")
    (file.parent / "__pycache__").mkdir()

    stale = kubewright(project, "update", "--check")
    done = kubewright(project, "update", "-o", "json")
    again = kubewright(project, "update", "--check")

    assert (stale.returncode, done.returncode, again.returncode) == (1, 0, 0)
    assert "config/olden/patch.yaml would change" in stale.stderr
    assert "removed  config/olden/patch.yaml" in done.stderr
    assert json.loads(done.stdout)["removed"] == ["config/olden/patch.yaml"]
    assert not file.parent.exists()
    assert (project / "config/default").is_dir()


def test_an_update_names_what_no_template_makes_any_more_and_somebody_edited(
    kubewright: Kubewright, project: Path
) -> None:
    file = former(project, "config/olden/patch.yaml", "a: 1\n")
    gone = former(project, "config/olden/gone.yaml", "a: 1\n")
    file.write_text("a: 2\n")
    gone.unlink()

    done = kubewright(project, "update")
    again = kubewright(project, "update")

    assert done.returncode == 0
    assert "left over  config/olden/patch.yaml: no template makes it any more; move your edits" in done.stderr
    assert "gone.yaml" not in done.stderr
    assert file.read_text() == "a: 2\n"
    assert "up to date" in again.stderr


def test_the_doctor_names_what_is_wrong_and_the_way_out(kubewright: Kubewright, tmp_path: Path) -> None:
    done = kubewright(tmp_path, "doctor", "-o", "json")

    found = {item["about"]: (item["result"], item["text"]) for item in json.loads(done.stdout)}
    assert done.returncode == 1
    assert found["project"][0] == "wrong"
    assert "start one with `kubewright init`" in found["project"][1]
    assert found["cluster"][0] == "wrong"


def test_on_a_terminal_what_was_not_said_is_asked(
    kubewright: Kubewright, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Terminal("n\n"))

    done = kubewright(project, *API, "--kind", "Cart")

    assert done.returncode == 1
    assert done.stderr.startswith("Create the resource? [Y/n]")
    assert not (project / "pods_operator/controllers/cart.py").exists()


def test_what_was_done_is_told_to_programs(kubewright: Kubewright, project: Path) -> None:
    older(project, "config/manager/manager.yaml", "GracePeriodSeconds: 45", "GracePeriodSeconds: 10")
    (project / "README.md").unlink()

    done = kubewright(project, "update", "-o", "json")
    again = kubewright(project, "update", "-o", "json")

    told = json.loads(done.stdout)
    assert told["changed"] == ["config/manager/manager.yaml"]
    assert (told["created"], told["generated"]) == ([], [])
    assert not any(json.loads(again.stdout).values())


def test_the_operators_reach_is_changed_in_every_file_that_knows_it(project: Path) -> None:
    before = contents(project)

    def edit(*arguments: str) -> None:
        command = [sys.executable, "-B", "-m", "kubewright.cli", "edit", *arguments]
        subprocess.run(command, cwd=project, check=True, capture_output=True)

    edit("--namespaced")
    text = {path: (project / path).read_text() for path in ("PROJECT", "pyproject.toml", "pods_operator/__main__.py")}
    role = (project / "config/rbac/role.yaml").read_text()
    edit("--namespaced=false")

    assert "namespaced: true" in text["PROJECT"]
    assert 'scope = "namespace"' in text["pyproject.toml"]
    assert "namespaced=True" in text["pods_operator/__main__.py"]
    assert "kind: Role\n" in role
    after = contents(project)
    assert {path: after[path] for path in before} == before
    assert "kind: ClusterRole\n" in (project / "config/rbac/role.yaml").read_text()


def separately(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, as it imports the operator."""
    return subprocess.run(
        [sys.executable, "-m", "kubewright.cli", *arguments], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(("more", "own"), [((), False), (("--resource",), True)])
def test_a_kind_that_kubernetes_has_too_is_said_to_be_its_own_unless_a_resource_is_asked_for(
    project: Path, more: tuple[str, ...], own: bool
) -> None:
    done = separately(project, "create", "api", "--group", "batch", "--version", "v1", "--kind", "CronJob", *more)

    assert done.returncode == 0, done.stderr
    assert ("batch/v1 CronJob is a kind of Kubernetes" in done.stderr) is not own
    assert any(path.endswith("api/v1/cronjob.py") for path in contents(project)) is own


def test_the_advice_of_create_api_is_followed_without_losing_a_controller(project: Path) -> None:
    controller = project / "pods_operator/controllers/podset.py"

    refused = separately(project, *API)
    again = separately(project, *API, "--force")

    assert (refused.returncode, again.returncode) == (1, 0), again.stderr
    assert refused.stderr.endswith("use --force to write its files again\n")
    assert controller.is_file()
    assert "controller: true" in (project / FILE).read_text()

    batch = ("create", "api", "--group", "batch", "--version", "v1", "--kind", "CronJob")
    first = separately(project, *batch)
    (advice,) = (line for line in first.stderr.splitlines() if "for a kind of your own" in line)
    own = separately(project, *batch, *advice.partition("add ")[2].split())

    assert own.returncode == 0, own.stderr
    text = (project / "pods_operator/controllers/cronjob.py").read_text()
    assert "from pods_operator.api.v1.cronjob import CronJob" in text


@pytest.mark.parametrize("owns", ["", ", owns=[ConfigMap]"], ids=["forgotten", "owned"])
def test_the_doctor_hints_at_children_whose_changes_reconcile_nothing(project: Path, owns: str) -> None:
    file = project / "pods_operator/controllers/podset.py"
    text = file.read_text().replace("@controller(PodSet)", f"@controller(PodSet{owns})")
    text = text.replace("from pods_operator", "from kubewright.k8s.core.v1 import ConfigMap\n\nfrom pods_operator")
    file.write_text(f"{text}    await ctx.create(ConfigMap.named(podset.metadata.name))\n")

    done = separately(project, "doctor", "--no-cluster", "-o", "json")

    found = {item["about"]: (item["result"], item["text"]) for item in json.loads(done.stdout)}
    assert found.get("children", ("", ""))[0] == ("" if owns else "hint")
    assert owns or "the code makes objects of ConfigMap" in found["children"][1]
