"""The names documents give to things: operations in camel case, components by their reversed group."""

from __future__ import annotations

from kubewright.api.kinds import GroupVersionKind

__all__ = ("article", "model_name", "operation_name")


def operation_name(text: str, *, capital: bool = False) -> str:
    """Letters, digits and underscores of a text; after anything else the next letter is a capital."""
    found = []
    for index, char in enumerate(text):
        if char.isalpha() or char == "_" or (index and char.isdigit()):
            found.append(char.upper() if capital else char)
            capital = False
        else:
            capital = True
    return "".join(found)


def model_name(kind: GroupVersionKind) -> str:
    """The name of a custom resource's component: `com.example.v1.Widget`."""
    group = ".".join(reversed(kind.group.split(".")))
    return f"{group}.{kind.version}.{kind.kind}"


def article(noun: str) -> str:
    """What goes before a kind in a sentence, with the blanks around it; plurals have none."""
    if noun.endswith("s") and not noun.endswith("ss"):
        return " "
    return " an " if noun[0].lower() in "aeiou" else " a "
