"""Patterns in Go's syntax match what Go matches, and are refused in Go's words."""

import pytest

from kubewright.schema.check.regexes import RegexError, go_regex


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        (r"^a$", "a", "a\n"),
        (r"\d", "1", "٣"),
        (r"^\w+$", "a_1", "é"),
        (r"^\s$", "\f", "\x0b"),
        (r"[[:alpha:]]", "b", "1"),
        (r"[[:^digit:]]", "b", "1"),
        (r"^\pL+$", "é", "1"),
        (r"^\P{Lu}$", "a", "A"),
        (r"^[^\d\s]$", "a", "1"),
        (r"^a{,2}$", "a{,2}", "aa"),
        (r"(?i)^K$", "k", "x"),
        (r"(?i:a)b", "Ab", "aB"),
        (r"(?m)^b$", "a\nb", "ab"),
        (r"(?s)^a.b$", "a\nb", "ab"),
        (r"^a.b$", "axb", "a\nb"),
        (r"\Qa.b\E", "a.b", "axb"),
        (r"(?P<x>a)(?<y>b)", "ab", "a"),
        (r"\x41\x{42}\103", "ABC", "abc"),
        (r"a\z", "ba", "a\n"),
        (r"[]a]", "]", "b"),
        (r"[a-]", "-", "b"),
        (r"(|a)+b", "b", "a"),
    ],
)
def test_a_pattern_matches_as_in_go(pattern: str, matching: str, other: str) -> None:
    assert go_regex(pattern).search(matching)
    assert not go_regex(pattern).search(other)


def test_the_empty_text_has_no_word_boundary() -> None:
    assert go_regex(r"\B").search("")


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("(?<=a)b", "invalid named capture: `(?<=a)b`"),
        ("[a", "missing closing ]: `[a`"),
        ("(a", "missing closing ): `(a`"),
        ("a)", "unexpected ): `a)`"),
        ("*", "missing argument to repetition operator: `*`"),
        ("(?i)+", "missing argument to repetition operator: `+`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("a{2,1}", "invalid repeat count: `{2,1}`"),
        (r"\1", r"invalid escape sequence: `\1`"),
        (r"\Z", r"invalid escape sequence: `\Z`"),
        ("[z-a]", "invalid character class range: `z-a`"),
        (r"\pX", r"invalid character class range: `\pX`"),
        ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
        ("a\\", "trailing backslash at end of expression: ``"),
    ],
)
def test_what_go_refuses_is_refused_in_its_words(pattern: str, problem: str) -> None:
    with pytest.raises(RegexError) as error:
        go_regex(pattern)

    assert str(error.value) == f"error parsing regexp: {problem}"
