"""Loading an operator: what a package declares is found, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubewright.errors import ConfigError
from kubewright.manager.operator import Operator, Settings, load_operator, operator_of, project_settings


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


KIND = """
from kubewright import Resource, Spec

class {0}Spec(Spec):
    size: int = 1

class {0}(Resource[{0}Spec, None], group="{1}", version="v1"):
    pass
"""


TWO_CONTROLLERS = """
from kubewright import Context, controller
from kubewright.k8s.core.v1 import Pod

@controller(Pod)
async def first(pod: Pod, ctx: Context) -> None: ...

@controller(Pod)
async def second(pod: Pod, ctx: Context) -> None: ...
"""


def test_everything_that_the_package_declares_is_found(operator: Operator) -> None:
    assert (operator.name, operator.namespace, operator.scope) == ("cache-operator", "cache-operator-system", "cluster")
    assert [(kind.__module__, kind.__name__) for kind in operator.kinds] == [
        ("cache_operator.api.v1", "Cache"),
        ("cache_operator.api.v1alpha1", "Cache"),
        ("cache_operator.api.v1", "Pool"),
    ]
    assert [declaration.name for declaration in operator.controllers] == ["cache"]
    assert [declaration.path for declaration in operator.webhooks] == [
        "/convert",
        "/convert",
        "/mutate-cache-example-io-v1-cache",
        "/validate-cache-example-io-v1-cache",
    ]
    assert [rule.resources or rule.urls for rule in operator.rules] == [
        ("pods/log",),
        ("namespaces",),
        ("leases",),
        ("/metrics",),
    ]
    assert list(operator.by_crd) == ["caches.cache.example.io", "pools.cache.example.io"]


def test_a_project_folder_says_which_package_and_what_it_is_called(tmp_path: Path) -> None:
    settings = '[tool.kubewright]\noperator = "shop_one"\nname = "shop"\nnamespace = "till"\nscope = "namespace"\n'
    write(tmp_path, {"pyproject.toml": settings, "src/shop_one/__init__.py": KIND.format("Shop", "shop.example.io")})

    found = load_operator(str(tmp_path))

    assert (found.name, found.namespace, found.scope) == ("shop", "till", "namespace")
    assert [kind.__name__ for kind in found.kinds] == ["Shop"]


SETUP = """
from kubewright import Manager, ManagerOptions, Scope
from kubewright.k8s.core.v1 import Secret
from kubewright.manager import setup_with_manager

