"""Go's regular expressions: `pattern` in schemas, and `matches`, `find` and `findAll` in CEL.

`parser` reads Go's syntax and refuses what Go refuses, `parts` writes it for both engines, `re2_engine` runs it in time
that is linear in the text, and `regexp` is what callers use. Patterns come from requests, so nothing here may take
longer than the size of its input allows. Decision 19 has the reasons.
"""

from __future__ import annotations

from kubewright._base.regexp.parts import RegexpError
from kubewright._base.regexp.re2_engine import BoundedWork
from kubewright._base.regexp.regexp import Regexp, go_regexp

__all__ = ("BoundedWork", "Regexp", "RegexpError", "go_regexp")
