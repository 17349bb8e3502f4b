"""Where the network cuts the bytes must not matter to the lines in them.

Covers: kubewright.client
"""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from kubewright.client.lines import LineSplitter


@given(
    lines=st.lists(st.binary().filter(lambda b: b"\n" not in b and b"\r" not in b)),
    cuts=st.lists(st.integers(min_value=0, max_value=200)),
)
def test_how_the_bytes_are_cut_does_not_change_the_lines(lines: list[bytes], cuts: list[int]) -> None:
    data = b"".join(line + b"\n" for line in lines) + b"rest"
    edges = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    splitter = LineSplitter()

    found = [line for begin, end in pairwise(edges) for line in splitter.feed(data[begin:end])]

    assert found == lines
    assert splitter.rest == b"rest"
