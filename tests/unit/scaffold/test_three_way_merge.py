"""Merging what was rendered, what the user made of it, and what is rendered now."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.scaffold.three_way_merge import merge

BASE = "one\ntwo\nthree\nfour\nfive\n"
TEXTS = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=8).map(lambda lines: "".join(f"{x}\n" for x in lines))


@pytest.mark.parametrize(
    ("mine", "new", "merged"),
    [
        (BASE, "one\n2\nthree\nfour\nfive\n", "one\n2\nthree\nfour\nfive\n"),
        ("zero\n" + BASE, BASE + "six\n", "zero\n" + BASE + "six\n"),
        ("one\ntwo\nthree\nfour\n5\n", "1\ntwo\nthree\nfour\nfive\n", "1\ntwo\nthree\nfour\n5\n"),
        ("one\nthree\nfour\nfive\n", "one\ntwo\nthree\nfour\n", "one\nthree\nfour\n"),
        ("one\n2\nthree\nfour\nfive\n", "one\n2\nthree\nfour\nfive\nsix\n", "one\n2\nthree\nfour\nfive\nsix\n"),
    ],
)
def test_changes_in_different_places_are_both_made(mine: str, new: str, merged: str) -> None:
    found = merge(BASE, mine, new)

    assert (found.text, found.conflicts) == (merged, 0)


def test_a_contradiction_keeps_both_between_markers() -> None:
    found = merge(BASE, BASE.replace("three", "drei"), BASE.replace("three", "trois"))

    assert found.conflicts == 1
    assert found.text == "one\ntwo\n<<<<<<< yours\ndrei\n=======\ntrois\n>>>>>>> kubewright\nfour\nfive\n"


def test_entries_that_both_added_to_a_list_are_both_kept_when_asked_to() -> None:
    base = "resources:\n- a\n"

    found = merge(base, base + "- mine\n", base + "- new\n", both=True)

    assert (found.text, found.conflicts) == ("resources:\n- a\n- mine\n- new\n", 0)


@given(base=TEXTS, mine=TEXTS, new=TEXTS)
def test_who_changed_nothing_gets_the_others_text(base: str, mine: str, new: str) -> None:
    assert merge(base, base, new).text == new
    assert merge(base, mine, base).text == mine
    assert merge(base, mine, mine).text == mine


@given(base=TEXTS, mine=TEXTS, new=TEXTS)
def test_no_line_of_the_user_is_lost(base: str, mine: str, new: str) -> None:
    merged = merge(base, mine, new).text.splitlines()

    for line in mine.splitlines():
        assert line in merged or line in base.splitlines()


@pytest.mark.parametrize(
    ("mine", "new", "merged"),
    [
        ("one\ntwo\nmine\nthree\nfour\nfive\n", "one\n2\nthree\nfour\nfive\n", "one\n2\nmine\nthree\nfour\nfive\n"),
        ("one\nmine\ntwo\nthree\nfour\nfive\n", "one\n2\nthree\nfour\nfive\n", "one\nmine\n2\nthree\nfour\nfive\n"),
        ("one\ntwo\n3\nfour\nfive\n", "one\n2\nthree\nfour\nfive\n", "one\n2\n3\nfour\nfive\n"),
        ("one\ntwo\nthree\nfour\n5", BASE + "six\n", "one\ntwo\nthree\nfour\n5\nsix\n"),
    ],
)
def test_changes_of_neighbouring_lines_are_both_made(mine: str, new: str, merged: str) -> None:
    found = merge(BASE, mine, new)

    assert (found.text, found.conflicts) == (merged, 0)


def test_where_a_side_is_preferred_only_the_lines_in_question_are_its_own() -> None:
    mine, new = BASE.replace("three", "drei").replace("five", "5"), BASE.replace("three", "trois").replace("one", "1")

    ours, theirs = merge(BASE, mine, new, prefer="mine"), merge(BASE, mine, new, prefer="new")

    assert (ours.text, ours.conflicts, ours.dropped) == ("1\ntwo\ndrei\nfour\n5\n", 0, ("trois",))
    assert (theirs.text, theirs.conflicts, theirs.dropped) == ("1\ntwo\ntrois\nfour\n5\n", 0, ("drei",))
