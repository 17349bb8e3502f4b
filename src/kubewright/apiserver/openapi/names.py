"""Names in OpenAPI documents: of operations, in camel case, and of components, with the reversed group."""

from __future__ import annotations

from kubewright.api.kinds import GroupVersionKind

__all__ = ("article", "model_name", "operation_name")


def operation_name(text: str, *, capital: bool = False) -> str:
    """The letters, digits and underscores of a text; a letter after anything else becomes upper case."""
    found = []
    for index, char in enumerate(text):
        if char.isalpha() or char == "_" or (index and char.isdigit()):
            found.append(char.upper() if capital else char)
            capital = False
        else:
            capital = True
    return "".join(found)


def model_name(kind: GroupVersionKind) -> str:
    """The name of a custom resource's component, such as com.example.v1.Widget."""
    group = ".".join(reversed(kind.group.split(".")))
    return f"{group}.{kind.version}.{kind.kind}"


def article(noun: str) -> str:
    """The article before a kind in a description, with blanks around it; plurals have none."""
    if noun.endswith("s") and not noun.endswith("ss"):
        return " "
    return " an " if noun[0].lower() in "aeiou" else " a "
