"""Chunks in, whole lines out."""

from __future__ import annotations

from kubewright.client.lines import LineSplitter


def test_a_chunk_with_several_lines_gives_them_all() -> None:
    splitter = LineSplitter()

    assert splitter.feed(b"one\ntwo\nthree\n") == [b"one", b"two", b"three"]
    assert splitter.rest == b""


def test_a_line_over_many_chunks_comes_out_once_whole() -> None:
    splitter = LineSplitter()

    early = [splitter.feed(part) for part in (b'{"a"', b":", b"", b"1}")]
    late = splitter.feed(b"\n{")

    assert early == [[], [], [], []]
    assert late == [b'{"a":1}']
    assert splitter.rest == b"{"


def test_blank_lines_are_lines() -> None:
    splitter = LineSplitter()

    assert splitter.feed(b"\none\n\r\ntwo\n") == [b"", b"one", b"", b"two"]


def test_windows_line_ends_are_tolerated_even_across_chunks() -> None:
    splitter = LineSplitter()

    assert splitter.feed(b"one\r\ntwo\r") == [b"one"]
    assert splitter.feed(b"\nthree\r\n") == [b"two", b"three"]


def test_half_a_character_at_a_chunk_edge_survives() -> None:
    splitter = LineSplitter()
    text = "größe\n".encode()

    assert splitter.feed(text[:3]) == []
    assert splitter.feed(text[3:]) == ["größe".encode()]


def test_a_line_of_32_megabytes_costs_no_quadratic_copying() -> None:
    # Copying what is held with each chunk would move half a terabyte here and run into the test's time-out.
    splitter = LineSplitter()
    chunk = b"x" * 1024

    for _ in range(32 * 1024):
        splitter.feed(chunk)
    (line,) = splitter.feed(b"\n")

    assert len(line) == 32 * 1024 * 1024
