"""What the build says about a site that is not in its two languages.

Covers: kubewright
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.docs.built import wrong_in_site


def page(language: str, *, switch: str, to: str, home: str, base: str) -> str:
    return (
        f'<html lang="{language}"><a class="md-language" href="{switch}" hreflang="{to}" lang="{to}">'
        f'<nav class="md-tabs">{home}</nav><script>{{"base": "{base}"}}</script>'
    )


ENGLISH = page("en", switch="zh/index.html", to="zh", home="Home", base=".")
CHINESE = page("zh", switch="../index.html", to="en", home="首页", base=".")


def site(folder: Path, *, english: str = ENGLISH, chinese: str = CHINESE, found: str = "index.html#a") -> Path:
    for name, text in {
        "index.html": english,
        "404.html": "<html>",
        "zh/index.html": chinese,
        "search/search_index.json": json.dumps({"docs": [{"location": "index.html"}]}),
        "zh/search/search_index.json": json.dumps({"docs": [{"location": found}]}),
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_a_site_in_two_languages_is_right(tmp_path: Path) -> None:
    assert list(wrong_in_site(site(tmp_path))) == []


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ('<html lang="zh"', '<html lang="en"', "does not say that it is in 'zh'"),
        ('class="md-language"', "", "has no switch"),
        ("../index.html", "../home.html", "the switch to 'en' leads to ../home.html"),
        ('hreflang="en"', 'hreflang="de"', "the switch to 'en' leads to ../index.html"),
        ("首页", "Home", "has not the menu of 'zh'"),
        ('"base": "."', '"base": ".."', "has not the search of 'zh'"),
    ],
)
def test_what_is_wrong_in_a_page_is_named(tmp_path: Path, before: str, after: str, says: str) -> None:
    (problem,) = wrong_in_site(site(tmp_path, chinese=CHINESE.replace(before, after)))

    assert problem.startswith("zh/index.html")
    assert says in problem


def test_an_english_page_with_the_chinese_menu_is_named(tmp_path: Path) -> None:
    assert list(wrong_in_site(site(tmp_path, english=ENGLISH.replace("Home", "首页")))) == [
        "index.html has not the menu of 'en'"
    ]


def test_a_page_that_the_search_does_not_know_is_named(tmp_path: Path) -> None:
    assert list(wrong_in_site(site(tmp_path, found="faq.html"))) == ["zh/index.html is not found by the search of 'zh'"]
