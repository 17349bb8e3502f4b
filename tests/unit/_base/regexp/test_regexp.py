"""Patterns in Go's syntax match what Go matches, and are refused in Go's words."""

import pytest

from kubewright._base.regexp import BoundedWork, Regexp, RegexpError, go_regexp, re2_engine


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
    assert go_regexp(pattern).match_string(matching)
    assert not go_regexp(pattern).match_string(other)


def test_the_empty_text_has_no_word_boundary() -> None:
    assert go_regexp(r"\B").match_string("")


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
    assert go_regexp(pattern).find_string("baaab") == found
    assert go_regexp(f"(?:{pattern}|x)").find_string("baaab" + "é" * 1000) == found


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("a*", "baac", ["", "aa", ""]),
        ("", "aé", ["", "", ""]),
        ("é", "aéé", ["é", "é"]),
        ("^a", "aa", ["a"]),
        (r"\b", "a b", ["", "", "", ""]),
        ("(?:x*)*", "éxx", ["", "xx"]),
    ],
)
def test_all_matches_are_those_of_go(pattern: str, text: str, found: list[str]) -> None:
    assert go_regexp(pattern).find_all_string(text) == found
    assert go_regexp(f"(?:(?:{pattern})|[^\\s\\S]+)").find_all_string(text) == found
    assert go_regexp(pattern).find_all_string(text, 1) == found[:1]


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("(" * 1001 + "a" + ")" * 1001, "expression nests too deeply"),
        ("(?:" * 7000, "expression too large"),
        ("((a{10}){10}){11}", "invalid repeat count"),
        ("a{" + "9" * 5000 + "}", "invalid repeat count"),
        (r"\pL{100}", "expression too large"),
        ("a" * 1_000_000, "expression too large"),
    ],
)
def test_a_pattern_has_limits(pattern: str, problem: str) -> None:
    with pytest.raises(RegexpError, match=f"error parsing regexp: {problem}"):
        go_regexp(pattern)


@pytest.mark.parametrize("pattern", ["(" * 999 + "a" + ")" * 999, "(?:" * 2000 + "a" + ")" * 2000])
def test_what_go_allows_to_nest_is_run(pattern: str) -> None:
    assert go_regexp(pattern).match_string("a")


@pytest.mark.parametrize(
    "pattern",
    [
        "^(a+)+$",
        "^(a|a)*$",
        "^(a|aa)+$",
        "^(a*)*$",
        "^a*a*a*a*a*a*a*a*$",
        "(a?){30}a{30}b",
        "^(.*a){25}$",
        "(x+x+)+y|^(a+)+$",
    ],
)
def test_no_pattern_takes_longer_than_its_text_is_long(pattern: str) -> None:
    assert not go_regexp(pattern).match_string("a" * 50_000 + "!")
    assert not go_regexp(pattern).match_string("a" * 40 + "!")


def test_the_work_of_one_search_is_bounded() -> None:
    with pytest.raises(RegexpError, match="too much work in a text of 3000000 bytes"):
        go_regexp("(a|b)*a(a|b){500}c").match_string("ab" * 1_500_000)


def test_the_work_of_many_searches_is_bounded_together() -> None:
    regexp = go_regexp("^(a|b)*a(a|b){90}c")
    with BoundedWork():
        for _ in range(10):
            assert not regexp.match_string("b" * 10_000)
        with pytest.raises(RegexpError, match="too much work"):
            assert all(not regexp.match_string("b" * 10_000) for _ in range(20))
    assert not regexp.match_string("b" * 10_000)


def test_half_of_a_pair_is_the_replacement_character() -> None:
    assert go_regexp("^(\ufffd|x)+$").match_string("\ud800")


@pytest.fixture
def without_re2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(re2_engine, "binding", None)


@pytest.mark.usefixtures("without_re2")
@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|b)*$", r"^\pL$", "(a|a){40}", "a{0,1000}" * 9])
def test_without_re2_a_pattern_that_may_take_long_is_refused(pattern: str) -> None:
    with pytest.raises(RegexpError, match=r"pip install 'kubewright\[cluster\]'"):
        Regexp(pattern)


@pytest.mark.usefixtures("without_re2")
def test_without_re2_a_short_text_is_matched_and_a_long_one_refused() -> None:
    regexp = Regexp("^[a-z]+-[a-z]+$")

    assert regexp.match_string("a-b")
    assert regexp.find_all_string("a-b") == ["a-b"]
    with pytest.raises(RegexpError, match=r"pip install 'kubewright\[cluster\]'"):
        regexp.match_string("a" * 100_000)
