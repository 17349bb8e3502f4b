"""Raw bytes to an API server: what no HTTP client would send."""

from __future__ import annotations

import asyncio
import re
import ssl

from kubewright import Config
from kubewright.cluster.planes.embedded import EmbeddedCluster
from kubewright.cluster.planes.real import RealCluster
from kubewright.testing import time_limit

__all__ = ("codes", "talk")

_STATUS = re.compile(rb"HTTP/1\.[01] (\d\d\d)")


async def talk(plane: EmbeddedCluster | RealCluster, data: bytes, *, patience: float = 10.0) -> bytes:
    """Everything the server says to these bytes from somebody without log-in, until it ends the connection."""
    host, _, port = Config.load(kubeconfig=plane.kubeconfig).server.removeprefix("https://").partition(":")
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    reader, writer = await asyncio.open_connection(host, int(port), ssl=context)
    said = b""
    try:
        writer.write(data)
        async with time_limit(patience):
            while part := await reader.read(65536):
                said += part
    except ConnectionError:
        pass
    finally:
        writer.transport.abort()
    return said


def codes(said: bytes) -> list[int]:
    """The status codes of the responses."""
    return [int(code) for code in _STATUS.findall(said)]
