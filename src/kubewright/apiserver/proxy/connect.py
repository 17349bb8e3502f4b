"""The connecters: `services/proxy`, `pods/proxy`, `nodes/proxy`, and exec, attach and port-forward of pods.

A name may have a scheme and a port: `https:web:8443`. The proxies send the request on without its credentials, to
addresses outside this machine alone. Exec, attach and port-forward go to the kubelet; once it switches protocols (SPDY
or WebSocket), the two connections are joined (`upgrade`), and the stream is between client and kubelet. A proxied
service may switch protocols too. Upstream: k8s.io/kubernetes/pkg/registry/core/pod/rest/subresources.go and
k8s.io/apimachinery/pkg/util/proxy/upgradeaware.go.
"""

from __future__ import annotations

import posixpath
from typing import Any, Final, final
from urllib.parse import parse_qsl, quote, urlencode

from msgspec.structs import replace

from kubewright.apiserver.kinds.access import Access
from kubewright.apiserver.kinds.admission import Attributes, Chain
from kubewright.apiserver.kinds.calls import Call
from kubewright.apiserver.outbound.addresses import is_global_unicast
from kubewright.apiserver.outbound.http_client import Destination, HttpClient, HttpClientError
from kubewright.apiserver.outbound.kubelets import Kubelets
from kubewright.apiserver.proxy.pod_logs import select_container
from kubewright.apiserver.proxy.reverse_proxy import forwarded_for, proxy_response, request_headers, upgrade_headers
from kubewright.apiserver.proxy.service_location import ServiceLocation
from kubewright.apiserver.proxy.upgrade import tunnel
from kubewright.apiserver.storage.store import Store
from kubewright.apiserver.wire.decoding import decode_json
from kubewright.apiserver.wire.options import parse_bool
from kubewright.apiserver.wire.requests import Request, encode_path
from kubewright.apiserver.wire.responses import Reply, Response
from kubewright.apiserver.wire.status_errors import (
    bad_request,
    forbidden,
    method_not_allowed,
    not_found,
    status_error,
    unavailable,
)

__all__ = ("ProxyHandlers",)

_HIDDEN: Final = frozenset({"host", "x-forwarded-for", "x-forwarded-uri"})
_SCHEMES: Final = ("", "http", "https")
_STREAMS: Final = {"stdin": "input", "stdout": "output", "stderr": "error", "tty": "tty"}
_KUBELET_PATHS: Final = {"exec": "exec", "attach": "attach", "portforward": "portForward"}


