"""A command or flag of kubebuilder or Operator SDK that is not here is answered with what to type in its place."""

from __future__ import annotations

import re
import shlex

import click
import pytest
from click.testing import CliRunner
from tests.docs.names import problem_with

from kubewright.cli.commands.create import create
from kubewright.cli.commands.edit import edit
from kubewright.cli.commands.init import init
from kubewright.cli.kubebuilder import ANSWERS, CREATE_API, CREATE_WEBHOOK, EDIT, INIT
from kubewright.cli.root import root

FLAGS = {init: INIT, create.commands["api"]: CREATE_API, create.commands["webhook"]: CREATE_WEBHOOK, edit: EDIT}


def typed(line: str) -> tuple[int, str]:
    """The exit code of a command line and what it prints, without the lines' ends."""
    done = CliRunner().invoke(root, shlex.split(line))
    return done.exit_code, " ".join(done.output.split())


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("init --domain example.io --owner Anna --repo github.com/example/first-operator", "--project-name"),
        ("init --domain example.io --skip-go-version-check", "leave it out"),
        (
            "alpha webhook --group apps --version v1alpha1 --kind SidecarSet --type=mutating --operation=create",
            "`kubewright create webhook`. A webhook that changes objects (--type=mutating) is --defaulting here",
        ),
        (
            "create webhook --group apps --version v1 --kind SidecarSet --type=validating --operation=create,update",
            "one that refuses them (--type=validating) is --validation; --operation is --operations.",
        ),
        ("create webhook --group ship --version v1beta1 --kind Frigate --conversion --spoke v1", "--conversion"),
        ("create api --group apps --version v1alpha1 --kind PodSet --make=false", "leave it out"),
        ("edit --multigroup=true", "Several groups need no switch"),
        ("generate kustomize manifests -q", "say `kubewright generate`"),
        ("olm install", "`make build-installer`"),
        ("new app-operator --repo github.com/example/app-operator", "`kubewright init --domain DOMAIN`"),
        ("add api --api-version=app.example.com/v1alpha1 --kind=AppService", "`kubewright create api"),
        ("up local", "`kubewright run`"),
    ],
)
def test_what_people_type_who_know_the_go_tools_is_answered_with_what_to_type_here(line: str, told: str) -> None:
    code, printed = typed(line)

    assert code == 2
    assert told in printed


def test_the_answer_names_the_flag_it_is_about() -> None:
    assert "Error: There is no --repo. " in typed("init --domain example.io --repo github.com/a/b")[1]


def test_a_flag_of_nobody_is_unknown_as_ever() -> None:
    code, printed = typed("init --domain example.io --nonsense")

    assert code == 2
    assert "--nonsense" in printed
    assert "There is no" not in printed


def test_a_command_of_nobody_is_unknown_as_ever() -> None:
    assert "No such command 'nonsense'" in typed("nonsense")[1]


def test_no_answer_stands_before_a_command_or_a_flag_that_is_there() -> None:
    for command, answers in FLAGS.items():
        options = {name for option in command.params for name in (*option.opts, *option.secondary_opts)}
        assert not answers.keys() & options
    for words in ANSWERS:
        group: click.Command | None = root
        for word in words.split():
            group = group.get_command(click.Context(group), word) if isinstance(group, click.Group) else None
        assert group is None, words


def test_every_answer_names_commands_and_flags_that_exist() -> None:
    for command, answers in (*((command.name, answers) for command, answers in FLAGS.items()), ("", ANSWERS)):
        for given, answer in answers.items():
            for code in re.findall(r"`([^`]+)`", answer):
                assert problem_with(code) is None or code == "kubectl apply", f"{command} {given}: {code}"


def test_flags_that_an_answer_names_belong_to_the_command_that_is_asked() -> None:
    for command, answers in FLAGS.items():
        options = {name for option in command.params for name in (*option.opts, *option.secondary_opts)}
        for given, answer in answers.items():
            prose = re.sub(r"`[^`]+`", "", answer)
            assert set(re.findall(r"--[a-z-]+", prose)) - options - answers.keys() - {"--config"} == set(), given
