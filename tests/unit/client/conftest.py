"""Fixtures the tests of the client share."""

from __future__ import annotations

import pytest
from tests.unit.client.transport.rude_server import Wire

from kubewright.client.transport.aiohttp_transport import AiohttpTransport
from kubewright.client.transport.httptools_transport import HttptoolsTransport


@pytest.fixture(params=[AiohttpTransport, HttptoolsTransport], ids=["aiohttp", "httptools"])
def wire(request: pytest.FixtureRequest) -> Wire:
    return Wire(request.param)
