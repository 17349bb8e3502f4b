"""The entry point of the command line: run a command, and turn its result into an exit code.

    0    done
    1    it failed: one sentence on standard error says why and what to do
    2    wrong usage
    130  interrupted with Ctrl-C

An error inside Kubewright is a `KubewrightError`, and its message is all a user sees of it. `root`, the tree of
commands, is imported inside `main`, so that even a missing command-line library is one sentence.
"""

from __future__ import annotations

import sys

from kubewright.cli.terminals import visible
from kubewright.errors import Forbidden, KubewrightError, Unauthorized

__all__ = ("main",)


def main() -> None:
    """Run the command given on the command line and exit."""
    sys.exit(_run(sys.argv[1:]))


def _run(arguments: list[str]) -> int:
    try:
        import click
    except ModuleNotFoundError:
        print("The command line needs `click` and `rich`; run: pip install 'kubewright[cli]'.", file=sys.stderr)
        return 1
    from kubewright.cli.root import root

    try:
        outcome = root.main(arguments, prog_name="kubewright", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return 130
    except KubewrightError as error:
        print(f"{visible(str(error))}{_advice(error)}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader of our output, such as `head`, has closed the pipe; the interpreter must not try to flush it.
        sys.stdout = None
        return 1
    return outcome if isinstance(outcome, int) else 0


def _advice(error: KubewrightError) -> str:
    """What to do about an API error, whose message only says what is wrong."""
    if isinstance(error, Forbidden) and 'User "' in str(error):  # not for a quota, or a terminating namespace
        return "; choose another --context, or ask for a role that allows it"
    if isinstance(error, Unauthorized):
        return "; log in again, or check the credentials in the kubeconfig"
    return ""
