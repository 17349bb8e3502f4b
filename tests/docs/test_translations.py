"""The Chinese pages say what the English ones say, as far as a program can see.

Covers: kubewright
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.docs.translations import (
    ENGLISH_PAGES,
    PAGES,
    ROOT,
    TRANSLATIONS,
    Pair,
    bare,
    compared,
    copied,
    differences,
    sections_of,
    stale,
    wording,
)

ENGLISH_ALONE = {
    "architecture.md",
    "benchmarks.md",
    "embedded.md",
    "errors.md",
    "request-costs.md",
}
"""Pages for those who work on Kubewright or look something up, beside the decisions and the reference."""
PAIR = Pair(
    ROOT / "docs" / "shop.md",
    ROOT / "docs" / "zh" / "shop.md",
    {ROOT / "docs" / name: ROOT / "docs" / "zh" / name for name in ("shop.md", "tutorial.md")},
)
SHOP = """# A shop

It has `Shop`, see the [tutorial](tutorial.md#2-start-a-project) and [errors](errors.md).

## What it *sells*

![Goods](pictures/flow.svg)

- tea
- cake

```python
price = 1  # in gold
```
"""
商店 = """# 商店

它有 `Shop`，见[教程](tutorial.md#2-start-a-project)和[错误](../errors.md)。

## 卖什么 {#what-it-sells}

![商品](../pictures/flow.svg)

- 茶
- 蛋糕

```python
price = 1  # 以金币计
```
"""


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def in_english_alone(page: Path) -> bool:
    parts = page.relative_to(ROOT / "docs").parts
    return parts[0] in ("decisions", "reference") or "/".join(parts) in ENGLISH_ALONE


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_chinese_page_is_in_step_with_the_english_one(page: Path) -> None:
    english = PAGES[page]
    if not english.exists():
        pytest.fail(f"{english} is gone: remove {page}, and take it out of mkdocs.yml", pytrace=False)
    pair = Pair(english, page, TRANSLATIONS)
    problems = [*differences(read(english), read(page), pair), *stale(read(english), read(page), pair)]
    if problems:
        pytest.fail("\n".join(problems), pytrace=False)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_chinese_pages_use_one_word_for_one_thing_and_full_width_marks(page: Path) -> None:
    assert list(wording(read(page))) == []


def test_every_page_for_authors_of_operators_is_there_in_chinese() -> None:
    missing = [
        f"{page.relative_to(ROOT)} is not there in Chinese: write docs/zh/{page.relative_to(ROOT / 'docs')}"
        for page in ENGLISH_PAGES
        if page not in TRANSLATIONS and not in_english_alone(page)
    ]

    assert missing == []


def test_the_chinese_menu_has_the_pages_in_the_order_of_the_english_one() -> None:
    menu = read(ROOT / "mkdocs.yml").partition("\nnav:\n")[2]
    pages = [line.rpartition(": ")[2] for line in menu.splitlines() if line.endswith(".md")]
    chinese = [page.removeprefix("zh/") for page in pages if page.startswith("zh/")]

    assert chinese == [page for page in pages if page in chinese]


def test_a_translation_differs_in_words_links_and_comments() -> None:
    page = compared(SHOP, copied(SHOP, 商店, PAIR), PAIR)

    assert list(differences(SHOP, page, PAIR)) == []
    assert list(stale(SHOP, page, PAIR)) == []
    assert [section.title for section in sections_of(page)] == ["", "商店", "卖什么"]


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("price = 1", "price = 2", "the code differs"),
        ("- 蛋糕\n", "", "2 list entries in English, 1 in Chinese"),
        ("`Shop`", "商店", "the name in backticks Shop is missing"),
        ("`Shop`", "`Shop`、`Store`", "the name in backticks Store is not in English"),
        ("#2-start-a-project", "", "docs/zh/tutorial.md#2-start-a-project is missing"),
        ("(tutorial.md", "(../tutorial.md", "docs/tutorial.md#2-start-a-project is not in English"),
        ("![商品](../pictures/flow.svg)", "", "the link or picture !docs/pictures/flow.svg is missing"),
        (" {#what-it-sells}", "", "the heading has no {#what-it-sells}"),
        ("## 卖什么", "### 卖什么", "the headings differ"),
        ("```python\nprice = 1  # 以金币计\n```\n", "", "1 blocks of code in English, 0 in Chinese"),
    ],
)
def test_what_is_missing_or_different_is_named(before: str, after: str, says: str) -> None:
    assert before in 商店

    problems = list(differences(SHOP, 商店.replace(before, after), PAIR))

    assert any(says in problem for problem in problems), problems
    assert all(problem.startswith("docs/zh/shop.md, made from docs/shop.md") for problem in problems)


@pytest.mark.parametrize(
    ("before", "after", "section"),
    [("- tea", "- green tea", "What it *sells*"), ("It has", "It had", "A shop"), ("in gold", "in silver", "What it")],
)
def test_a_changed_english_page_asks_for_a_look_at_the_section(before: str, after: str, section: str) -> None:
    page = compared(SHOP, 商店, PAIR)
    assert before in SHOP

    (problem,) = stale(SHOP.replace(before, after), page, PAIR)

    assert f"docs/shop.md: the section '{section}" in problem
    assert "translate into docs/zh/shop.md" in problem
    assert problem.endswith("`make translations SEEN=docs/zh/shop.md`.")


def test_lines_that_end_elsewhere_and_other_code_ask_for_nothing() -> None:
    page = compared(SHOP, copied(SHOP, 商店.replace("以金币计", "in gold"), PAIR), PAIR)
    changed = SHOP.replace("It has `Shop`, see", "It has `Shop`,\nsee").replace("price = 1  # in", "price = 9  # of")

    assert list(stale(changed, page, PAIR)) == []
    assert list(differences(changed, copied(changed, page, PAIR), PAIR)) == []


def test_new_figures_of_a_benchmark_ask_for_nothing() -> None:
    figures = "<!-- measured by make bench -->\n\n| CPU | 1.5 |\n\n<!-- end -->\n"
    page = compared(SHOP + figures, 商店 + figures, PAIR)

    assert list(stale(SHOP + figures.replace("1.5", "0.7"), page, PAIR)) == []


def test_new_code_is_copied_and_translated_comments_of_old_code_stay() -> None:
    assert "price = 1  # 以金币计" in copied(SHOP, 商店, PAIR)
    assert "price = 2  # in gold" in copied(SHOP.replace("price = 1", "price = 2"), 商店, PAIR)


def test_a_new_section_is_the_one_that_is_named() -> None:
    page = compared(SHOP, 商店, PAIR)

    (problem,) = stale(SHOP.replace("## What it", "## When\n\nAlways.\n\n## What it"), page, PAIR)

    assert "the section 'When' has changed" in problem


def test_a_section_that_is_gone_is_noticed() -> None:
    page = compared(SHOP, 商店, PAIR)

    (problem,) = stale(SHOP.partition("## What it")[0], page, PAIR)

    assert "docs/shop.md: sections are gone or moved" in problem


def test_a_page_that_nobody_compared_is_noticed() -> None:
    (problem,) = stale(SHOP, 商店, PAIR)

    assert "docs/zh/shop.md has no record" in problem


def test_only_comments_and_docstrings_may_be_translated() -> None:
    assert bare('```python\n"""One."""\nx = "#"  # one\n```') == bare('```python\n"""一。"""\nx = "#"  # 一\n```')
    assert bare('```python\nx = "one"\n```') != bare('```python\nx = "一"\n```')
    assert bare('```python\nprint("""one""")\n```') != bare('```python\nprint("""一""")\n```')
    assert bare('```python title="a.py"\nx = 1\n```') != bare("```python\nx = 1\n```")
    assert bare("```console\n$ make  # one\n```") == bare("```console\n$ make     # 一\n```")
    assert bare("```console\n$ make\none\n```") != bare("```console\n$ make\n一\n```")
    assert bare("```yaml\na: 1  # one\n```") != bare("```yaml\na: 1  # 一\n```")


@pytest.mark.parametrize(
    "text", ["对象,控制器", "对象(一个)", "用 `Shop`, 然后", "定制资源", "控制器进行调和", "**停。**再来", "他说「停"]
)
def test_other_words_and_half_width_marks_are_noticed(text: str) -> None:
    assert len(list(wording(f"# 商店\n\n{text}\n"))) == 1


def test_marks_in_code_and_links_are_nobodys_business() -> None:
    assert list(wording("# 商店\n\n用 `f(a, b)`，见[商店](a,b.md)。\n\n```text\n对象,\n```\n")) == []
