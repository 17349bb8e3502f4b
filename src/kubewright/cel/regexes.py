"""Go's regular expressions in CEL: `matches`, `find` and `findAll`. The syntax is read by `_base.go_regexp`."""

from __future__ import annotations

import re

from kubewright._base.go_regexp import RegexpError, go_regexp
from kubewright.cel.errors import EvaluationError

__all__ = ("compiled",)


def compiled(pattern: str) -> re.Pattern[str]:
    """The pattern ready to search with. Raises an EvaluationError in Go's words."""
    try:
        return go_regexp(pattern)
    except RegexpError as error:
        raise EvaluationError(str(error)) from None