@setup_with_manager(scopes={Secret: Scope(labels="app=shop")}, defaults=ManagerOptions(leader_election=True))
def setup(manager: Manager) -> None: ...
"""


def test_the_setup_of_the_manager_is_found_wherever_it_is_written(tmp_path: Path) -> None:
    again = "from setup_shop.manager import setup\n"  # imported, it is still one
    write(tmp_path, {"setup_shop/__init__.py": "", "setup_shop/manager.py": SETUP, "setup_shop/other.py": again})

    found = load_operator(str(tmp_path / "setup_shop"))

    assert found.runnables == (found.setup,)
    assert [(kind.__name__, scope.labels) for kind, scope in found.scopes.items()] == [("Secret", "app=shop")]
    assert found.option_defaults == {"leader_election": True}


def test_a_single_controller_brings_the_setup_of_its_module(tmp_path: Path) -> None:
    one, _, _ = TWO_CONTROLLERS.partition("@controller(Pod)\nasync def second")
    write(tmp_path, {"sole_shop.py": one + SETUP})

    found = load_operator(str(tmp_path / "sole_shop.py"))

    assert operator_of(found.controllers[0]).setup is found.setup is not None


def test_two_setups_of_the_manager_are_refused_by_their_names(tmp_path: Path) -> None:
    write(tmp_path, {"torn_shop/__init__.py": "", "torn_shop/a.py": SETUP, "torn_shop/b.py": SETUP})

    with pytest.raises(ConfigError, match=r"by torn_shop\.a\.setup and by torn_shop\.b\.setup"):
        load_operator(str(tmp_path / "torn_shop"))


def test_a_single_module_is_an_operator_too(tmp_path: Path) -> None:
    write(tmp_path, {"one_file_operator.py": KIND.format("Single", "one.example.io")})

    found = load_operator(str(tmp_path / "one_file_operator.py"))

    assert (found.name, [kind.__name__ for kind in found.kinds]) == ("one-file-operator", ["Single"])


@pytest.mark.parametrize(
    ("file", "sentence"),
    [
        ("nothing.py", "there is no file .*nothing.py; check its name"),
        ("my-operator.py", "my-operator.py cannot be imported by this name; call it my_operator$"),
        ("operator.py", "operator.py would hide Python's own module operator; give it another name"),
    ],
)
def test_a_file_that_cannot_be_imported_by_its_name_is_refused(tmp_path: Path, file: str, sentence: str) -> None:
    if file != "nothing.py":
        (tmp_path / file).write_text("1 / 0\n")

    with pytest.raises(ConfigError, match=sentence):
        load_operator(str(tmp_path / file))


def test_two_projects_with_packages_of_one_name_are_not_mixed_up(tmp_path: Path) -> None:
    for name in ("One", "Two", "One"):
        text = KIND.format(name, "same.example.io")
        folder = write(tmp_path / name, {"same_operator/__init__.py": "", "same_operator/api.py": text})

        found = load_operator(str(folder / "same_operator"))

        assert [kind.__name__ for kind in found.kinds] == [name]


def test_kinds_of_others_tests_and_built_in_groups_are_left_out(tmp_path: Path) -> None:
    generated = '"""Kinds.\n\nGenerated by `kubewright generate models`; do not edit.\n"""\n'
    write(
        tmp_path,
        {
            "picky_operator/__init__.py": KIND.format("Mine", "mine.example.io")
            + "from kubewright import Dynamic\nCertificate = Dynamic('cert-manager.io/v1', 'Certificate')\n"
            + "from kubewright.k8s.apps.v1 import Deployment\n",
            "picky_operator/models.py": generated + KIND.format("Theirs", "theirs.example.io"),
            "picky_operator/core.py": KIND.format("Pod", ""),
            "picky_operator/tests/__init__.py": "raise RuntimeError('imported')",
            "picky_operator/__main__.py": "raise RuntimeError('started')",
        },
    )

    assert [kind.__name__ for kind in load_operator(str(tmp_path / "picky_operator")).kinds] == ["Mine"]


@pytest.mark.parametrize(
    ("package", "files", "sentence"),
    [
        ("no_such_operator", {}, "there is no Python package no_such_operator here"),
        ("not-a-name", {}, "is no name of a Python package"),
        (
            "broken_one",
            {"broken_one/__init__.py": "import broken_one.inner", "broken_one/inner.py": "\n1 / 0"},
            r"broken_one cannot be imported: .*inner.py, line 2: ZeroDivisionError",
        ),
        (
            "broken_two",
            {"broken_two/__init__.py": "def f(:"},
            r"^broken_two cannot be imported: broken_two/__init__.py, line 1: SyntaxError: invalid syntax$",
        ),
        ("broken_three", {"broken_three/__init__.py": "import no_such_thing"}, "install what is missing"),
        (
            "broken_five",
            {"broken_five.py": "import kubewright.k8s.aps.v1"},
            "broken_five.py, line 1: No module named 'kubewright.k8s.aps'; check the name",
        ),
        (
            "broken_six",
            {"broken_six.py": "import broken_beside", "broken_beside.py": "\nsize = itn(1)"},
            "broken_beside.py, line 2: NameError: name 'itn' is not defined",
        ),
        (
            "broken_seven",
            {"broken_seven.py": KIND.format("Seven", "seven")},
            "broken_seven.Seven has the group 'seven', which is no domain; put it into one of yours, as in group=",
        ),
        ("broken_eight", {"broken_eight.py": KIND.format("Eight", "")}, "broken_eight.Eight has no group; put it"),
        (
            "broken_nine",
            {"broken_nine.py": TWO_CONTROLLERS},
            "two controllers are called pod: broken_nine.first and broken_nine.second; give one of them another name",
        ),
        (
            "broken_four",
            {"broken_four.py": "from kubewright import rbac\nrbac('pods', verbs='fetch')"},
            "'fetch' is no verb",
        ),
    ],
)
def test_what_cannot_be_imported_is_told_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, files: dict[str, str], sentence: str
) -> None:
    monkeypatch.chdir(write(tmp_path, files))

    with pytest.raises(ConfigError, match=sentence):
        load_operator(package)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[tool.kubewright]\noperater = 'x'\n", "pyproject.toml: .*operater"),
        ("[tool.kubewright]\nscope = 'world'\n", "pyproject.toml: .*world"),
        ("[tool", "cannot be read"),
    ],
)
def test_wrong_settings_name_the_file(tmp_path: Path, text: str, sentence: str) -> None:
    write(tmp_path, {"pyproject.toml": text})

    with pytest.raises(ConfigError, match=sentence):
        project_settings(tmp_path)


def test_a_project_that_names_no_operator_is_told_where_to(tmp_path: Path) -> None:
    write(tmp_path, {"pyproject.toml": "[project]\nname = 'x'\n"})

    assert project_settings(tmp_path) == Settings()
    with pytest.raises(ConfigError, match=r"add operator = .package. under \[tool.kubewright\]"):
        load_operator(str(tmp_path))


def test_a_name_the_cluster_would_refuse_is_refused_here(tmp_path: Path) -> None:
    write(tmp_path, {"named_operator.py": ""})

    with pytest.raises(ConfigError, match="the operator's name 'Not_A_Label' cannot be used"):
        load_operator(str(tmp_path / "named_operator.py"), settings=Settings(name="Not_A_Label"))
