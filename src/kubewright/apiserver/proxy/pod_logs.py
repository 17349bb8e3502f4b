"""`pods/log`: the log of a container, from the kubelet of its node.

It validates PodLogOptions and then streams the kubelet's response, with `follow` until the container or the client ends
it. Upstream: k8s.io/kubernetes/pkg/registry/core/pod/rest/log.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, final
from urllib.parse import urlencode

from msgspec.structs import replace

from kubewright.api.field_errors import FieldError
from kubewright.api.kinds import GroupResource, GroupVersionKind
from kubewright.apiserver.kinds.calls import Call
from kubewright.apiserver.outbound.http_client import HttpClient, HttpClientError, IncomingResponse
from kubewright.apiserver.outbound.kubelets import Kubelets
from kubewright.apiserver.outbound.webhook_client import server_response_error
from kubewright.apiserver.proxy.reverse_proxy import ProxiedStream
from kubewright.apiserver.storage.store import Store
from kubewright.apiserver.wire.decoding import decode_json
from kubewright.apiserver.wire.options import parse_bool
from kubewright.apiserver.wire.responses import Reply, Response
from kubewright.apiserver.wire.status_errors import (
    StatusError,
    bad_request,
    internal_error,
    invalid,
    method_not_allowed,
    not_found,
    status_error,
)

__all__ = ("PodLogs", "select_container")

_OPTIONS: Final = GroupVersionKind("", "v1", "PodLogOptions")
_LOG: Final = GroupResource("", "pods/log")
_NUMBERS: Final = ("sinceSeconds", "tailLines", "limitBytes")
_FLAGS: Final = ("follow", "previous", "timestamps")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:[Zz]|[+-]\d\d:\d\d)")
_MAX_ERROR_BODY: Final = 50_000
_NEGATIVE: Final = "must be greater than or equal to 0"
_POSITIVE: Final = "must be greater than 0"
_REASONS: Final = {401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 405: "MethodNotAllowed", 409: "Conflict",
                   429: "TooManyRequests", 503: "ServiceUnavailable", 504: "Timeout"}  # fmt: skip


@final
class PodLogs:
    """Handles `pods/log`."""

    def __init__(self, store: Store, outbound: HttpClient, kubelets: Kubelets) -> None:
        self._store = store
        self._outbound = outbound
        self._kubelets = kubelets

    async def handle(self, call: Call) -> Reply:
        """Stream the log."""
        if call.info.verb != "get":
            raise method_not_allowed()
        query = call.request.query
        options = _options(query)
        errors = _errors(options)
        if errors:
            raise invalid(_OPTIONS, call.info.name, errors)
        entry = self._store.table("/pods").get(call.key)
        if entry is None:
            raise not_found(call.resource.group_resource, call.info.name)
        pod = decode_json(entry.value)
        container = select_container(pod, query.get("container", ""))
        node = (pod.get("spec") or {}).get("nodeName")
        if not node:
            return Response(204, b"", "")
        return await self._fetch(call, str(node), container, options)

    async def _fetch(self, call: Call, node: str, container: str, options: Mapping[str, Any]) -> Reply:
        kubelet = self._kubelets.destination(node, resource=call.resource.group_resource)
        if parse_bool(call.request.query.get("insecureSkipTLSVerifyBackend", "false")):
            kubelet = replace(kubelet, verify=False)
        path = f"/containerLogs/{call.namespace}/{call.info.name}/{container}"
        wanted = {name: "true" if value is True else value for name, value in options.items() if value is not False}
        target = f"{path}?{urlencode(sorted(wanted.items()))}" if wanted else path
        try:
            incoming = await self._outbound.request(kubelet, "GET", target)
        except HttpClientError as error:
            raise status_error(500, "", f'Get "{kubelet.url}{target}": {error}') from None
        if not 200 <= incoming.code <= 206:
            raise await _kubelet_error(incoming, call.info.name)
        return ProxiedStream(incoming, content_type="text/plain")


def select_container(pod: Mapping[str, Any], container: str) -> str:
    """The container of a request: the one it names, or the only one of the pod."""
    spec, name = pod.get("spec") or {}, pod["metadata"]["name"]
    containers = [str(item["name"]) for item in spec.get("containers") or ()]
    every = [
        str(item["name"])
        for kind in ("initContainers", "containers", "ephemeralContainers")
        for item in spec.get(kind) or ()
    ]
    if container:
        if container not in every:
            raise bad_request(f"container {container} is not valid for pod {name}")
        return container
    if len(containers) == 1:
        return containers[0]
    if not containers:
        raise bad_request(f"a container name must be specified for pod {name}")
    raise bad_request(f"a container name must be specified for pod {name}, choose one of: [{' '.join(every)}]")


def _options(query: Mapping[str, str]) -> dict[str, Any]:
    """The PodLogOptions for the kubelet: booleans, integers and texts."""
    options: dict[str, Any] = {}
    for name in _FLAGS:
        # Any value but false and 0 is true, as of every boolean parameter.
        if name in query:
            options[name] = query[name].lower() not in ("false", "0")
    for name in _NUMBERS:
        text = query.get(name)
        if text is not None:
            try:
                options[name] = int(text)
            except ValueError:
                raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None
    for name in ("sinceTime", "stream"):
        if query.get(name):
            options[name] = query[name]
    since = query.get("sinceTime")
    if since and _TIME.fullmatch(since) is None:
        why = f'parsing time "{since}" as "2006-01-02T15:04:05Z07:00": cannot parse "{since}" as "2006"'
        raise bad_request(why)
    return options


def _errors(options: Mapping[str, Any]) -> list[FieldError]:
    found = []
    if options.get("tailLines", 0) < 0:
        found.append(FieldError("tailLines", "Invalid", _NEGATIVE, options["tailLines"]))
    if options.get("limitBytes", 1) < 1:
        found.append(FieldError("limitBytes", "Invalid", _POSITIVE, options["limitBytes"]))
    if "sinceSeconds" in options and "sinceTime" in options:
        detail = "at most one of `sinceTime` or `sinceSeconds` may be specified"
        found.append(FieldError("[]", "Forbidden", detail))
    elif options.get("sinceSeconds", 1) < 1:
        found.append(FieldError("sinceSeconds", "Invalid", _POSITIVE, options["sinceSeconds"]))
    if "stream" in options:
        found.append(FieldError("stream", "Forbidden", "may not be specified"))
    return found


async def _kubelet_error(incoming: IncomingResponse, name: str) -> StatusError:
    body = await incoming.body(_MAX_ERROR_BODY)
    text = body.decode(errors="replace")
    if incoming.code == 500:
        return internal_error(text)
    if incoming.code == 400:
        return bad_request(text)
    message = f"{server_response_error(incoming.code, 'text/plain', body)} ( {_LOG} {name})"
    details = {"name": name, "kind": str(_LOG)}
    return status_error(incoming.code, _REASONS.get(incoming.code, "InternalError"), message, details=details)
