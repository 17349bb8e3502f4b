"""Get operators of the benchmark ready: `python -m bench.peers go`. `make binaries` calls it, so that no test compiles.

Ends with 1 if one of them cannot be had here, and says why.
"""

from __future__ import annotations

import sys

from bench.peers.commands import NAMES, prepare


def main(names: list[str]) -> int:
    """Prepare those of these names, or all."""
    wanted = names or list(NAMES)
    ready = prepare(wanted, say=lambda line: print(line, file=sys.stderr))
    return 0 if len(ready) == len(wanted) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
