"""Which ports an operator opens follows from how it is started, as docs/howto/metrics.md says.

Covers: kubewright.cli.commands.run, kubewright.manager.options
"""

from __future__ import annotations

import pytest

from kubewright import ManagerOptions, controller
from kubewright.cli.commands.run import local_options
from kubewright.k8s.core.v1 import ConfigMap
from kubewright.manager.flags import Flags
from kubewright.manager.operator import operator_of


@controller(ConfigMap)
async def reconcile(config: ConfigMap, ctx: object) -> None: ...


@pytest.fixture(autouse=True)
def _nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KUBEWRIGHT_METRICS_ADDRESS", "KUBEWRIGHT_CONFIG"):
        monkeypatch.delenv(name, raising=False)


def test_a_packaged_operator_and_a_program_serve_metrics_if_nothing_is_said() -> None:
    assert Flags(options={}).load_options().metrics_address == ":8080"
    assert ManagerOptions.load().metrics_address == ":8080"


def test_run_and_dev_open_a_port_for_metrics_only_where_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    operator = operator_of(reconcile)
    flag = Flags(options={"metrics_address": "127.0.0.1:1"})

    assert local_options(operator, Flags(options={})).metrics_address == "0"
    assert local_options(operator, flag).metrics_address == "127.0.0.1:1"
    monkeypatch.setenv("KUBEWRIGHT_METRICS_ADDRESS", "127.0.0.1:2")
    assert local_options(operator, Flags(options={})).metrics_address == "127.0.0.1:2"
    assert local_options(operator, flag).metrics_address == "127.0.0.1:1"
