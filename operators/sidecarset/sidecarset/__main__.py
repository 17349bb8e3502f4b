"""Start the operator: every controller and webhook of this package, in one process.

`--help` lists the flags; each option can come from the environment or a file as well.
"""

from kubewright.manager import run_operator

if __name__ == "__main__":
    run_operator("sidecarset", name="sidecarset")
