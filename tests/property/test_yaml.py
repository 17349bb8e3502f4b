"""Any JSON tree comes back as it was, whoever reads it.

Covers: kubewright._base
"""

from __future__ import annotations

from typing import Any

import yaml as pyyaml
from hypothesis import given
from hypothesis import strategies as st

from kubewright._base import yaml

# Half of a surrogate pair is not text; everything else is.
texts = st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from(
    ["y", "0o17", "12:30", "a\nb", "a\n\n", "- ", ": ", " #", "---", "|", "'", '"', "\\", "<<", "1e3", "\t", "x" * 1100]
)
scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | texts
trees = st.recursive(
    scalars | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)


@given(trees)
def test_a_written_tree_reads_as_it_was(tree: Any) -> None:
    assert tree == yaml.load(yaml.dump(tree))


@given(trees)
def test_pyyaml_reads_a_written_tree_as_it_was(tree: Any) -> None:
    written = yaml.dump(tree)

    assert tree == pyyaml.load(written, pyyaml.SafeLoader)
    assert tree == pyyaml.load(written, pyyaml.CSafeLoader)


@given(texts)
def test_reading_any_text_gives_a_tree_or_one_sentence(text: str) -> None:
    complaint = ""
    tree: Any = None
    try:
        tree = yaml.load(text)
    except ValueError as error:
        complaint = str(error)

    assert "\n" not in complaint
    assert tree == yaml.load(yaml.dump(tree))
