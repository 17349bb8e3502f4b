"""Laws of selectors: they mean the same printed, parsed, structured and combined.

Covers: kubewright.api
"""

from __future__ import annotations

from typing import Any, get_args

from hypothesis import given
from hypothesis import strategies as st

from kubewright.api.selectors import FieldSelector, FieldTerm, Operator, Requirement, Selector

KEYS = st.sampled_from(["a", "b", "in", "notin", "example.com/c", "D_e.f-g"])
VALUES = st.sampled_from(["", "a", "b", "in", "notin", "1", "2", "10"])
LABELS = st.dictionaries(KEYS, VALUES)


@st.composite
def requirements(draw: st.DrawFn) -> Requirement:
    operator: Operator = draw(st.sampled_from(get_args(Operator)))
    values: list[str] = []
    if operator in ("in", "notin"):
        values = sorted(draw(st.sets(VALUES, min_size=1)))
    elif operator in ("gt", "lt"):
        values = [str(draw(st.integers(0, 12)))]
    elif operator not in ("exists", "!"):
        values = [draw(VALUES)]
    return Requirement(draw(KEYS), operator, tuple(values))


SELECTORS = st.lists(requirements(), max_size=4).map(Selector)


@given(selector=SELECTORS)
def test_a_printed_selector_parses_to_itself(selector: Selector) -> None:
    assert Selector.parse(str(selector)) == selector


@given(selector=SELECTORS, labels=LABELS)
def test_a_selector_matches_when_every_requirement_does(selector: Selector, labels: dict[str, str]) -> None:
    assert selector.matches(labels) == all(one.matches(labels) for one in selector.requirements)


@given(one=SELECTORS, two=SELECTORS, labels=LABELS)
def test_both_selectors_together_match_what_each_matches(one: Selector, two: Selector, labels: dict[str, str]) -> None:
    assert (one & two).matches(labels) == (one.matches(labels) and two.matches(labels))


@given(selector=SELECTORS, labels=LABELS)
def test_the_structured_form_means_the_same(selector: Selector, labels: dict[str, str]) -> None:
    structured = Selector(r for r in selector.requirements if r.operator not in ("gt", "lt"))

    again = Selector.from_structured(structured.to_structured())

    assert again.matches(labels) == structured.matches(labels)
    assert again.to_structured() == structured.to_structured()


@given(selector=SELECTORS, required=requirements(), labels=LABELS)
def test_a_required_value_is_required(selector: Selector, required: Requirement, labels: dict[str, str]) -> None:
    both = Selector((required,)) & selector
    value = both.required_value(required.key)

    for other in (*required.values, "x"):
        chosen = {**labels, required.key: other}
        assert value is None or other == value or not both.matches(chosen)


@given(labels=LABELS, others=LABELS)
def test_a_selector_of_labels_selects_all_that_have_them(labels: dict[str, str], others: dict[str, str]) -> None:
    assert Selector.of(labels).matches({**others, **labels})
    assert Selector.of(labels).matches(others) == (labels.items() <= others.items())


@given(text=st.text(alphabet="ab=!,() ><in\t", max_size=12))
def test_any_text_is_a_selector_or_refused_with_a_sentence(text: str) -> None:
    refusal, selector = "", Selector.nothing()
    try:
        selector = Selector.parse(text)
    except ValueError as error:
        refusal = str(error)

    assert "expected" in refusal or "Invalid value" in refusal or Selector.parse(str(selector)) == selector


FIELDS = st.sampled_from(["metadata.name", "metadata.namespace", "status.phase"])
FIELD_VALUES = st.text(alphabet="ab\\,=! ", max_size=6)
TERMS = st.builds(FieldTerm, FIELDS, st.sampled_from(["=", "!="]), FIELD_VALUES)


@given(terms=st.lists(TERMS, max_size=4), fields=st.dictionaries(FIELDS, FIELD_VALUES))
def test_a_printed_field_selector_parses_to_the_same_terms(terms: list[Any], fields: dict[str, str]) -> None:
    selector = FieldSelector(terms)

    again = FieldSelector.parse(str(selector))

    assert sorted(map(str, again.terms)) == sorted(map(str, terms))
    assert again.matches(fields) == selector.matches(fields)
    assert again.matches(fields.get) == selector.matches(fields)
