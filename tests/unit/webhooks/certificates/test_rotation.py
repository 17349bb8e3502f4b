"""Certificates replaced in time, and in an order in which everybody always understands everybody."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from kubewright._base.certificates import certificate_info
from kubewright.errors import ConfigError
from kubewright.webhooks.certificates.rotation import (
    CertificateState,
    Lifetimes,
    announce_successor,
    new_state,
    next_state,
    next_step_at,
)

START = datetime(2030, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
HOST = "hooks.shop.svc"
LIFETIMES = Lifetimes()


def accepts(bundle: bytes, certificate: bytes, at: datetime, host: str = HOST) -> bool:
    """Whether a caller with a bundle accepts a serving certificate at a time."""
    store = Store(x509.load_pem_x509_certificates(bundle))
    verifier = PolicyBuilder().store(store).time(at).build_server_verifier(x509.DNSName(host))
    try:
        verifier.verify(x509.load_pem_x509_certificate(certificate), [])
    except VerificationError:
        return False
    return True


def first(now: datetime = START, *, lifetimes: Lifetimes = LIFETIMES) -> CertificateState:
    return new_state("shop", hosts=[HOST], lifetimes=lifetimes, now=now)


def following(
    material: CertificateState, now: datetime, *, trusted: bool = True, hosts: str = HOST
) -> CertificateState | None:
    return next_state(material, "shop", hosts=hosts.split(), lifetimes=LIFETIMES, now=now, trusted=trusted)


def settled(material: CertificateState, now: datetime) -> CertificateState:
    """After every step that is due."""
    while (after := following(material, now)) is not None:
        material = after
    return material


def test_a_fresh_certificate_is_accepted_and_needs_nothing() -> None:
    material = first()

    assert accepts(material.bundle, material.serving.certificate, START)
    assert following(material, START) is None
    assert next_step_at(material, lifetimes=LIFETIMES) == START + 60 * DAY


def test_a_clock_that_lags_accepts_it_too() -> None:
    material = first()

    assert accepts(material.bundle, material.serving.certificate, START - timedelta(minutes=59))


def test_a_serving_certificate_is_renewed_under_the_same_authority_when_a_third_is_left() -> None:
    material = first()

    assert following(material, START + 60 * DAY - timedelta(seconds=1)) is None
    renewed = following(material, START + 60 * DAY)
    assert renewed is not None
    assert renewed.bundle == material.bundle
    assert certificate_info(renewed.serving.certificate).not_after == START + 150 * DAY


def test_an_old_authority_is_announced_then_promoted_then_dropped() -> None:
    old = settled(first(), START + 240 * DAY)
    now = START + 244 * DAY

    both = settled(old, now)
    assert both.serving == old.serving  # announced: both are trusted, the old one is in use
    assert len(x509.load_pem_x509_certificates(both.bundle)) == 2
    assert following(both, now + timedelta(minutes=9)) is None

    promoted = settled(both, now + timedelta(minutes=10))
    assert promoted.bundle == both.bundle
    assert accepts(both.bundle, promoted.serving.certificate, now)
    assert not accepts(old.bundle, promoted.serving.certificate, now)

    until = certificate_info(old.serving.certificate).not_after
    assert settled(promoted, until - timedelta(seconds=1)).bundle == both.bundle
    assert settled(promoted, until).bundle == promoted.signer.certificate


def test_a_new_authority_is_not_used_before_all_trust_it() -> None:
    material = announce_successor(first(), "shop", lifetimes=LIFETIMES, now=START)

    assert following(material, START + DAY, trusted=False) is None
    assert following(material, START + DAY, trusted=True) is not None


def test_an_authority_about_to_run_out_is_replaced_whoever_trusts_the_next() -> None:
    material = announce_successor(first(), "shop", lifetimes=LIFETIMES, now=START)
    end = certificate_info(material.signer.certificate).not_after

    promoted = following(material, end - timedelta(minutes=5), trusted=False)

    assert promoted is not None
    assert promoted.successor is None


def test_announcing_twice_is_announcing_once() -> None:
    material = announce_successor(first(), "shop", lifetimes=LIFETIMES, now=START)

    assert announce_successor(material, "shop", lifetimes=LIFETIMES, now=START + DAY) is material


def test_after_years_of_sleep_everything_is_new() -> None:
    material = first()
    now = START + 5000 * DAY

    renewed = following(material, now, trusted=False)

    assert renewed is not None
    assert accepts(renewed.bundle, renewed.serving.certificate, now)


def test_a_host_that_is_missing_is_added_and_those_of_others_stay() -> None:
    material = first()

    renewed = following(material, START, hosts="other.shop.svc")

    assert renewed is not None
    assert certificate_info(renewed.serving.certificate).hosts == {HOST, "other.shop.svc"}
    assert following(renewed, START) is None
    assert following(renewed, START, hosts="other.shop.svc") is None


def test_a_certificate_never_outlives_its_authority_and_is_not_renewed_in_vain() -> None:
    lifetimes = Lifetimes(authority=10 * DAY, serving=9 * DAY, propagation=timedelta(minutes=1))
    material = announce_successor(first(lifetimes=lifetimes), "shop", lifetimes=lifetimes, now=START)
    now = START + 6 * DAY

    steps = 0
    while (
        after := next_state(material, "shop", hosts=[HOST], lifetimes=lifetimes, now=now, trusted=False)
    ) is not None:
        material = after
        steps += 1

    assert steps == 1
    assert (
        certificate_info(material.serving.certificate).not_after
        == certificate_info(material.signer.certificate).not_after
    )


def test_over_years_every_late_replica_and_every_late_caller_is_understood() -> None:
    """Replicas serve, and callers trust, what was stored up to nearly the spread ago: any pair of them gets on."""
    lifetimes = Lifetimes(authority=30 * DAY, serving=9 * DAY, propagation=timedelta(hours=6))
    lag = lifetimes.propagation - timedelta(minutes=1)
    now, end = START, START + 200 * DAY
    material = first(lifetimes=lifetimes)
    states = [(now, material)]
    authorities = {material.signer.certificate}

    while now < end:
        after = next_state(material, "shop", hosts=[HOST], lifetimes=lifetimes, now=now, trusted=True)
        if after is not None:
            material = after
            authorities.add(material.signer.certificate)
            states.append((now, material))
            late = [state for _, state in _in_force(states, now - lag, now)]
            for server in late:
                for caller in late:
                    assert accepts(caller.bundle, server.serving.certificate, now)
        else:
            now = max(next_step_at(material, lifetimes=lifetimes), now + timedelta(minutes=1))

    assert len(authorities) > 5


def _in_force(
    states: list[tuple[datetime, CertificateState]], since: datetime, until: datetime
) -> list[tuple[datetime, CertificateState]]:
    """The states that somebody who is late by as much may still have."""
    ends = [time for time, _ in states[1:]] + [until + DAY]
    return [state for state, end in zip(states, ends, strict=True) if end >= since]


def test_lifetimes_that_cannot_work_are_refused() -> None:
    with pytest.raises(ConfigError, match="an authority must outlive its certificates"):
        Lifetimes(authority=DAY, serving=2 * DAY)
    with pytest.raises(ConfigError, match="six times as long"):
        Lifetimes(authority=DAY, serving=DAY, propagation=DAY)
