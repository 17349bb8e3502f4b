"""The files of a project, rendered from its PROJECT file: path -> text.

The same project gives the same files, whatever is on the disk. Manifests that follow from the user's code (CRDs, roles,
webhook configurations) are not here: `kubewright generate` writes them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from kubewright._base.version import __version__
from kubewright.api.kinds import pluralize
from kubewright.scaffold.project import Kind, Project
from kubewright.scaffold.templates import render

__all__ = ("files_of_kind", "render_project")

_PROJECT: Final = {
    ".devcontainer/devcontainer.json": "project/devcontainer.json",
    ".dockerignore": "project/dockerignore",
    ".github/workflows/test.yml": "project/workflow.yml",
    ".gitignore": "project/gitignore",
    "Dockerfile": "project/Dockerfile",
    "Makefile": "project/Makefile",
    "README.md": "project/README.md",
    "pyproject.toml": "project/pyproject.toml",
    "wheels/README.md": "project/wheels.md",
    "config/default/kustomization.yaml": "config/default.yaml",
    "config/default/metrics_service.yaml": "config/metrics_service.yaml",
    "config/manager/controller_manager_config.yaml": "config/controller_manager_config.yaml",
    "config/manager/kustomization.yaml": "config/manager_kustomization.yaml",
    "config/manager/manager.yaml": "config/manager.yaml",
    "config/daemonset/kustomization.yaml": "config/daemonset.yaml",
    "config/network-policy/allow-metrics-traffic.yaml": "config/metrics_traffic.yaml",
    "config/network-policy/kustomization.yaml": "config/network_kustomization.yaml",
    "config/prometheus/kustomization.yaml": "config/prometheus_kustomization.yaml",
    "config/prometheus/monitor.yaml": "config/monitor.yaml",
    "config/scorecard/bases/config.yaml": "config/scorecard.yaml",
    "config/scorecard/kustomization.yaml": "config/scorecard_kustomization.yaml",
    "config/scorecard/patches/basic.config.yaml": "config/scorecard_basic.yaml",
    "config/scorecard/patches/olm.config.yaml": "config/scorecard_olm.yaml",
    "tests/conftest.py": "python/conftest.py",
    "tests/test_operator.py": "python/test_operator.py",
}
_WITH_WEBHOOKS: Final = {
    "config/manager/manager_webhook_patch.yaml": "config/manager_webhook_patch.yaml",
    "config/network-policy/allow-webhook-traffic.yaml": "config/webhook_traffic.yaml",
}
_TESTS: Final = {"operator": "test_operator_kind"}
"""The module of a kind's tests where another has the usual name."""
_VARIABLES: Final = frozenset(
    ("audit", "cached", "client", "ctx", "errors", "labels", "new", "old", "request", "sample", "warnings")
)
"""Names that mean something as a parameter, or that the functions of the templates use themselves."""
_MAX_LINE_LENGTH: Final = 120
_MAX_VARIABLE_LENGTH: Final = 16


def render_project(project: Project) -> dict[str, str]:
    """Every file of the project but PROJECT itself."""
    hooks = any(kind.has_webhooks for kind in project.resources)
    own = any(kind.resource for kind in project.resources)
    templates = {**_PROJECT, **(_WITH_WEBHOOKS if hooks else {})}
    files = {
        path: render(name, p=project, version=__version__, own=own, hooks=hooks) for path, name in templates.items()
    }
    files |= _package(project)
    for kind in project.resources:
        files |= files_of_kind(project, kind)
    samples = sorted(_sample(project, kind) for kind in project.resources if kind.resource)
    if samples:
        files["config/samples/kustomization.yaml"] = render("config/samples_kustomization.yaml", names=samples)
    return dict(sorted(files.items()))


def files_of_kind(project: Project, kind: Kind) -> dict[str, str]:
    """The files of one kind."""
    files: dict[str, str] = {}
    root, module = project.package, kind.module
    if kind.resource:
        version = f"{root}/api/{kind.version}"
        files[f"{version}/__init__.py"] = _docstring(f"Kinds in version {kind.version}.")
        files[f"{version}/{module}.py"] = _kind(project, kind)
        files[f"config/samples/{_sample(project, kind)}"] = render("config/sample.yaml", p=project, k=kind)
    if kind.controller:
        files[f"{root}/controllers/{module}.py"] = _controller(project, kind)
        if kind.resource:
            files[f"tests/{_TESTS.get(module, f'test_{module}')}.py"] = _test(project, kind)
    if kind.has_webhooks:
        files[f"{root}/webhooks/{kind.version}/__init__.py"] = _docstring(f"Webhooks for version {kind.version}.")
        files[f"{root}/webhooks/{kind.version}/{module}.py"] = _webhook(project, kind)
        files[f"tests/test_{module}_{kind.version}_webhook.py"] = _webhook_test(project, kind)
    return files


def _package(project: Project) -> dict[str, str]:
    root = project.package
    return {
        f"{root}/__init__.py": _docstring(f"The operator {project.project_name}."),
        f"{root}/__main__.py": render("python/main.py", p=project),
        f"{root}/api/__init__.py": _docstring("Kinds as classes, a package for each version."),
        f"{root}/controllers/__init__.py": _docstring("Reconcilers, one module per kind."),
        f"{root}/webhooks/__init__.py": _docstring("Admission and conversion webhooks, a package for each version."),
    }


def _docstring(text: str) -> str:
    return render("python/package.py", text=text)


def _sample(project: Project, kind: Kind) -> str:
    group = kind.group or project.domain.partition(".")[0]
    return f"{group}_{kind.version}_{kind.kind.lower()}.yaml"


