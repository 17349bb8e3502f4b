"""Descriptions read from the source."""

from typing import Any

from kubewright.api.model import Model, ModelMeta
from kubewright.schema.builder.docstrings import attribute_docs, class_doc


class Base(Model):
    """The base."""

    shared: int = 1
    """From the base."""
    replaced: int = 2
    """Said by the base."""


class Derived(Base):
    replaced: int = 3
    """
    Said by the derived class.

        With an indented line.
    """
    silent: int = 4
    PLAIN = "no annotation"
    """Not an attribute of the model."""

    class Nested(Model):
        inner: int = 1
        """Nested."""


def test_the_text_below_an_attribute_is_found_base_classes_included() -> None:
    assert attribute_docs(Derived) == {
        "shared": "From the base.",
        "replaced": "Said by the derived class.\n\n    With an indented line.",
    }


def test_classes_inside_classes_and_functions_are_found() -> None:
    class Local(Model):
        here: int = 1
        """Local."""

    assert attribute_docs(Derived.Nested) == {"inner": "Nested."}
    assert attribute_docs(Local) == {"here": "Local."}


def test_of_two_definitions_with_one_name_the_right_one_is_taken() -> None:
    def make(first: bool) -> type[Model]:
        if first:

            class Twice(Model):
                a: int = 1
                """First."""

            return Twice

        class Twice(Model):  # type: ignore[no-redef]  # what is tested
            b: int = 1
            """Second."""

        return Twice

    assert attribute_docs(make(True)) == {"a": "First."}
    assert attribute_docs(make(False)) == {"b": "Second."}


def test_a_class_without_source_has_no_descriptions() -> None:
    made: Any = ModelMeta("Made", (Model,), {"__annotations__": {"a": int}, "__module__": "nowhere"})

    assert attribute_docs(made) == {}


def test_a_class_does_not_inherit_the_docstring_of_its_base() -> None:
    assert class_doc(Base) == "The base."
    assert class_doc(Derived) is None
