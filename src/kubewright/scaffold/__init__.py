"""Projects: the files an operator starts with, and how they change when kinds and webhooks are added.

`project` is the PROJECT file, `layout` renders every file from it, and `changes` merges the new rendering with the
user's edits. The command line calls them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubewright._base.lazy import lazy

if TYPE_CHECKING:
    from kubewright.scaffold.layout import render_project
    from kubewright.scaffold.project import Project, load_project
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "kubewright.scaffold.layout": ("render_project",),
            "kubewright.scaffold.project": ("Project", "load_project"),
        },
    )

__all__ = ("Project", "load_project", "render_project")
