"""No private key, token or password is part of the text of an object: it would end in a log or in a bug report.

Covers: kubewright
"""

from __future__ import annotations

import pickle
from collections.abc import Callable

import pytest

from kubewright._base.certificates import Authority, KeyPair, service_account_keys
from kubewright._base.http import messages
from kubewright.apiserver.wire import requests
from kubewright.client.config import exec_plugin, kubeconfig
from kubewright.client.config.credentials import BasicAuth, Certificate, StaticToken
from kubewright.client.transport.transport import HttpRequest, HttpResponse
from kubewright.manager.endpoints.healthz import Checks
from kubewright.webhooks.certificates.rotation import CertificateState

SECRET = "s3cr3t-value"
PAIR = KeyPair(b"certificate", SECRET.encode())

HOLDERS: dict[str, Callable[[], object]] = {
    "KeyPair": lambda: PAIR,
    "Authority": lambda: Authority(PAIR),
    "CertificateState": lambda: CertificateState(signer=PAIR, serving=PAIR, successor=PAIR),
    "Request of an operator's server": lambda: messages.Request(
        target=f"/?token={SECRET}", headers={"authorization": f"Bearer {SECRET}"}, body=SECRET.encode()
    ),
    "Request of the API server": lambda: requests.Request(
        "GET",
        "/",
        {"token": SECRET},
        {"authorization": f"Bearer {SECRET}"},
        SECRET.encode(),
        requests.Peer(),
        uri=f"/?token={SECRET}",
    ),
    "Request of a client": lambda: HttpRequest(
        method="POST", path="/", body=SECRET.encode(), headers=(("Authorization", SECRET),)
    ),
    "Response to a client": lambda: HttpResponse(status=200, headers={"x": SECRET}, body=SECRET.encode()),
    "ExecCredential status": lambda: exec_plugin._Status(token=SECRET, client_key_data=SECRET),
    "ExecCredential": lambda: exec_plugin._ExecCredential(status=exec_plugin._Status(token=SECRET)),
    "Credential": lambda: exec_plugin._Credential(
        {"Authorization": SECRET}, Certificate(b"", SECRET.encode(), "x"), renew_at=None, expires_at=None
    ),
    "Cluster of a kubeconfig": lambda: kubeconfig.Cluster(proxy_url=f"http://user:{SECRET}@proxy"),
    "User of a kubeconfig": lambda: kubeconfig.User(token=SECRET, password=SECRET, client_key_data=SECRET),
    "StaticToken": lambda: StaticToken(SECRET),
    "BasicAuth": lambda: BasicAuth("user", SECRET),
}


@pytest.mark.parametrize("make", HOLDERS.values(), ids=HOLDERS.keys())
def test_the_text_of_a_holder_has_no_secret(make: Callable[[], object]) -> None:
    holder = make()

    assert SECRET not in repr(holder)
    assert SECRET not in str(holder)
    assert SECRET not in f"{[holder]}"


@pytest.mark.parametrize("make", [lambda: Authority.create("x"), service_account_keys], ids=["authority", "pair"])
def test_a_new_key_is_not_in_the_text(make: Callable[[], object]) -> None:
    assert "PRIVATE KEY" not in repr(make())
    assert b"PRIVATE KEY" in pickle.dumps(make())  # it is there, and not shown


async def test_an_exception_of_a_check_is_not_told_to_everybody(caplog: pytest.LogCaptureFixture) -> None:
    """Nobody logs in to the port for probes, and drivers put the address they could not reach in their exceptions."""

    def database() -> None:
        raise OSError(f"cannot reach postgres://operator:{SECRET}@database")

    checks = Checks("readyz")
    checks.add("database", database)

    answers = [await checks.answer("", ()), await checks.answer("database", (("verbose", ""),))]

    assert answers == [(500, "[-]database failed: OSError; the log says more\nreadyz check failed\n")] * 2
    assert len([record for record in caplog.records if record.levelname == "WARNING"]) == 1


async def test_a_check_says_what_the_author_wants_it_to_say() -> None:
    checks = Checks("readyz")
    checks.add("returned", lambda: "the database is away")

    assert (await checks.answer("", ()))[1].startswith("[-]returned failed: the database is away\n")
