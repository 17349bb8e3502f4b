"""The options of a manager, and where they come from.

In order of weight: a flag of the command line (`manager.flags`) or an argument in the program, the environment, the
file, the program's own default, the default here. The file is YAML; it is named by `file=` or by KUBEWRIGHT_CONFIG.
Times are seconds or text such as 1m30s. An address is `:8081` or `127.0.0.1:8081`, and `0` switches its server off.
`manager.webhooks` says what the options of webhooks mean. A name that does not exist is refused, with the one that was
probably meant. Metrics are served over TLS with the certificate in a folder (`tls.crt` and `tls.key`, read again when
they change), or with `self` one that is made for this process. `watch_namespaces` outweighs what the program says about
the namespaces that it watches; without it that counts.

| argument | environment | file | default | what |
| --- | --- | --- | --- | --- |
| name | KUBEWRIGHT_NAME | name | kubewright | who reports and owns fields; also the lease, if not named |
| namespace | KUBEWRIGHT_NAMESPACE | namespace | | of the lease; also what a namespaced operator watches |
| watch_namespaces | KUBEWRIGHT_WATCH_NAMESPACES | watchNamespaces | | what is watched, as `a,b`; also WATCH_NAMESPACE |
| leader_election | KUBEWRIGHT_LEADER_ELECTION | leaderElection | false | of several replicas only the leader works |
| lease_name | KUBEWRIGHT_LEASE_NAME | leaseName | | of the lease, the same for all replicas |
| lease_duration | KUBEWRIGHT_LEASE_DURATION | leaseDuration | 15 | how long a lease is valid without renewal |
| renew_deadline | KUBEWRIGHT_RENEW_DEADLINE | renewDeadline | 10 | how long the leader tries to renew before it stops |
| retry_period | KUBEWRIGHT_RETRY_PERIOD | retryPeriod | 2 | the time between two renewals |
| release_lease | KUBEWRIGHT_RELEASE_LEASE | releaseLease | true | give the lease back on stop |
| health_address | KUBEWRIGHT_HEALTH_ADDRESS | healthAddress | :8081 | where /healthz and /readyz are served |
| metrics_address | KUBEWRIGHT_METRICS_ADDRESS | metricsAddress | :8080 | where /metrics is served |
| metrics_certificates | KUBEWRIGHT_METRICS_CERTIFICATES | metricsCertificates | | TLS for metrics: a folder, or self |
| metrics_access | KUBEWRIGHT_METRICS_ACCESS | metricsAccess | false | serve metrics only to users with the right |
| debug_address | KUBEWRIGHT_DEBUG_ADDRESS | debugAddress | 0 | where /debug is served, on loopback only |
| webhooks | KUBEWRIGHT_WEBHOOKS | webhooks | true | serve webhooks; ENABLE_WEBHOOKS=false is understood too |
| webhook_host | KUBEWRIGHT_WEBHOOK_HOST | webhookHost | | the address webhooks are served on; all if empty |
| webhook_port | KUBEWRIGHT_WEBHOOK_PORT | webhookPort | 9443 | the port of webhooks; 0 for any free one |
| webhook_certificates | KUBEWRIGHT_WEBHOOK_CERTIFICATES | webhookCertificates | auto | folder, secret, local |
| webhook_registration | KUBEWRIGHT_WEBHOOK_REGISTRATION | webhookRegistration | false | also write the configurations |
| webhook_service | KUBEWRIGHT_WEBHOOK_SERVICE | webhookService | | of webhooks; `<name>-webhook-service` if empty |
| webhook_address | KUBEWRIGHT_WEBHOOK_ADDRESS | webhookAddress | | with local, where the cluster finds this machine |
| grace_period | KUBEWRIGHT_GRACE_PERIOD | gracePeriod | 30 | how long stopping may take |
| sync_timeout | KUBEWRIGHT_SYNC_TIMEOUT | syncTimeout | 0 | how long the first sync of the caches may take; 0 waits |
| block_limit | KUBEWRIGHT_BLOCK_LIMIT | blockLimit | 1 | how long the loop may be blocked unreported; 0 for ever |
| log_format | KUBEWRIGHT_LOG_FORMAT | logFormat | auto | auto, json or text |
| log_level | KUBEWRIGHT_LOG_LEVEL | logLevel | info | debug, info, warning or error |
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Literal, final

import msgspec

from kubewright.api.names import dns1123_label_errors
from kubewright.api.times import Duration
from kubewright.errors import ConfigError, DecodeError
from kubewright.manager.addresses import is_loopback, parse_address
from kubewright.manager.lease_times import LeaseTimes

__all__ = ("FILE_VARIABLE", "ManagerOptions", "convert_option", "option_help")

_PREFIX: Final = "KUBEWRIGHT_"
FILE_VARIABLE: Final = "KUBEWRIGHT_CONFIG"
"""Names the file."""
_YES: Final = frozenset({"1", "true", "yes", "on"})
_NO: Final = frozenset({"0", "false", "no", "off"})


@final
class ManagerOptions(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How a manager behaves; see the table in this module."""

    name: str = "kubewright"
    namespace: str = ""
    watch_namespaces: tuple[str, ...] = ()
    leader_election: bool = False
    lease_name: str = ""
    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0
    release_lease: bool = True
    health_address: str = ":8081"
    metrics_address: str = ":8080"
    metrics_certificates: str = ""
    metrics_access: bool = False
    debug_address: str = "0"
    webhooks: bool = True
    webhook_host: str = ""
    webhook_port: int = 9443
    webhook_certificates: str = "auto"
    webhook_registration: bool = False
    webhook_service: str = ""
    webhook_address: str = ""
    grace_period: float = 30.0
    sync_timeout: float = 0.0
    block_limit: float = 1.0
    log_format: Literal["auto", "json", "text"] = "auto"
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    def __post_init__(self) -> None:
        self.lease_times()
        for name in self.watch_namespaces:
            if problems := dns1123_label_errors(name):
                raise ConfigError(f"the namespace to watch {name!r} cannot be used: {problems[0]}")
        for what in ("health_address", "metrics_address", "debug_address"):
            parse_address(getattr(self, what), what=what.replace("_", " "))
        debug = parse_address(self.debug_address, what="debug address")
        if debug is not None and not is_loopback(debug[0]):
            raise ConfigError(
                f"the debug address {self.debug_address!r} can be reached from outside; it shows the inside of the "
                "process, so use a loopback address such as 127.0.0.1:6060"
            )
        if not self.webhook_certificates:
            raise ConfigError("the webhook certificates are empty; name a folder, secret, local or auto")
        if not 0 <= self.webhook_port <= 65535:
            raise ConfigError(f"the webhook port is {self.webhook_port}; a port is a number up to 65535")
        for what in ("grace_period", "sync_timeout", "block_limit"):
            if getattr(self, what) < 0:
                raise ConfigError(f"the {what.replace('_', ' ')} is {getattr(self, what):g} s; it cannot be below 0")

    def lease_times(self) -> LeaseTimes:
        return LeaseTimes(
            duration=self.lease_duration, renew_deadline=self.renew_deadline, retry_period=self.retry_period
        )

    @classmethod
    def load(
        cls,
        *,
        file: str | os.PathLike[str] | None = None,
        environ: Mapping[str, str] | None = None,
        defaults: Mapping[str, Any] | None = None,
        **arguments: Any,
    ) -> ManagerOptions:
        """From the arguments, the environment, the file and the defaults of the program, each overriding the next."""
        env = os.environ if environ is None else environ
        _refuse_unknown(arguments, _FIELDS, "the argument")
        _refuse_unknown(defaults or {}, _FIELDS, "the default")
        path = Path(file) if file is not None else Path(env[FILE_VARIABLE]) if env.get(FILE_VARIABLE) else None
        values = {name: convert_option(name, value, f"the default {name}") for name, value in (defaults or {}).items()}
        values.update(_from_file(path) if path is not None else {})
        values.update(_from_environment(env))
        values.update({name: convert_option(name, value, f"the argument {name}") for name, value in arguments.items()})
        return cls(**values)


