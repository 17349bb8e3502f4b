"""The flags of an operator's process: those of a manager in Go, and one for each option of a manager.

    python -m podset --leader-elect --metrics-bind-address=:8443 --log-level=debug

`entry_point` reads them with argparse, because a production image has no command-line library; `kubewright run` makes
the same ones. Names are those that kubebuilder's projects have, where they have the flag. A flag only says what the
manager's option of that name is to be, so there is one path and one order: see `manager.options`.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, final

import msgspec

from kubewright.errors import ConfigError
from kubewright.manager.options import FILE_VARIABLE, ManagerOptions, convert_option, option_help

if TYPE_CHECKING:
    from kubewright.client.config.config import Config

__all__ = ("FLAGS", "PRECEDENCE", "Flag", "Flags", "flag_value", "parse_flags")

PRECEDENCE: Final = (
    "An option is taken from its flag, else from its environment variable, else from the file that --config or "
    f"{FILE_VARIABLE} names, else it is as the operator's code says, or has the default. The cluster is that of "
    "--kubeconfig, else of KUBECONFIG, else of the pod, else of ~/.kube/config."
)
# What kubebuilder calls what has another name here.
_GO_NAMES: Final = {
    "leader_election": "leader-elect",
    "health_address": "health-probe-bind-address",
    "metrics_address": "metrics-bind-address",
}
_METAVARS: Final[dict[Any, str]] = {bool: "BOOL", int: "N", float: "SECONDS", str: "TEXT", tuple[str, ...]: "A,B"}


@final
class Flag(msgspec.Struct, frozen=True, kw_only=True):
    """One flag that sets an option of the manager."""

    name: str
    """Of the option."""
    spelling: str
    metavar: str
    default: Any

    @property
    def boolean(self) -> bool:
        """Whether it may stand alone: `--leader-elect` means `--leader-elect=true`."""
        return self.metavar == "BOOL"

    def help(self, defaults: Mapping[str, Any]) -> str:
        """What it does, and where else the option can come from; `defaults` are those of the program."""
        default = defaults.get(self.name, self.default)
        text = ",".join(default) if isinstance(default, tuple) else str(default)
        shown = text.lower() if isinstance(default, bool) else text
        return f"{option_help(self.name)} [KUBEWRIGHT_{self.name.upper()}{f'; default {shown}' if shown else ''}]"


@final
class Flags(msgspec.Struct, frozen=True, kw_only=True):
    """What a command line says."""

    kubeconfig: str | None = None
    context: str | None = None
    config: str | None = None
    """The file with options."""
    options: dict[str, Any] = {}
    """The options that were given."""

    def load_config(self) -> Config:
        """How to reach the cluster."""
        from kubewright.client.config.config import Config  # not for --help

        return Config.load(kubeconfig=self.kubeconfig, context=self.context)

    def load_options(self, **defaults: Any) -> ManagerOptions:
        """The options of the manager: flags, the environment, the file, then these defaults."""
        return ManagerOptions.load(file=self.config, defaults=defaults, **self.options)


def _flags() -> tuple[Flag, ...]:
    return tuple(
        Flag(
            name=field.name,
            spelling=f"--{_GO_NAMES.get(field.name, field.name.replace('_', '-'))}",
            metavar=_METAVARS.get(field.type) or "|".join(field.type.__args__),
            default=field.default,
        )
        for field in msgspec.structs.fields(ManagerOptions)
    )


FLAGS: Final = _flags()


def flag_value(flag: Flag, text: str) -> Any:
    """The value of a flag; a ConfigError if it cannot have this one."""
    return convert_option(flag.name, text, flag.spelling)


def parse_flags(arguments: Sequence[str], *, program: str, **defaults: Any) -> Flags:
    """Read a command line; `defaults` are those of the program, for the help.

    Where it is wrong, or asks for help, the process exits as argparse does: 2, or 0.
    """
    parser = argparse.ArgumentParser(
        prog=program,
        usage="%(prog)s [flags]",
        allow_abbrev=False,
        description="Run the operator until SIGINT or SIGTERM.",
        epilog=PRECEDENCE,
    )
    parser.add_argument("--kubeconfig", metavar="FILE", help="the kubeconfig; else as kubectl finds it [KUBECONFIG]")
    parser.add_argument("--context", metavar="NAME", help="the context of the kubeconfig")
    parser.add_argument("--config", metavar="FILE", help=f"a YAML file with options [{FILE_VARIABLE}]")
    for flag in FLAGS:
        alone: dict[str, Any] = {"nargs": "?", "const": "true"} if flag.boolean else {}
        parser.add_argument(
            flag.spelling,
            dest=flag.name,
            metavar=flag.metavar,
            default=argparse.SUPPRESS,
            type=partial(_argument, flag),
            help=flag.help(defaults).replace("%", "%%"),
            **alone,
        )
    found = vars(parser.parse_args(arguments))
    return Flags(
        kubeconfig=found.pop("kubeconfig"), context=found.pop("context"), config=found.pop("config"), options=found
    )


def _argument(flag: Flag, text: str) -> Any:
    try:
        return flag_value(flag, text)
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
