"""YAML that is cheap to send and dear to read."""

from __future__ import annotations

from tests.security.harness.attack import CONFIG_MAPS, Target, attack, many
from tests.security.harness.exchange import Answer

_YAML = "application/yaml"
_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_MAP = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: yaml}\n"


@attack(by="editor")
async def aliases_of_a_long_string(on: Target) -> Answer:
    """One string of a megabyte, meant two thousand times."""
    aliases = b"".join(b"  k%d: *a\n" % number for number in range(2400))
    body = _MAP + b"data:\n  a: &a " + b"x" * 1_000_000 + b"\n" + aliases
    return await on.post(CONFIG_MAPS, body, content_type=_YAML)


@attack(by="nobody")
async def aliases_of_a_string_in_a_review(on: Target) -> Answer:
    """The same by somebody without any right."""
    aliases = b"".join(b"  k%d: *a\n" % number for number in range(2400))
    return await on.post(_REVIEWS, b"spec:\n  a: &a " + b"x" * 1_000_000 + b"\n" + aliases, content_type=_YAML)


@attack(by="nobody")
async def aliases_of_aliases(on: Target) -> Answer:
    """Ten lists of the one before: a billion laughs."""
    lines = [b"a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    lines += [b"a%d: &a%d [%s]" % (n, n, b", ".join([b"*a%d" % (n - 1)] * 9)) for n in range(1, 10)]
    return await on.post(_REVIEWS, b"\n".join(lines), content_type=_YAML)


@attack(by="nobody")
async def merges(on: Target) -> Answer:
    """A map merged into ten thousand others."""
    base = b"base: &b {" + b", ".join(b"k%d: 1" % number for number in range(5000)) + b"}\n"
    return await on.post(_REVIEWS, base + b"".join(b"m%d: {<<: *b}\n" % n for n in range(20_000)), content_type=_YAML)


@attack(by="nobody")
async def short_items(on: Target) -> Answer:
    """A flow sequence of a million items."""
    return await on.post(_REVIEWS, b"spec: [" + b"1," * many(2) + b"1]", content_type=_YAML)


@attack(by="nobody")
async def short_lines(on: Target) -> Answer:
    """A map of two hundred thousand lines."""
    body = b"spec:\n" + b"".join(b"  k%d: 1\n" % number for number in range(many(12)))
    return await on.post(_REVIEWS, body, content_type=_YAML)


@attack(by="nobody")
async def one_name_many_times(on: Target) -> Answer:
    """The same key in each line."""
    return await on.post(_REVIEWS, b"spec:\n" + b"  a: 1\n" * many(7), content_type=_YAML)


@attack(by="nobody")
async def nesting(on: Target) -> Answer:
    """A sequence in a sequence, a million times."""
    return await on.post(_REVIEWS, b"[" * 2_900_000, content_type=_YAML)


@attack(by="nobody")
async def block_nesting(on: Target) -> Answer:
    """Dashes without end."""
    return await on.post(_REVIEWS, b"- " * 1_400_000 + b"x", content_type=_YAML)


@attack(by="nobody")
async def nested_maps(on: Target) -> Answer:
    """Questions without end: each key is a map."""
    return await on.post(_REVIEWS, b"? " * 1_400_000 + b"x", content_type=_YAML)


@attack(by="nobody")
async def documents(on: Target) -> Answer:
    """Half a million documents."""
    return await on.post(_REVIEWS, b"---\na\n" * 480_000, content_type=_YAML)


@attack(by="nobody")
async def comments(on: Target) -> Answer:
    """Comments and nothing else."""
    return await on.post(_REVIEWS, b"#\n" * 1_400_000, content_type=_YAML)


@attack(by="nobody")
async def numbers(on: Target) -> Answer:
    """Numbers with underscores, colons and exponents: YAML 1.1 has many forms."""
    return await on.post(_REVIEWS, b"spec: [" + b"1:1:1:1:1:1.1," * many(14) + b"1]", content_type=_YAML)


@attack(by="nobody")
async def a_long_number(on: Target) -> Answer:
    """An integer of three million digits, and one with as many sixties."""
    return await on.post(
        _REVIEWS, b"spec: {a: " + b"9" * 1_400_000 + b", b: 1" + b":10" * 400_000 + b"}", content_type=_YAML
    )


@attack(by="nobody")
async def tags(on: Target) -> Answer:
    """Tags for objects of Python, binary data and sets."""
    body = b"a: !!python/object/apply:os.system [true]\nb: !!binary " + b"A" * 2_000_000 + b"\nc: !!set {x, y}\n"
    return await on.post(_REVIEWS, body, content_type=_YAML)


@attack(by="nobody")
async def indentation(on: Target) -> Answer:
    """Two thousand levels, each indented by one more space."""
    body = b"".join(b" " * level + b"a:\n" for level in range(2300))
    return await on.post(_REVIEWS, body, content_type=_YAML)


@attack(by="nobody")
async def quoted(on: Target) -> Answer:
    """One quoted string with an escape in each place and one over many lines."""
    body = b'a: "' + b"\\x41" * 350_000 + b'"\nb: "' + b"\n\n" * 700_000 + b'"\n'
    return await on.post(_REVIEWS, body, content_type=_YAML)
