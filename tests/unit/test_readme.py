"""What the front page shows is true."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from kubewright.controllers.declaration import Declaration
from kubewright.generate.crds import crd_for

README = Path(__file__).parents[2] / "README.md"


def test_the_operator_of_the_readme_declares_a_controller_and_a_crd() -> None:
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert len(blocks) == 1
    names: dict[str, Any] = {"__name__": "readme"}

    exec(compile(blocks[0], "README.md", "exec", dont_inherit=True), names)

    assert isinstance(names["reconcile"], Declaration)
    assert crd_for(names["Cache"])["metadata"]["name"] == "caches.cache.example.io"
