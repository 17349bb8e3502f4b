"""Renders the files in `templates/` with jinja2; no other module imports it.

Delimiters are `[[ value ]]` and `[% block %]`, because YAML, Python, Makefiles and GitHub workflows use braces. An
undefined name is an error, never an empty text.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kubewright._base.extras import optional

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ("render",)

_FOLDER: Final = Path(__file__).parent / "templates"


def render(name: str, **values: Any) -> str:
    """The text of a template."""
    return str(_environment().get_template(f"{name}.jinja").render(values))


@functools.cache
def _environment() -> Environment:
    jinja2 = optional("jinja2", extra="cli", purpose="Rendering a project")
    environment: Environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_FOLDER),
        block_start_string="[%",
        block_end_string="%]",
        variable_start_string="[[",
        variable_end_string="]]",
        comment_start_string="[#",
        comment_end_string="#]",
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
        autoescape=False,
    )
    environment.filters["toml"] = _toml
    return environment


def _toml(text: str) -> str:
    """A string of TOML; unlike JSON it has no escapes for halves of a surrogate pair, so all characters stay."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
