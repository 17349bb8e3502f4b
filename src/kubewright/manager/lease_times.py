"""LeaseTimes: the three times of an election, checked against each other as client-go does. Set by `options`."""

from __future__ import annotations

from typing import Final, final

import msgspec

from kubewright.errors import ConfigError

__all__ = ("JITTER", "LeaseTimes")

JITTER: Final = 1.2
"""client-go's JitterFactor: a candidate waits a retry period, and up to so many more."""


@final
class LeaseTimes(msgspec.Struct, frozen=True, kw_only=True):
    """How long a lease is good for, in seconds."""

    duration: float = 15.0
    """How long candidates wait without having seen a change before they take the lease; rounded up to whole seconds."""
    renew_deadline: float = 10.0
    """How long a leader may be without a renewal before it stops leading."""
    retry_period: float = 2.0
    """How often a leader renews, and about how often a candidate looks."""

    def __post_init__(self) -> None:
        if self.duration < 1 or self.retry_period <= 0:
            raise ConfigError(
                f"a lease of {self.duration:g} s, tried every {self.retry_period:g} s, cannot work: "
                "the lease duration is at least 1 s and the retry period above 0"
            )
        if not self.duration > self.renew_deadline > JITTER * self.retry_period:
            raise ConfigError(
                f"lease duration {self.duration:g} s, renew deadline {self.renew_deadline:g} s and retry period "
                f"{self.retry_period:g} s do not fit: the duration must be above the deadline, and the deadline above "
                f"{JITTER} times the retry period"
            )