_FIELDS: Final = {field.name: field for field in msgspec.structs.fields(ManagerOptions)}
_FILE_KEYS: Final = {field.encode_name: name for name, field in _FIELDS.items()}
_VARIABLES: Final = {
    # What projects made by kubebuilder are started with; our own name for it comes later and so wins.
    "ENABLE_WEBHOOKS": "webhooks",
    "WATCH_NAMESPACE": "watch_namespaces",
    **{f"{_PREFIX}{name.upper()}": name for name in _FIELDS},
}


def _from_file(path: Path) -> dict[str, Any]:
    from kubewright._base import yaml  # only those who have a file pay for it

    try:
        tree = yaml.load(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}; check the path") from None
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from None
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        raise ConfigError(f"{path} holds no mapping; write one option per line, such as leaderElection: true")
    _refuse_unknown(tree, _FILE_KEYS, f"{path}: the key")
    return {_FILE_KEYS[key]: convert_option(_FILE_KEYS[key], value, f"{path}: {key}") for key, value in tree.items()}


def _from_environment(env: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for variable, name in _VARIABLES.items():
        if variable in env:
            found[name] = convert_option(name, env[variable], variable)
    for variable in env:
        if variable not in _VARIABLES and variable.startswith(_PREFIX) and variable != FILE_VARIABLE:
            # Other parts have variables of their own, so only what looks like a slip is refused.
            _refuse_slip(variable)
    return found


def _refuse_slip(variable: str) -> None:
    from difflib import get_close_matches  # only for those who mistype

    close = get_close_matches(variable, [*_VARIABLES, FILE_VARIABLE], n=1, cutoff=0.93)
    if close:
        raise ConfigError(f"the environment variable {variable} is unknown; did you mean {close[0]}?")


def _refuse_unknown(given: Iterable[str], known: Iterable[str], what: str) -> None:
    names = list(known)
    for name in given:
        if name not in names:
            from difflib import get_close_matches

            close = get_close_matches(str(name), names, n=1)
            hint = f"did you mean {close[0]}?" if close else f"there is {', '.join(names)}"
            raise ConfigError(f"{what} {name} is unknown; {hint}")


def option_help(name: str) -> str:
    """What an option does, in the words of the table above."""
    for line in (__doc__ or "").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and cells[0] == name:
            return cells[4]
    return ""


def convert_option(name: str, value: Any, where: str) -> Any:
    """A value of the option's type, from text, a number or YAML; `where` is named in errors."""
    wanted = _FIELDS[name].type
    if wanted is bool:
        return _yes_or_no(value, where)
    if wanted is float:
        return _seconds(value, where)
    if wanted is int:
        return _number(value, where)
    if wanted == tuple[str, ...]:
        return _words(value, where)
    if not isinstance(value, str) and not (isinstance(value, int) and name.endswith("_address")):
        raise ConfigError(f"{where} is {value!r}; it takes text")
    try:
        return msgspec.convert(str(value), wanted)
    except msgspec.ValidationError:
        choices = ", ".join(getattr(wanted, "__args__", ()))
        raise ConfigError(f"{where} is {value!r}; it takes one of {choices}") from None


def _yes_or_no(value: Any, where: str) -> bool:
    if isinstance(value, bool):
        return value
    word = value.lower() if isinstance(value, str) else ""
    if word in _YES or word in _NO:
        return word in _YES
    raise ConfigError(f"{where} is {value!r}; it takes true or false")


def _words(value: Any, where: str) -> tuple[str, ...]:
    """Several words: a list, or text with commas."""
    found = value.split(",") if isinstance(value, str) else value
    if not isinstance(found, list | tuple) or not all(isinstance(word, str) for word in found):
        raise ConfigError(f"{where} is {value!r}; it takes words with commas between them, such as shop,store")
    return tuple(dict.fromkeys(word.strip() for word in found if word.strip()))


def _number(value: Any, where: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and value.isascii() and value.isdecimal():
        return int(value)
    raise ConfigError(f"{where} is {value!r}; it takes a number")


def _seconds(value: Any, where: str) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    text = str(value)
    try:
        return float(text) if text.replace(".", "", 1).isdecimal() else Duration(text).seconds
    except DecodeError:
        raise ConfigError(f"{where} is {value!r}; it takes seconds, or text such as 15s or 1m30s") from None
