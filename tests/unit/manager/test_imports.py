"""What a running operator does not use, it does not load: memory is paid for by every replica of every operator.

Covers: kubewright
"""

from __future__ import annotations

import subprocess
import sys

import pytest

OPERATOR = """
import asyncio, sys
from kubewright import Config, Context, Manager, ManagerOptions, controller{names}
from kubewright.k8s.core.v1 import ConfigMap

@controller(ConfigMap)
async def reconcile(config: ConfigMap, ctx: Context) -> None: ...
{more}
async def main() -> None:
    off = {{"health_address": "0", "metrics_address": "0"}}
    options = ManagerOptions(**{{**off, "webhook_certificates": "/nowhere", "webhook_port": 0, {options}}})
    manager = Manager(reconcile, {runnable} config=Config(server="https://127.0.0.1:9"), options=options)
    manager.stop()
    async with manager:
        pass

asyncio.run(main())
print("\\n".join(sys.modules))
"""


def loaded(*, options: str = "", names: str = "", more: str = "", runnable: str = "") -> set[str]:
    script = OPERATOR.format(options=options, names=names, more=more, runnable=runnable)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.fixture(scope="module")
def plain() -> set[str]:
    return loaded()


@pytest.mark.parametrize(
    "module",
    [
        "aiohttp",
        "cryptography",
        "encodings.idna",
        "http",
        "kubewright._base.http.server",
        "kubewright.client.config.exec_plugin",
        "kubewright.manager.endpoints.metrics_authorizer",
        "kubewright.manager.leader_election.elector",
        "kubewright.webhooks",
        "shutil",
        "tempfile",
        "yaml",
    ],
)
def test_what_an_operator_has_no_use_for_is_not_imported(plain: set[str], module: str) -> None:
    assert "kubewright.controllers.reconcile_handler" in plain
    assert module not in plain


@pytest.mark.parametrize(
    ("options", "module"),
    [
        ('"health_address": "127.0.0.1:0"', "kubewright._base.http.server"),
        ('"leader_election": True', "kubewright.manager.leader_election.elector"),
        ('"metrics_address": "127.0.0.1:0", "metrics_access": True', "kubewright.manager.endpoints.metrics_authorizer"),
    ],
)
def test_what_an_option_asks_for_is(options: str, module: str) -> None:
    assert module in loaded(options=options)


def test_webhooks_are_known_without_being_imported_for_others() -> None:
    more = "@validate(ConfigMap)\ndef check(config: ConfigMap) -> None: ...\n"

    modules = loaded(names=", validate", more=more, runnable="check,")

    assert "kubewright.manager.webhooks" in modules
