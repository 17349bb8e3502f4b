"""YAML is read as Kubernetes reads it, and written so that every reader agrees."""

from __future__ import annotations

from typing import Any

import pytest
import yaml as pyyaml

from kubewright._base import yaml


@pytest.mark.parametrize(
    ("text", "value"),
    [
        # The six rows in which Python's loaders differ from Kubernetes.
        ("yes", True),
        ("on", True),
        ("y", True),
        ("0o17", 15),
        ("017", 15),
        ("1_000", 1000),
        ("12:30", "12:30"),
        ("2026-01-01", "2026-01-01"),
        # Their neighbours, as sigs.k8s.io/yaml 1.6 reads them.
        ("Off", False),
        ("N", False),
        ("yEs", "yEs"),
        ("~", None),
        ("", None),
        ("NULL", None),
        ("08", 8),
        ("0x_1F", 31),
        ("-0b101", -5),
        ("+12", 12),
        ("1.0", 1),
        ("1e3", 1000),
        ("1.5", 1.5),
        (".5", 0.5),
        (".5_0", 0.5),
        ("._5", "._5"),
        ("1e400", "1e400"),
        ("18446744073709551615", 2**64 - 1),
        ("18446744073709551616", float(2**64)),
        ("-9223372036854775808", -(2**63)),
        ("0o8", "0o8"),
        ("_1", "_1"),
        ("1.2.3", "1.2.3"),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
        ("=", "="),
        ("<<", "<<"),
        ("'yes'", "yes"),
        ('"12"', "12"),
        ("!!str 12", "12"),
        ("!!int '12'", 12),
        ("!!float 1", 1),
        ("!!timestamp 2026-01-01", "2026-01-01"),
        ("! yes", True),
    ],
)
def test_a_scalar_means_what_kubernetes_takes_it_for(text: str, value: object) -> None:
    found = yaml.load(f"- {text}\n")[0]

    assert value == found
    assert isinstance(found, bool) == isinstance(value, bool)


def test_keys_become_text() -> None:
    assert yaml.load("1: a\non: b\n1.5: c") == {"1": "a", "true": "b", "1.5": "c"}


def test_a_merge_key_adds_what_is_not_there_and_the_first_mapping_has_the_say() -> None:
    text = "a: &a {x: 1, y: 1}\nb: &b {y: 2, z: 2}\nc:\n  <<: [*a, *b]\n  x: 3\n"

    assert yaml.load(text)["c"] == {"x": 3, "true": 1, "z": 2}


def test_what_an_alias_repeats_is_a_copy() -> None:
    tree = yaml.load("a: &a [1]\nb: *a\n")

    tree["a"].append(2)

    assert tree["b"] == [1]


def test_several_documents_are_read_in_order_without_the_empty_ones() -> None:
    assert yaml.load_all("---\na: 1\n---\n# nothing\n---\nb: 2\n") == [{"a": 1}, {"b": 2}]
    assert yaml.load_all("") == []
    assert yaml.load("") is None


def test_bytes_may_begin_with_a_byte_order_mark() -> None:
    assert yaml.load("\ufeffa: é".encode()) == {"a": "é"}
    assert yaml.load("\ufeffa: é") == {"a": "é"}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a: 1\nb: 2\na: 3", 'line 3, column 1: the key "a" occurs here a second time'),
        ("1: a\n'1': b", 'line 2, column 1: the key "1" occurs here a second time'),
        ("a: 1\n---\nb: 2", "one YAML document was expected, and the text holds 2"),
        ("a: [1\nb: 2", "line 2, column 2: did not find expected ',' or ']'"),
        ("a: *hunter2", "line 1, column 4: an alias names an anchor that is not complete before it"),
        ("&a [*a]", "line 1, column 5: an alias names an anchor that is not complete before it"),
        ("a: !hunter2 b", "line 1, column 4: the tag is not one that JSON data can have"),
        ("a: !!set {b}", "line 1, column 4: the tag is not one that JSON data can have"),
        ("a: !!int b", "line 1, column 4: the value is not of the type its tag !!int says"),
        ("a: .inf", "line 1, column 4: infinity and not-a-number cannot be written as JSON"),
        ("? [a]\n: b", "line 1, column 3: a key must be text, not empty, a list or a mapping"),
        ("~: b", "line 1, column 1: a key must be text, not empty, a list or a mapping"),
        ("a: {<<: 1}", "line 1, column 5: the merge key << takes a mapping or a list of mappings"),
        ("a: b\x00", "line 1, column 5: the character U+0000 is not allowed in YAML"),
        (b"a: 1\nb: \xff", "line 2 is not UTF-8 text (byte 8)"),
    ],
)
def test_bad_text_is_one_sentence_with_its_place_and_without_values(text: str | bytes, sentence: str) -> None:
    with pytest.raises(ValueError) as caught:
        yaml.load(text)

    assert sentence == str(caught.value)


