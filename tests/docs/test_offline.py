"""A page that loads something from elsewhere is found, and a link to elsewhere is none.

Covers: tests.docs.offline
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.docs.offline import loads_in_page, loads_in_style, loads_of_site


@pytest.mark.parametrize(
    "html",
    [
        '<script src="https://cdn.example.com/a.js"></script>',
        "<SCRIPT SRC='//cdn.example.com/a.js'></SCRIPT>",
        '<link rel="stylesheet" href="https://fonts.example.com/css?family=Roboto">',
        '<link rel="preconnect" href="https://fonts.example.com">',
        '<img src="https://example.com/badge.svg">',
        '<img srcset="a.png 1x, https://example.com/b.png 2x">',
        '<style>@import "https://example.com/a.css";</style>',
        '<p style="background: url(//example.com/a.png)">',
        '<a href="https://github.com/example/example" data-md-component="source">',
    ],
)
def test_what_a_page_loads_from_elsewhere_is_found(html: str) -> None:
    assert len(loads_in_page(html)) == 1


@pytest.mark.parametrize(
    "html",
    [
        '<a href="https://example.com">elsewhere</a>',
        '<link rel="canonical" href="https://example.com/a.html">',
        '<script src="assets/a.js"></script><img src="../a.png"><link rel="icon" href="assets/logo.svg">',
        "<code>&lt;script src='https://example.com/a.js'&gt;</code>",
        '<script>const text = "https://example.com"</script>',
    ],
)
def test_what_a_page_only_names_is_not_found(html: str) -> None:
    assert loads_in_page(html) == []


def test_what_a_style_sheet_loads_from_elsewhere_is_found() -> None:
    assert loads_in_style("@font-face { src: url('https://example.com/a.woff2') }") == ["https://example.com/a.woff2"]
    assert loads_in_style("a { background: url(data:image/png;base64,AAAA) } b { background: url('a.png') }") == []


def test_the_files_of_a_site_are_named(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "index.html").write_text("<p>")
    (tmp_path / "inside/page.html").write_text('<img src="https://example.com/a.png">')
    (tmp_path / "site.css").write_text("@import 'https://example.com/a.css';")

    assert list(loads_of_site(tmp_path)) == [
        "inside/page.html loads https://example.com/a.png",
        "site.css loads https://example.com/a.css",
    ]
