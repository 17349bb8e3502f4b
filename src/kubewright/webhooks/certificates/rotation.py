"""When webhook certificates are replaced, and by which: pure functions of the current state and the time.

A `CertificateState` is an authority that signs, the serving certificate it signed, and the authorities that callers are
to trust. `next_state` returns the next state, if a step is due:

    1 announce   an authority near its end gets a successor; callers are to trust both, the old one still signs
    2 promote    when every caller trusts the successor, it signs; a new serving certificate goes out
    3 drop       when the last certificate of the old authority has expired, callers need not trust it any more

The order matters: a replica one step behind still serves the old certificate, and an API server one step behind still
has the old bundle. In every state old certificates verify under the new bundle and new certificates under the old one,
so no call fails. A serving certificate alone is replaced in one step, because its authority stays. `SecretCertificates`
keeps a state in the cluster and takes the steps.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final, final

import msgspec

from kubewright._base.certificates import BACKDATED, Authority, KeyPair, certificate_info
from kubewright.errors import ConfigError

__all__ = ("CertificateState", "Lifetimes", "announce_successor", "new_state", "next_state", "next_step_at")

_LEFT_AT_RENEWAL: Final = 1 / 3
_MAX_NAME_LENGTH: Final = 40
_MIN_LIFETIME: Final = timedelta(minutes=1)


@final
class Lifetimes(msgspec.Struct, frozen=True, kw_only=True):
    """How long certificates are valid. Each is replaced when a third of its time is left."""

    authority: timedelta = timedelta(days=365)
    serving: timedelta = timedelta(days=90)
    propagation: timedelta = timedelta(minutes=10)
    """The least time between announcing an authority and using it: API servers notice a changed configuration late."""

    def __post_init__(self) -> None:
        if not self.authority >= self.serving >= _MIN_LIFETIME or self.propagation * 6 > self.authority:
            raise ConfigError(
                f"certificates of {self.serving} under an authority of {self.authority}, announced {self.propagation} "
                "ahead cannot work: an authority must outlive its certificates, which last a minute at least, "
                "and last six times as long as it is announced ahead"
            )


@final
class CertificateState(msgspec.Struct, frozen=True, kw_only=True):
    """The authorities and the serving certificate at one time."""

    signer: KeyPair
    """The authority that signs now."""
    serving: KeyPair
    successor: KeyPair | None = None
    """The authority that will sign next; callers are told to trust it already."""
    announced_at: datetime | None = None
    """When the successor was announced."""
    retired: tuple[bytes, ...] = ()
    """Authorities that sign no more and must still be trusted."""
    retired_until: datetime | None = None

    @property
    def bundle(self) -> bytes:
        """All authorities to trust, PEM. Sorted, so that promoting one does not change it."""
        successor = () if self.successor is None else (self.successor.certificate,)
        return b"".join(sorted({self.signer.certificate, *successor, *self.retired}))


def new_state(
    name: str, *, hosts: Iterable[str], lifetimes: Lifetimes, now: datetime, retired: Iterable[bytes] = ()
) -> CertificateState:
    """A new authority and a certificate by it; `retired` stay trusted while their certificates may be in use."""
    signer = _new_authority(name, lifetimes, now)
    previous = tuple(retired)
    return CertificateState(
        signer=signer,
        serving=_new_serving(name, signer, hosts, lifetimes, now),
        retired=previous,
        retired_until=now + lifetimes.serving if previous else None,
    )


def announce_successor(state: CertificateState, name: str, *, lifetimes: Lifetimes, now: datetime) -> CertificateState:
    """The state with a successor of the authority; unchanged if there is one already."""
    if state.successor is not None:
        return state
    return msgspec.structs.replace(state, successor=_new_authority(name, lifetimes, now), announced_at=now)


def next_state(
    state: CertificateState, name: str, *, hosts: Iterable[str], lifetimes: Lifetimes, now: datetime, trusted: bool
) -> CertificateState | None:
    """The next state, or None if no step is due. `trusted` says whether every caller has the current bundle."""
    hosts_wanted = frozenset(hosts)
    signer = certificate_info(state.signer.certificate)
    if now >= signer.not_after and state.successor is None:
        return new_state(name, hosts=hosts_wanted, lifetimes=lifetimes, now=now)
    if state.successor is not None:
        spread_elapsed = now >= (state.announced_at or now) + lifetimes.propagation
        # The old authority is about to expire: promote the successor even if a caller does not trust it yet, because
        # that caller would reject the old certificate a moment later.
        if (spread_elapsed and trusted) or now >= signer.not_after - lifetimes.propagation:
            return _promote_successor(state, name, hosts_wanted, lifetimes, now)
    elif now >= _renewal_time(state.signer.certificate):
        return announce_successor(state, name, lifetimes=lifetimes, now=now)
    serving = certificate_info(state.serving.certificate)
    if not hosts_wanted <= serving.hosts:
        # Keep the hosts of another version of the operator that runs at the same time: replacing them would make the
        # two versions reissue the certificate in turns for ever.
        return _reissue_serving(state, name, hosts_wanted | serving.hosts, lifetimes, now)
    outlives = min(now + lifetimes.serving, signer.not_after) > serving.not_after
    if now >= _renewal_time(state.serving.certificate) and outlives:
        return _reissue_serving(state, name, hosts_wanted, lifetimes, now)
    if state.retired and now >= (state.retired_until or now):
        return msgspec.structs.replace(state, retired=(), retired_until=None)
    return None


def next_step_at(state: CertificateState, *, lifetimes: Lifetimes) -> datetime:
    """When to call `next_state` again; in the past while a step waits for callers to trust a bundle."""
    signer = certificate_info(state.signer.certificate)
    times = [signer.not_after]
    if state.successor is None:
        times.append(_renewal_time(state.signer.certificate))
    elif state.announced_at is not None:
        times.append(state.announced_at + lifetimes.propagation)
    serving = certificate_info(state.serving.certificate)
    if serving.not_after < signer.not_after:
        times.append(_renewal_time(state.serving.certificate))
    if state.retired_until is not None:
        times.append(state.retired_until)
    return min(times)


def _promote_successor(
    state: CertificateState, name: str, hosts: frozenset[str], lifetimes: Lifetimes, now: datetime
) -> CertificateState:
    assert state.successor is not None
    last = certificate_info(state.serving.certificate).not_after
    return CertificateState(
        signer=state.successor,
        serving=_new_serving(name, state.successor, hosts, lifetimes, now),
        retired=(*state.retired, state.signer.certificate),
        retired_until=max(last, state.retired_until or last),
    )


def _reissue_serving(
    state: CertificateState, name: str, hosts: frozenset[str], lifetimes: Lifetimes, now: datetime
) -> CertificateState:
    return msgspec.structs.replace(state, serving=_new_serving(name, state.signer, hosts, lifetimes, now))


def _new_authority(name: str, lifetimes: Lifetimes, now: datetime) -> KeyPair:
    # A verifier finds the issuer by its subject name. Two authorities of one name in a bundle make it try the wrong
    # one and fail.
    full = f"{name[:_MAX_NAME_LENGTH]}-ca-{now:%Y%m%d}-{secrets.token_hex(4)}"
    return Authority.create(full, lifetime=lifetimes.authority, now=now).pair


def _new_serving(name: str, signer: KeyPair, hosts: Iterable[str], lifetimes: Lifetimes, now: datetime) -> KeyPair:
    left = certificate_info(signer.certificate).not_after - now
    return Authority(signer).server(
        name[:_MAX_NAME_LENGTH], hosts=sorted(hosts), lifetime=min(lifetimes.serving, left), now=now
    )


def _renewal_time(certificate: bytes) -> datetime:
    """When a certificate is to be replaced."""
    facts = certificate_info(certificate)
    return facts.not_after - (facts.not_after - facts.not_before - BACKDATED) * _LEFT_AT_RENEWAL
