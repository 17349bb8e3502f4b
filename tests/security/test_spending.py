"""`spending` counts calls and bytes: the other tests of this folder rely on it.

Covers: kubewright
"""

from __future__ import annotations

from tests.security.spending import spending


def test_calls_and_bytes_inside_the_block_are_counted() -> None:
    def million() -> bytes:
        return b"x" * 1_000_000

    with spending() as spent:
        kept = [million() for _ in range(10)]

    assert len(kept) == 10
    assert 10 <= spent.calls < 60
    assert 10_000_000 <= spent.bytes < 11_000_000


def test_nothing_is_counted_outside() -> None:
    with spending() as spent:
        pass
    kept = bytes(5_000_000)

    assert len(kept) == 5_000_000
    assert spent.calls < 10
    assert spent.bytes < 100_000
