"""The default transport of a configuration: httptools where it can be used, else aiohttp.

`connect` and the manager call this; the HTTP library that is not chosen is not imported.
"""

from __future__ import annotations

from importlib.util import find_spec

from kubewright.client.config.config import Config
from kubewright.client.transport.transport import Transport

__all__ = ("default_transport",)


def default_transport(config: Config) -> Transport:
    """httptools if it is installed (extra `fast`) and no proxy is configured, else aiohttp."""
    if not config.proxy_url and find_spec("httptools") is not None:
        from kubewright.client.transport.httptools_transport import HttptoolsTransport

        return HttptoolsTransport(config)
    from kubewright.client.transport.aiohttp_transport import AiohttpTransport

    return AiohttpTransport(config)
