"""Whether a webhook can be called: as the API server would call its URL, or through the API server for a Service.

A call here is a handshake and one GET, which no webhook acts on: any answer proves that somebody serves it. What the
webhook answers to a review is none of this module's business. `kubewright doctor` calls all webhooks of an operator,
`local_processes` those of processes on this machine.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import ssl
from collections.abc import Iterator
from typing import Any, Final, final
from urllib.parse import urlsplit

import msgspec

from kubewright.api.dynamic import DynamicObject
from kubewright.client.client import Client
from kubewright.errors import ApiError, KubewrightError, NotFound, ServerError
from kubewright.webhooks.registration.targets import CRD

__all__ = ("CallProblem", "WebhookCall", "calls_of")

_TIMEOUT: Final = 5.0


@final
class CallProblem(msgspec.Struct, frozen=True):
    """Why a webhook cannot be called."""

    text: str
    certain: bool
    """Whether the API server cannot call it either; False where the way from here may be another."""


@final
class WebhookCall(msgspec.Struct, frozen=True, kw_only=True):
    """One webhook as an object names it."""

    name: str
    config: dict[str, Any]
    """Its `clientConfig`."""
    ignored: bool = False
    """Whether requests go on without it: `failurePolicy: Ignore`."""

    @property
    def target(self) -> str:
        """The URL or the Service, for people."""
        service = self.config.get("service")
        if service is None:
            return str(self.config.get("url", ""))
        return f"the Service {service.get('namespace')}/{service.get('name')}"

    async def problem(self, client: Client | None = None, *, timeout: float = _TIMEOUT) -> CallProblem | None:
        """Call it. A Service is called through the API server, with the client; without one nothing is known of it."""
        service = self.config.get("service")
        if service is None:
            return await _url_problem(str(self.config.get("url", "")), self.config.get("caBundle") or "", timeout)
        return None if client is None else await _service_problem(client, service, timeout)


def calls_of(obj: DynamicObject) -> Iterator[WebhookCall]:
    """The webhooks of a configuration, or the conversion webhook of a CRD."""
    if type(obj) is CRD:
        conversion = obj.get("spec.conversion") or {}
        config = (conversion.get("webhook") or {}).get("clientConfig")
        if conversion.get("strategy") == "Webhook" and config:
            yield WebhookCall(name=f"the conversion of {obj.metadata.name}", config=dict(config))
        return
    for webhook in obj.get("webhooks") or ():
        config = webhook.get("clientConfig")
        if config:
            ignored = webhook.get("failurePolicy") == "Ignore"
            yield WebhookCall(name=str(webhook.get("name", "")), config=dict(config), ignored=ignored)


async def _url_problem(url: str, bundle: str, timeout: float) -> CallProblem | None:
    parts = urlsplit(url)
    host = parts.hostname or ""
    request = f"GET {parts.path or '/'} HTTP/1.1\r\nHost: {parts.netloc}\r\nConnection: close\r\n\r\n"
    try:
        context = ssl.create_default_context(cadata=base64.b64decode(bundle).decode() if bundle else None)
        async with asyncio.timeout(timeout):
            reader, writer = await asyncio.open_connection(host, parts.port or 443, ssl=context)
            try:
                writer.write(request.encode())
                answer = await reader.read(1)
            finally:
                writer.transport.abort()
    except ssl.SSLCertVerificationError as error:
        return CallProblem(f"who answers is not who its caBundle is for: {error.verify_message}", certain=True)
    except (binascii.Error, UnicodeDecodeError):
        return CallProblem("its caBundle is no certificate", certain=True)
    except TimeoutError:
        return CallProblem(f"no answer within {timeout:g} s", certain=False)
    except ConnectionRefusedError:
        return CallProblem("nobody listens there", certain=True)
    except OSError as error:
        return CallProblem(f"it cannot be called from here: {error.strerror or error}", certain=False)
    return None if answer else CallProblem("the connection was closed without an answer", certain=False)


async def _service_problem(client: Client, service: dict[str, Any], timeout: float) -> CallProblem | None:
    namespace, name, port = service.get("namespace"), service.get("name"), service.get("port") or 443
    path = f"/api/v1/namespaces/{namespace}/services/https:{name}:{port}/proxy{service.get('path') or '/'}"
    try:
        await client.request("GET", path, timeout=timeout)
    except NotFound as error:
        return CallProblem(error.message, certain=True) if error.details.get("kind") == "services" else None
    except ServerError as error:
        # The API server's own words are a Status; a webhook that answers with a 5xx is there.
        return CallProblem(error.message, certain=True) if error.reason else None
    except ApiError as error:
        return None if not error.reason else CallProblem(error.message, certain=False)
    except KubewrightError as error:
        return CallProblem(str(error), certain=False)
    return None
