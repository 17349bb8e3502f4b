"""Patterns of Go's regexp, as Python runs them."""

import pytest

from kubewright.cel import Environment, EvaluationError
from kubewright.cel.regexes import compiled


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        (r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "web-1", True),
        (r"^a$", "a\n", False),
        (r"(?m)^b$", "a\nb\nc", True),
        (r"\Aa\z", "a", True),
        (r"^\d+$", "١٢", False),
        (r"^\w+$", "é", False),
        (r"^[[:alpha:]_]+$", "ab_", True),
        (r"^[^[:space:]]+$", "a b", False),
        (r"^\pL+$", "é", True),
        (r"^\p{Greek}+$", "αβ", True),
        (r"^\PL+$", "12", True),
        (r"(?P<x>a)(?<y>b)", "ab", True),
        (r"(?i)ABC", "abc", True),
        (r"^\Qa.b\E$", "a.b", True),
        (r"^\Qa.b\E$", "axb", False),
        (r"^\x{41}$", "A", True),
        (r"^[a&&b]+$", "a&", True),
        (r"^(a|b){2,3}$", "aba", True),
        (r"^[\d\-]+$", "1-2", True),
        (r"a.c", "a\nc", False),
        (r"(?s)a.c", "a\nc", True),
    ],
)
def test_a_pattern_means_the_same(pattern: str, text: str, matches: bool) -> None:
    assert compiled(pattern).match_string(text) is matches


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("[", "error parsing regexp: missing closing ]: `[`"),
        ("(a", "error parsing regexp: missing closing ): `(a`"),
        ("a)", "error parsing regexp: unexpected ): `a)`"),
        ("*a", "error parsing regexp: missing argument to repetition operator: `*`"),
        ("a**", "error parsing regexp: invalid nested repetition operator: `**`"),
        ("(?=a)", "error parsing regexp: invalid or unsupported Perl syntax: `(?=`"),
        (r"(a)\1", r"error parsing regexp: invalid escape sequence: `\1`"),
        (r"\h", r"error parsing regexp: invalid escape sequence: `\h`"),
        ("a\\", "error parsing regexp: trailing backslash at end of expression: ``"),
    ],
)
def test_what_go_refuses_is_refused_in_its_words(pattern: str, words: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        compiled(pattern)

    assert str(caught.value) == words


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("'baac'.findAll('a*')", ["", "aa", ""]),
        ("'aaa'.findAll('a??')", ["", "", "", ""]),
        ("'abcab'.findAll('|b')", ["", "", "", "", "", ""]),
        ("'a1b22'.findAll('[0-9]+')", ["1", "22"]),
        ("'a1b22'.findAll('[0-9]+', 1)", ["1"]),
        ("''.findAll('x*')", [""]),
    ],
)
def test_all_matches_are_those_that_go_finds(expression: str, found: list[str]) -> None:
    assert Environment({}).compile(expression).evaluate({}) == found
