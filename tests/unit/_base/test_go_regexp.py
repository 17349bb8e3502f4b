"""Patterns in Go's syntax match what Go matches, and are refused in Go's words."""

import pytest

from kubewright._base.go_regexp import RegexpError, go_regexp


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
        (r"^[[:alpha:]_]+$", "ab_", "a1"),
        (r"^[a&&b]+$", "a&", "ac"),
        (r"^[\d\-]+$", "1-2", "1+2"),
        (r"\\1", "\\1", "1"),
        (r"\++", "+", "a"),
        ("[*+]+", "*", "a"),
    ],
)
def test_a_pattern_matches_as_in_go(pattern: str, matching: str, other: str) -> None:
    assert go_regexp(pattern).search(matching)
    assert not go_regexp(pattern).search(other)


def test_the_empty_text_has_no_word_boundary() -> None:
    assert go_regexp(r"\B").search("")


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
        ("a{2}+", "invalid nested repetition operator: `{2}+`"),
        ("a++", "invalid nested repetition operator: `++`"),
        ("(?<!a)b", "invalid named capture: `(?<!a)b`"),
        (r"\C", r"invalid escape sequence: `\C`"),
        (r"\h", r"invalid escape sequence: `\h`"),
        (r"\Z", r"invalid escape sequence: `\Z`"),
        ("[z-a]", "invalid character class range: `z-a`"),
        (r"\pX", r"invalid character class range: `\pX`"),
        ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
        ("a\\", "trailing backslash at end of expression: ``"),
    ],
)
def test_what_go_refuses_is_refused_in_its_words(pattern: str, problem: str) -> None:
    with pytest.raises(RegexpError) as error:
        go_regexp(pattern)

    assert str(error.value) == f"error parsing regexp: {problem}"


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("a+", "aaa"),
        ("a+?", "a"),
        ("(?U)a+", "a"),
        ("(?U)a+?", "aaa"),
        ("a{2}", "aa"),
        ("a{1,}?", "a"),
        ("a|aa", "a"),
    ],
)
def test_a_match_ends_where_it_ends_in_go(pattern: str, found: str) -> None:
    match = go_regexp(pattern).search("baaab")

    assert match is not None
    assert match.group() == found