def _source(project: Project, kind: Kind) -> str:
    """The module that has the class."""
    if kind.core:
        return f"kubewright.k8s.{kind.group.partition('.')[0]}.{kind.version}"
    return f"{project.package}.api.{kind.version}.{kind.module}"


def _library(kind: Kind, name: str) -> str:
    """What a class of the library is called in the modules of a kind: its name, unless the kind has the same."""
    return f"Base{name}" if name == kind.kind else name


def _imported(kind: Kind, *names: str) -> list[str]:
    """The same names for an import."""
    return [name if _library(kind, name) == name else f"{name} as {_library(kind, name)}" for name in names]


def _render_module(name: str, project: Project, kind: Kind, names: Mapping[str, Iterable[str]], **values: Any) -> str:
    return render(
        name,
        p=project,
        k=kind,
        v=_variable(kind),
        lib=partial(_library, kind),
        imports=_imports(project, names),
        **values,
    )


def _kind(project: Project, kind: Kind) -> str:
    names = {
        "kubewright": _imported(kind, "Field", "Resource", "Spec", "Status"),
        "typing": _imported(kind, "Annotated"),
    }
    return _render_module("python/kind.py", project, kind, names, plural=pluralize(kind.kind))


def _controller(project: Project, kind: Kind) -> str:
    names = {"kubewright": _imported(kind, "Context", "controller"), _source(project, kind): [kind.kind]}
    return _render_module("python/controller.py", project, kind, names)


def _test(project: Project, kind: Kind) -> str:
    names = {
        "kubewright": _imported(kind, "Client", "find_condition"),
        "kubewright.testing": ["until"],
        _source(project, kind): [kind.kind, f"{kind.kind}Spec"],
    }
    space = project.watched[0] if project.watched else "default"
    return _render_module("python/test_kind.py", project, kind, names, space=space)


def _other_versions(project: Project, kind: Kind) -> list[str]:
    if not kind.webhooks.conversion:
        return []
    return [
        other.version
        for other in project.resources
        if other.resource and (other.group, other.kind) == (kind.group, kind.kind) and other.version != kind.version
    ]


def _webhook(project: Project, kind: Kind) -> str:
    hooks, others, name = kind.webhooks, _other_versions(project, kind), kind.kind
    words = ["FieldErrors"] if hooks.validation else []
    words += ["convert"] if others else []
    words += [word for word, wanted in (("default", hooks.defaulting), ("validate", hooks.validation)) if wanted]
    words.sort(key=lambda word: (word.islower(), word))  # classes first, as linters require
    names = {"kubewright": _imported(kind, *words), _source(project, kind): [name]}
    if others:
        names["kubewright.api"] = ["from_tree", "to_tree"]
        names[_source(project, kind)] += [f"{name}Spec", f"{name}Status"]
    for version in others:
        module = f"{project.package}.api.{version}.{kind.module}"
        names[module] = [f"{name}{part} as {name}{part}{version.capitalize()}" for part in ("", "Spec", "Status")]
    return _render_module("python/webhook.py", project, kind, names, others=others, on=_on)


def _webhook_test(project: Project, kind: Kind) -> str:
    hooks, others, module = kind.webhooks, _other_versions(project, kind), kind.module
    words = [f"default_{module}"] if hooks.defaulting else []
    words += [word for version in others for word in (f"from_{version}", f"to_{version}")]
    words += [f"validate_{module}"] if hooks.validation else []
    names = {
        _source(project, kind): [kind.kind],
        f"{project.package}.webhooks.{kind.version}.{module}": sorted(words),
    }
    if kind.resource:
        names["kubewright.testing"] = [*(["assert_round_trip"] if others else []), "example_of"]
    else:
        names["kubewright"] = ["ObjectMeta"]
    for version in others:
        names[f"{project.package}.api.{version}.{module}"] = [f"{kind.kind} as {kind.kind}{version.capitalize()}"]
    return _render_module("python/test_webhook.py", project, kind, names, others=others)


def _on(operations: Sequence[str]) -> str:
    """The `on` argument of a decorator; empty for the default operations."""
    if set(operations) == {"create", "update"}:
        return ""
    words = ", ".join(f'"{word}"' for word in operations)
    return f", on={words}" if len(operations) == 1 else f", on=({words})"


def _imports(project: Project, names: Mapping[str, Iterable[str]]) -> str:
    """Import statements in the order that linters require: Python's own, third parties, then the project's own."""
    ours = f"{project.package}."
    origins = {module: (module in sys.stdlib_module_names, module.startswith(ours)) for module in names}
    blocks = [
        [line for module in sorted(names) if origins[module] == origin for line in _import(module, names[module])]
        for origin in ((True, False), (False, False), (False, True))
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _import(module: str, names: Iterable[str]) -> list[str]:
    plain = [name for name in names if " as " not in name]
    statements = [*([plain] if plain else []), *([name] for name in names if " as " in name)]
    ordered = sorted(statements, key=lambda words: (words[0].partition(" ")[0].islower(), words[0]))
    return [line for words in ordered for line in _statement(module, words)]


def _statement(module: str, names: Sequence[str]) -> list[str]:
    line = f"from {module} import {', '.join(names)}"
    return (
        [line]
        if len(line) <= _MAX_LINE_LENGTH
        else [f"from {module} import (", *(f"    {name}," for name in names), ")"]
    )


def _variable(kind: Kind) -> str:
    """The name of an object in the code: its kind, unless that is taken or would make lines too long."""
    taken = kind.module in _VARIABLES or len(kind.module) > _MAX_VARIABLE_LENGTH
    return "obj" if taken else kind.module