@final
class ProxyHandlers:
    """Proxies requests to services, pods and nodes."""

    def __init__(
        self,
        store: Store,
        outbound: HttpClient,
        kubelets: Kubelets,
        *,
        admission: Chain,
        access: Access,
    ) -> None:
        self._store = store
        self._access = access
        self._outbound = outbound
        self._kubelets = kubelets
        self._services = ServiceLocation(store)
        self._admission = admission

    async def service(self, call: Call) -> Reply:
        """`services/proxy`."""
        scheme, name, port = _parts(call, "service")
        host, number = self._services.resolve(call.namespace, name, port, shown=call.info.name)
        return await self._proxy(call, _destination(scheme, host, number))

    async def pod(self, call: Call) -> Reply:
        """`pods/proxy`."""
        scheme, name, port = _parts(call, "pod")
        pod = self._pod(call, name)
        address = str((pod.get("status") or {}).get("podIP") or "")
        if not is_global_unicast(address):
            raise bad_request("address not allowed")
        ports = [item for one in pod["spec"].get("containers") or () for item in one.get("ports") or ()]
        number = _number(port) if port.isdecimal() else next(
            (int(item["containerPort"]) for item in ports if not port or item.get("name") == port),
            443 if scheme == "https" else 80,
        )  # fmt: skip
        return await self._proxy(call, _destination(scheme, address, number))

    async def node(self, call: Call) -> Reply:
        """`nodes/proxy`: the kubelet itself, or another port of the node."""
        scheme, name, port = _parts(call, "node")
        resource = call.resource.group_resource
        return await self._proxy(call, await self._kubelets.proxy_destination(name, scheme, port, resource=resource))

    async def stream(self, call: Call) -> Reply:
        """`pods/exec`, `pods/attach` and `pods/portforward`: streams of the kubelet."""
        name, sub = call.info.name, call.info.subresource
        if call.info.verb not in call.resource.subresources[sub].verbs:
            raise method_not_allowed()
        self._authorize(call)
        pod = self._pod(call, name)
        container = ""
        if sub != "portforward":
            container = "/" + select_container(pod, call.request.query.get("container", ""))
        node = (pod.get("spec") or {}).get("nodeName")
        if not node:
            raise bad_request(f"pod {name} does not have a host assigned")
        await self._admit(call)
        if "upgrade" not in call.request.header("connection").lower():
            raise bad_request("Upgrade request required")
        kubelet = self._kubelets.destination(str(node), resource=call.resource.group_resource)
        path = f"/{_KUBELET_PATHS[sub]}/{call.namespace}/{quote(name)}{container}"
        wanted = urlencode(_kubelet_query(call.request))
        return await self._proxy(call, kubelet, target=f"{path}?{wanted}" if wanted else path)

    def _authorize(self, call: Call) -> None:
        """Require the verb create for a WebSocket too, whose request is a GET.

        Without this, a role with get on pods/exec could run commands
        (k8s.io/kubernetes/pkg/registry/core/pod/rest/authorize.go).
        """
        if call.info.verb != "create":
            decision = self._access.decide(call.user, replace(call.info, verb="create"))
            if not decision.allowed:
                raise forbidden(call.resource.group_resource, call.info.name, decision.reason)

    def _pod(self, call: Call, name: str) -> dict[str, Any]:
        entry = self._store.table("/pods").get(f"{call.namespace}/{name}")
        if entry is None:
            raise not_found(call.resource.group_resource, name)
        tree: dict[str, Any] = decode_json(entry.value)
        return tree

    async def _admit(self, call: Call) -> None:
        kind = call.resource.subresources[call.info.subresource].kind.kind
        options: dict[str, Any] = {"kind": kind, "apiVersion": "v1"}
        query = call.request.query
        options.update({name: parse_bool(query[name]) for name in _STREAMS if name in query})
        if query.get("container"):
            options["container"] = query["container"]
        command = _values(call.request, "command")
        if command:
            options["command"] = command
        attributes = Attributes(
            operation="CONNECT",
            resource=call.resource,
            namespace=call.namespace,
            name=call.info.name,
            object=options,
            old=None,
            user=call.user,
            subresource=call.info.subresource,
            warnings=call.warnings,
            annotations=call.request.annotations,
        )
        await self._admission.mutate(attributes)
        await self._admission.validate(attributes)

    async def _proxy(self, call: Call, destination: Destination, *, target: str = "") -> Reply:
        request = call.request
        upgrade = upgrade_headers(request)
        if not target and not upgrade and request.method in ("GET", "HEAD") and _is_root(call):
            path, mark, query = request.uri.partition("?")
            return Response(301, b"", "", {"Location": f"{path}/{mark}{query}"})
        headers = [*request_headers(request.headers, without=_HIDDEN), *upgrade]
        headers.append(("X-Forwarded-For", forwarded_for(request)))
        headers.append(("X-Forwarded-Uri", encode_path(request.path)))
        try:
            incoming = await self._outbound.request(
                destination, request.method, target or _target(call), headers=headers, body=request.body
            )
        except HttpClientError as error:
            if error.reached:
                raise status_error(500, "", str(error)) from None
            if upgrade:
                raise status_error(500, "", f"error dialing backend: {error}") from None
            raise unavailable(f"error trying to reach service: {error}") from None
        if incoming.code == 101:
            return tunnel(incoming)
        if upgrade and incoming.code < 400:
            incoming.close()
            raise status_error(500, "", f"invalid upgrade response: status code {incoming.code}")
        return await proxy_response(incoming)


def _is_root(call: Call) -> bool:
    """Whether a path ends at the subresource: a page there would resolve its links one level too high."""
    return not call.info.rest and not call.request.path.endswith("/")


def _target(call: Call) -> str:
    """The path behind the subresource and the query. As kube-apiserver's it has no dots and no doubled slashes."""
    path = posixpath.normpath(f"/{call.info.rest.lstrip('/')}")
    if call.request.path.endswith("/") and path != "/":
        path += "/"
    query = call.request.uri.partition("?")[2]
    return encode_path(path) + (f"?{query}" if query else "")


def _values(request: Request, name: str) -> list[str]:
    """All values of a repeated parameter."""
    words = parse_qsl(request.uri.partition("?")[2], keep_blank_values=True)
    return [value for key, value in words if key == name]


def _kubelet_query(request: Request) -> list[tuple[str, str]]:
    """The options under the kubelet's parameter names."""
    found = [(parameter, "1") for name, parameter in _STREAMS.items() if parse_bool(request.query.get(name, "false"))]
    found += [("command", value) for value in _values(request, "command")]
    ports = _values(request, "ports")
    return [*found, ("port", ",".join(ports))] if ports else found


def _parts(call: Call, kind: str) -> tuple[str, str, str]:
    """Scheme, name and port of a name such as `https:web:8443`."""
    parts = call.info.name.split(":")
    if len(parts) < 3:
        parts = ["", *parts, ""][:3]
    if len(parts) != 3 or parts[0] not in _SCHEMES or not parts[1]:
        raise bad_request(f'invalid {kind} request "{call.info.name}"')
    return parts[0], parts[1], parts[2]


def _number(port: str) -> int:
    if not port.isascii() or not 0 < int(port) < 65536:
        raise bad_request(f'invalid port "{port}"')
    return int(port)


def _destination(scheme: str, host: str, port: int) -> Destination:
    shown = f"[{host}]" if ":" in host else host
    return Destination(f"{shown}:{port}", host, secure=scheme == "https", verify=False)
