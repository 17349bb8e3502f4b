"""Each page of the site has the menu, the switch and the search of its language.

Covers: kubewright
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from docs.theme.languages import (
    SEPARATOR,
    counterpart_of,
    joined,
    on_nav,
    on_page_context,
    on_post_build,
    split_index,
    words_of,
)


@dataclass
class Entry:
    """What mkdocs has in its menu: a page, or a section with others below it."""

    title: str
    url: str = ""
    children: list[Entry] | None = None
    previous_page: Entry | None = None
    next_page: Entry | None = None


@dataclass
class Menu:
    items: list[Entry]
    pages: list[Entry] = field(default_factory=list)
    homepage: Entry | None = None

    def __post_init__(self) -> None:
        def below(entries: list[Entry]) -> list[Entry]:
            return [page for entry in entries for page in (below(entry.children) if entry.children else [entry])]

        self.pages = below(self.items)
        self.homepage = self.pages[0]
        for one, other in zip(self.pages, self.pages[1:], strict=False):
            one.next_page, other.previous_page = other, one


@dataclass
class Config:
    docs_dir: str
    site_dir: str


def menu() -> Menu:
    return Menu(
        [
            Entry("Home", "index.html"),
            Entry("Concepts", children=[Entry("Queues", "concepts/queues.html")]),
            Entry("Reference", children=[Entry("Objects", "reference/objects.html")]),
            Entry(
                "中文",
                children=[
                    Entry("首页", "zh/index.html"),
                    Entry("概念", children=[Entry("队列", "zh/concepts/queues.html")]),
                ],
            ),
        ]
    )


def shown(url: str) -> dict[str, object]:
    nav = menu()
    context: dict[str, object] = {"base_url": ".."}
    on_page_context(context, page=next(page for page in nav.pages if page.url == url), nav=nav)  # type: ignore[arg-type]
    own = context["nav"]
    assert isinstance(own, Menu)
    return {**context, "titles": [item.title for item in own.items], "home": own.homepage and own.homepage.url}


def test_an_english_page_has_the_english_menu() -> None:
    seen = shown("concepts/queues.html")

    assert seen["titles"] == ["Home", "Concepts", "Reference"]
    assert (seen["home"], seen["base_url"]) == ("index.html", "..")
    assert seen["other_language"] == "zh/concepts/queues.html"


def test_a_chinese_page_has_the_chinese_menu_and_the_english_sections_that_nobody_translates() -> None:
    seen = shown("zh/concepts/queues.html")

    assert seen["titles"] == ["首页", "概念", "Reference"]
    assert (seen["home"], seen["other_language"]) == ("zh/index.html", "concepts/queues.html")


@pytest.mark.parametrize(("url", "base"), [("zh/index.html", "."), ("zh/concepts/queues.html", "..")])
def test_the_search_of_a_chinese_page_is_below_the_chinese_pages(url: str, base: str) -> None:
    assert shown(url)["base_url"] == base


def test_a_page_without_a_translation_leads_to_the_first_page_of_the_other_language() -> None:
    assert counterpart_of("reference/objects.html", ["zh/index.html"]) == "zh/index.html"


def test_the_next_page_is_of_the_same_language() -> None:
    nav = menu()

    on_nav(nav)  # type: ignore[arg-type]

    following = {page.url: page.next_page.url for page in nav.pages if page.next_page}
    assert following == {
        "index.html": "concepts/queues.html",
        "concepts/queues.html": "reference/objects.html",
        "zh/index.html": "zh/concepts/queues.html",
    }
    assert nav.pages[3].previous_page is None


def test_each_language_has_a_search_index_of_its_own(tmp_path: Path) -> None:
    built = tmp_path / "search" / "search_index.json"
    built.parent.mkdir()
    entries = [{"location": url, "title": url, "text": ""} for url in ("index.html", "zh/faq.html#a")]
    built.write_text(
        json.dumps({"config": {"lang": ["en"], "separator": r"\s+", "pipeline": ["stemmer"]}, "docs": entries})
    )

    (tmp_path / "zh").mkdir()
    (tmp_path / "zh" / "glossary.md").write_text("| 缓存 | 副本 |\n", encoding="utf-8")

    on_post_build(Config(docs_dir=str(tmp_path), site_dir=str(tmp_path)))

    english = json.loads(built.read_text())
    chinese = json.loads((tmp_path / "zh" / "search" / "search_index.json").read_text())
    assert [entry["location"] for entry in english["docs"]] == ["index.html"]
    assert [entry["location"] for entry in chinese["docs"]] == ["faq.html#a"]
    assert english["config"]["pipeline"] == ["stemmer"]
    assert (chinese["config"]["pipeline"], chinese["config"]["separator"]) == ([], SEPARATOR)


def test_an_index_without_chinese_pages_is_split_as_well() -> None:
    english, chinese = split_index('{"config": {}, "docs": []}')

    assert json.loads(english)["docs"] == json.loads(chinese)["docs"] == []


def test_words_of_the_glossary_are_words_of_the_search_and_so_is_every_other_letter() -> None:
    text = "自定义资源（custom resource）的控制器，ctx.apply。"
    index = {"config": {}, "docs": [{"location": "zh/a.html", "title": "资源", "text": text}]}

    _, chinese = split_index(json.dumps(index), words=["控制器", "资源"])

    (entry,) = json.loads(chinese)["docs"]
    words = [word for word in re.split(SEPARATOR, entry["text"]) if word]
    assert words == [*"自定义", "资源", "custom", "resource", "的", "控制器", "ctx.apply"]
    assert entry["text"].replace("\u200b", "") == text


def test_no_word_of_the_search_is_the_beginning_of_one_of_the_glossary() -> None:
    index = {"config": {}, "docs": [{"location": "zh/a.html", "title": "", "text": "退避之后退回，再后退。"}]}

    _, chinese = split_index(json.dumps(index), words=["退避"])

    (entry,) = json.loads(chinese)["docs"]
    assert [word for word in re.split(SEPARATOR, entry["text"]) if word] == ["退避", "之", "后", "退回", "再", "后退"]


def test_the_glossary_says_which_words_there_are() -> None:
    rows = (
        "| 术语 | 含义 |\n| --- | --- |\n| 资源、自定义资源、CRD（resource） | 一个 |\n| watch、缓存（cache） | 它 |\n"
    )

    assert words_of(rows) == ["术语", "缓存", "资源"]


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<p>控制\n器</p>", "<p>控制器</p>"),
        ("<p>停止，\n<code>until</code></p>", "<p>停止，<code>until</code></p>"),
        ("<p><code>until</code>\n（等待）</p>", "<p><code>until</code>（等待）</p>"),
        ("<p>使用\n<code>until</code></p>", "<p>使用\n<code>until</code></p>"),
        ("<li>缺少权限，\n  则等待</li>", "<li>缺少权限，则等待</li>"),
        ("<p>use\nthis</p>", "<p>use\nthis</p>"),
        ("<strong>停。</strong> 再来", "<strong>停。</strong>再来"),
        ("<p>停。</p>\n<p>再来</p>", "<p>停。</p>\n<p>再来</p>"),
        ("<li>停。\n<ul>", "<li>停。\n<ul>"),
        ("<pre><code>停，\n再\n来</code></pre>", "<pre><code>停，\n再\n来</code></pre>"),
    ],
)
def test_the_end_of_a_line_is_no_space_between_chinese_letters(html: str, expected: str) -> None:
    assert joined(html) == expected