@pytest.mark.parametrize("text", ["[" * 100_000, "{a: " * 100_000, "- " * 100_000])
def test_deep_nesting_is_refused_and_does_not_crash(text: str) -> None:
    with pytest.raises(ValueError, match="nesting is deeper than 200 levels"):
        yaml.load(text)


def test_aliases_cannot_fill_the_memory() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]

    with pytest.raises(ValueError, match="document contains excessive aliasing"):
        yaml.load("\n".join(lines))


def test_a_tree_is_written_in_blocks_and_keeps_its_order() -> None:
    tree = {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": "a", "labels": {}},
        "args": ["--flag=1", ["x", []], {"b": None, "a": True}],
        "data": {"text": "one\ntwo\n", "bare": "one\n two", "more": "x\n\n"},
        "size": 1.5,
    }

    assert (
        yaml.dump(tree)
        == """\
kind: ConfigMap
apiVersion: v1
metadata:
  name: a
  labels: {}
args:
- --flag=1
- - x
  - []
- b: null
  a: true
data:
  text: |
    one
    two
  bare: |-
    one
     two
  more: |+
    x

size: 1.5
"""
    )


@pytest.mark.parametrize(
    "text",
    [
        *("yes", "N", "null", "~", "", "017", "0o17", "1_000", "12:30", "2026-01-01", "1e3", "1e400", ".5", "+1"),
        *("<<", "=", ".inf", "---", "...", "- a", "a: b", "a #b", "a:", " a", "a ", "#a", "*a", "&a", "!a", "%a"),
        *("@a", "`a", "'a", '"a', "[a", "{a", "?a", "|", ">", "a\tb", "a\x7f", "a\u2028b", "\x85", "\ufeff", "\n"),
        *("2026-01-01T00:00:00Z", "1.", "0x1f", "-", "-1", " \n a", "a\n ", "a\r\nb", "\U0001f389", "1:2:3"),
    ],
)
def test_ambiguous_text_is_quoted_and_read_back_by_every_loader(text: str) -> None:
    written = yaml.dump({"key": text, text: [text]})

    expected = {"key": text, text: [text]}
    assert expected == yaml.load(written)
    assert expected == pyyaml.load(written, pyyaml.SafeLoader)
    if text != "\U0001f389":
        assert '"' in written.splitlines()[0]


@pytest.mark.parametrize(
    "text", ["memcached:1.6", "http://a/b?c=d#e", "How many pods to keep.", "--a", "500m", "10.0.0.0/24", "a-b_c", "é"]
)
def test_common_text_stays_as_it_is(text: str) -> None:
    assert f"a: {text}\n" == yaml.dump({"a": text})


@pytest.mark.parametrize("number", [1e16, 1e-7, 1.5e300, -0.25, 2**63, 0, -1])
def test_numbers_are_numbers_to_every_loader(number: float) -> None:
    written = yaml.dump([number])

    assert [number] == yaml.load(written)
    assert [number] == pyyaml.load(written, pyyaml.SafeLoader)


def test_documents_are_parted() -> None:
    assert yaml.dump_all([{"a": 1}, ["b"]]) == "a: 1\n---\n- b\n"
    assert yaml.load_all(yaml.dump_all([{"a": 1}, ["b"]])) == [{"a": 1}, ["b"]]


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        ({1: "a"}, "the key 1 is not text; YAML for Kubernetes has text keys only"),
        ([float("inf")], "a value of type float cannot be written as YAML for Kubernetes"),
        ([object()], "a value of type object cannot be written as YAML for Kubernetes"),
        (["\ud800"], "text with half of a surrogate pair cannot be written as YAML"),
    ],
)
def test_what_is_not_json_is_not_written(bad: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=f"^{sentence}$"):
        yaml.dump(bad)


def test_a_tree_nested_without_end_is_not_written() -> None:
    tree: list[Any] = []
    for _ in range(300):
        tree = [tree]

    with pytest.raises(ValueError, match="nested deeper than 200"):
        yaml.dump(tree)
