"""When webhook certificates are replaced, and by what: pure decisions about one state, with the time told.

A state (`Material`) is an authority that signs, the serving certificate it signed, and which authorities callers are to
trust. `step` says what the next state is, if anything is due:

    1 announce   an authority that grows old gets a successor; callers are to trust both, the old one still signs
    2 promote    when every caller trusts the successor, it signs; a new serving certificate goes out
    3 drop       when the last certificate the old authority signed has run out, nobody need trust it any more

So a replica that is a step behind, serving the old certificate or called by a server with the old bundle, is always
understood. A serving certificate alone is replaced without ceremony, because its authority stays. `SecretCertificates`
keeps a state in the cluster and takes the steps.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final, final

import msgspec

from kubewright._base.certificates import BACKDATED, Authority, KeyPair, facts_of
from kubewright.errors import ConfigError

__all__ = ("Lifetimes", "Material", "announced", "due", "fresh", "step")

_LEFT_AT_RENEWAL: Final = 1 / 3
_LONGEST_NAME: Final = 40
_LEAST: Final = timedelta(minutes=1)


@final
class Lifetimes(msgspec.Struct, frozen=True, kw_only=True):
    """For how long certificates are good. Each is replaced when a third of its time is left."""

    authority: timedelta = timedelta(days=365)
    serving: timedelta = timedelta(days=90)
    spread: timedelta = timedelta(minutes=10)
    """Between trusting a new authority and using it: API servers take a moment to notice a changed configuration."""

    def __post_init__(self) -> None:
        if not self.authority >= self.serving >= _LEAST or self.spread * 6 > self.authority:
            raise ConfigError(
                f"certificates of {self.serving} under an authority of {self.authority} that is trusted {self.spread} "
                "ahead cannot work: an authority outlives its certificates, which last a minute at least, "
                "and lasts six times as long as it is trusted ahead"
            )


@final
class Material(msgspec.Struct, frozen=True, kw_only=True):
    """The authorities and the serving certificate at one time."""

    signer: KeyPair
    """The authority that signs now."""
    serving: KeyPair
    successor: KeyPair | None = None
    """The authority that will sign next; it is trusted already."""
    announced_at: datetime | None = None
    """Since when the successor is trusted."""
    retired: tuple[bytes, ...] = ()
    """Authorities that sign no more and are still trusted."""
    retired_until: datetime | None = None

    @property
    def bundle(self) -> bytes:
        """All authorities to trust, PEM. Sorted, so that promoting one does not change it."""
        successor = () if self.successor is None else (self.successor.certificate,)
        return b"".join(sorted({self.signer.certificate, *successor, *self.retired}))


def fresh(
    name: str, *, hosts: Iterable[str], lifetimes: Lifetimes, now: datetime, retired: Iterable[bytes] = ()
) -> Material:
    """A new authority and a certificate by it; `retired` are trusted for as long as theirs could still be in use."""
    signer = _authority(name, lifetimes, now)
    old = tuple(retired)
    return Material(
        signer=signer,
        serving=_serving(name, signer, hosts, lifetimes, now),
        retired=old,
        retired_until=now + lifetimes.serving if old else None,
    )


def announced(material: Material, name: str, *, lifetimes: Lifetimes, now: datetime) -> Material:
    """The same with a successor of the authority, unless there is one already."""
    if material.successor is not None:
        return material
    return msgspec.structs.replace(material, successor=_authority(name, lifetimes, now), announced_at=now)


def step(
    material: Material, name: str, *, hosts: Iterable[str], lifetimes: Lifetimes, now: datetime, trusted: bool
) -> Material | None:
    """The next state, or None if nothing is due. `trusted` says whether every caller has the present bundle."""
    wanted = frozenset(hosts)
    signer = facts_of(material.signer.certificate)
    if now >= signer.not_after and material.successor is None:
        return fresh(name, hosts=wanted, lifetimes=lifetimes, now=now)
    if material.successor is not None:
        seasoned = now >= (material.announced_at or now) + lifetimes.spread
        # An authority about to run out is no use to anybody, whoever trusts it.
        if (seasoned and trusted) or now >= signer.not_after - lifetimes.spread:
            return _promoted(material, name, wanted, lifetimes, now)
    elif now >= _renewal(material.signer.certificate):
        return announced(material, name, lifetimes=lifetimes, now=now)
    serving = facts_of(material.serving.certificate)
    if not wanted <= serving.hosts:
        # Those of another version of the operator that runs beside this one stay: two must not undo each other's work.
        return _reissued(material, name, wanted | serving.hosts, lifetimes, now)
    outlives = min(now + lifetimes.serving, signer.not_after) > serving.not_after
    if now >= _renewal(material.serving.certificate) and outlives:
        return _reissued(material, name, wanted, lifetimes, now)
    if material.retired and now >= (material.retired_until or now):
        return msgspec.structs.replace(material, retired=(), retired_until=None)
    return None


def due(material: Material, *, lifetimes: Lifetimes) -> datetime:
    """When `step` is to be asked next; it may be past if something is waited for."""
    signer = facts_of(material.signer.certificate)
    times = [signer.not_after]
    if material.successor is None:
        times.append(_renewal(material.signer.certificate))
    elif material.announced_at is not None:
        times.append(material.announced_at + lifetimes.spread)
    serving = facts_of(material.serving.certificate)
    if serving.not_after < signer.not_after:
        times.append(_renewal(material.serving.certificate))
    if material.retired_until is not None:
        times.append(material.retired_until)
    return min(times)


def _promoted(material: Material, name: str, hosts: frozenset[str], lifetimes: Lifetimes, now: datetime) -> Material:
    assert material.successor is not None
    last = facts_of(material.serving.certificate).not_after
    return Material(
        signer=material.successor,
        serving=_serving(name, material.successor, hosts, lifetimes, now),
        retired=(*material.retired, material.signer.certificate),
        retired_until=max(last, material.retired_until or last),
    )


def _reissued(material: Material, name: str, hosts: frozenset[str], lifetimes: Lifetimes, now: datetime) -> Material:
    return msgspec.structs.replace(material, serving=_serving(name, material.signer, hosts, lifetimes, now))


def _authority(name: str, lifetimes: Lifetimes, now: datetime) -> KeyPair:
    # Two authorities in one bundle need names of their own, or a verifier takes the wrong one and gives up.
    full = f"{name[:_LONGEST_NAME]}-ca-{now:%Y%m%d}-{secrets.token_hex(4)}"
    return Authority.create(full, lifetime=lifetimes.authority, now=now).pair


def _serving(name: str, signer: KeyPair, hosts: Iterable[str], lifetimes: Lifetimes, now: datetime) -> KeyPair:
    left = facts_of(signer.certificate).not_after - now
    return Authority(signer).server(
        name[:_LONGEST_NAME], hosts=sorted(hosts), lifetime=min(lifetimes.serving, left), now=now
    )


def _renewal(certificate: bytes) -> datetime:
    """When a certificate is to be replaced."""
    facts = facts_of(certificate)
    return facts.not_after - (facts.not_after - facts.not_before - BACKDATED) * _LEFT_AT_RENEWAL
