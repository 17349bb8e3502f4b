"""Start the operator: every controller and webhook of this package, in one process.

Options come from the environment, such as KUBEWRIGHT_LEADER_ELECTION=true; see `kubewright.ManagerOptions`.
"""

from kubewright import ManagerOptions, run
from kubewright.manager import load_operator

if __name__ == "__main__":
    operator = load_operator("podbuggertool")
    options = ManagerOptions.load(name="podbuggertool")
    run(*operator.controllers, *operator.webhooks, options=options)
