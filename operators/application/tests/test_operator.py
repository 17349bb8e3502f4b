"""The operator as a whole."""

from kubewright.testing import RunningOperator


async def test_the_operator_starts_with_the_rights_of_its_roles(operator: RunningOperator) -> None:
    assert operator.manager.state == "running"
    assert operator.forbidden == []
