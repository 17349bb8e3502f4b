"""What Kubewright itself needs, with all its extras, one requirement in a line.

`make .venv/.installed` installs these by the hashes of `constraints.txt`, and Kubewright without its requirements after
them: pip cannot hash a folder.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


def requirements(settings: dict[str, Any]) -> list[str]:
    """The requirements of a project; an extra that is made of others adds nothing."""
    project = settings["project"]
    each = [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]
    return sorted({one for one in each if name_of(one) != project["name"]})


def name_of(requirement: str) -> str:
    """The name in front of extras, versions and markers, as the index compares it."""
    return re.sub(r"[-_.]+", "-", re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]).lower()


if __name__ == "__main__":
    print("\n".join(requirements(tomllib.loads((ROOT / "pyproject.toml").read_text()))))
