"""A server with authentication and RBAC, called without a socket."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from kubewright._base.certificates import Authority, service_account_keys
from kubewright.apiserver.auth.access import RbacAccess
from kubewright.apiserver.auth.tokens import ServiceAccountTokens
from kubewright.apiserver.server import ApiServer
from kubewright.apiserver.storage.store import Store
from kubewright.apiserver.wire.requests import Peer, Request, parse_query
from kubewright.apiserver.wire.responses import Response
from kubewright.apiserver.wire.users import User

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
STATIC = User("stan", ("static",), "s-1")


class SteppedClock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.present = NOW

    def now(self) -> datetime:
        return self.present

    def monotonic(self) -> float:
        return self.present.timestamp()

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("nothing here waits for the clock")


class RbacServer:
    """A server with RBAC, called without a socket."""

    def __init__(self, api: ApiServer, access: RbacAccess, clock: SteppedClock) -> None:
        self.api = api
        self.access = access
        self.clock = clock

    async def ask(
        self, method: str, uri: str, tree: Any = None, *, user: str | None = None, token: str = "", **headers: str
    ) -> tuple[int, Any]:
        """Code and body of the response to the administrator, a user by certificate ("" for none) or a token."""
        peer = Peer(common_name="admin", organizations=("system:masters",), fingerprint="ab")
        if user is not None or token:
            peer = Peer(common_name=user or "")
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if token:
            sent["authorization"] = f"Bearer {token}"
        path, _, query = uri.partition("?")
        body = b"" if tree is None else json.dumps(tree).encode()
        reply = await self.api.router.handle(Request(method, path, parse_query(query), sent, body, peer, uri=uri))
        assert isinstance(reply, Response)
        return reply.code, json.loads(reply.body)

    async def make(self, uri: str, tree: Any) -> dict[str, Any]:
        """A new object."""
        code, made = await self.ask("POST", uri, tree)
        assert code == 201, made
        assert isinstance(made, dict)
        return made

    async def token_of(self, account: str, **spec: Any) -> str:
        """A token for a service account of the namespace default."""
        made = await self.make(f"/api/v1/namespaces/default/serviceaccounts/{account}/token", {"spec": spec})
        return str(made["status"]["token"])


@pytest.fixture(scope="session")
def key() -> bytes:
    """The private key tokens are signed with."""
    return service_account_keys().key


@pytest.fixture(scope="session")
def proxy_ca() -> bytes:
    """The certificate of the CA of front proxies."""
    return Authority.create("proxies").certificate


@pytest.fixture
def clock() -> SteppedClock:
    return SteppedClock()


@pytest.fixture
def make_server(key: bytes, proxy_ca: bytes, clock: SteppedClock) -> Callable[..., RbacServer]:
    """Makes a server; nothing of it runs."""

    def make(*, anonymous: bool = True) -> RbacServer:
        store = Store()
        signer = ServiceAccountTokens(key)
        access = RbacAccess(
            store,
            signer=signer,
            tokens={"open sesame": STATIC, "sesame": STATIC},
            anonymous=anonymous,
            client_ca=b"the root",
            proxy_ca=proxy_ca,
            clock=clock,
        )
        return RbacServer(ApiServer(store=store, access=access, clock=clock), access, clock)

    return make


@pytest.fixture
async def server(make_server: Callable[..., RbacServer]) -> AsyncIterator[RbacServer]:
    """A server with its first objects and the parts that look after roles and tokens."""
    server = make_server()
    assert server.api.identities is not None
    server.api.identities.start(port=6443)
    yield server
    await server.api.identities.stop()
