"""Field names that are no identifiers, and how expressions write them.

`self.my-field` would be a subtraction, so it is written `self.my__dash__field` (apiserver: pkg/cel/escaping.go).
`schema_types` calls this for every field.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ("escape_field_name",)

_KEYWORDS: Final = frozenset(
    (
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if"),
        *("import", "let", "loop", "package", "namespace", "return", "var", "void", "while"),
    )
)
_WRITABLE: Final = re.compile(r"[A-Za-z_.\-/][A-Za-z0-9_.\-/]*", re.ASCII)
_SPECIAL: Final = re.compile(r"__|[-./]")
_ESCAPES: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}


def escape_field_name(name: str) -> str | None:
    """The identifier for a field, or None if expressions cannot name it."""
    if name in _KEYWORDS:
        return f"__{name}__"
    if not _WRITABLE.fullmatch(name):
        return None
    return _SPECIAL.sub(lambda match: _ESCAPES[match.group()], name)
