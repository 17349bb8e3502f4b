"""The pictures of the Chinese pages are the English ones with Chinese words.

Covers: kubewright
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.docs.pictures import PICTURES, missing_words, translated, unused_words, words_of

SVG = '<svg aria-label="A shop"><title>A shop</title><text x="1">tea &amp; cake</text><text> </text></svg>'


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
def test_a_chinese_picture_is_the_english_one_with_chinese_words(picture: Path) -> None:
    english, words = PICTURES[picture]
    svg = english.read_text(encoding="utf-8")

    assert missing_words(svg, words) == [], "put them into tests/docs/picture_words.txt, then `make translations`"
    assert unused_words(svg, words) == [], "take them out of tests/docs/picture_words.txt"
    assert picture.read_text(encoding="utf-8") == translated(svg, words), "`make translations` writes it"


def test_no_chinese_picture_is_left_over() -> None:
    folder = next(iter(PICTURES)).parent

    assert sorted(folder.iterdir()) == sorted(PICTURES)


def test_words_are_replaced_and_nothing_else() -> None:
    words = words_of("# words\n[shop]\nA shop => 商店\ntea & cake => 茶 & 蛋糕\n\n[other]\nspec\n")

    assert words == {"shop": {"A shop": "商店", "tea & cake": "茶 & 蛋糕"}, "other": {"spec": "spec"}}
    assert translated(SVG, words["shop"]) == SVG.replace("A shop", "商店").replace("tea &amp; cake", "茶 &amp; 蛋糕")


def test_words_that_are_missing_or_left_over_are_named() -> None:
    assert missing_words(SVG, {"A shop": "商店"}) == ["tea & cake"]
    assert unused_words(SVG, {"A shop": "商店", "A house": "房子"}) == ["A house"]
