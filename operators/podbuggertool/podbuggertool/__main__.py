"""Start the operator: every controller and webhook of this package, in one process.

Options come from the environment, such as KUBEWRIGHT_LEADER_ELECTION=true; see `kubewright.ManagerOptions`.
"""

from kubewright import Manager, ManagerOptions, load_operator, run


async def main() -> None:
    operator = load_operator("podbuggertool")
    options = ManagerOptions.load(name="podbuggertool")
    await Manager(None, *operator.controllers, *operator.webhooks, options=options).run()


if __name__ == "__main__":
    run(main())
