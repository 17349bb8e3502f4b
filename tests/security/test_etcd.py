"""Only the API server of a real control plane gets to its etcd, which holds every Secret in the clear.

Covers: kubewright.cluster.planes
"""

from __future__ import annotations

import http.client
import ssl
from pathlib import Path

import pytest

from kubewright.cluster.pki.files import Pki
from kubewright.cluster.planes.real import RealCluster

pytestmark = pytest.mark.real

READ_ALL = '{"key": "AA==", "range_end": "AA=="}'


def _status(port: int, tls: ssl.SSLContext | None) -> int:
    """The code of etcd's response to a read of everything; 0 if it gives none."""
    connection = (
        http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        if tls is None
        else http.client.HTTPSConnection("127.0.0.1", port, timeout=10, context=tls)
    )
    try:
        connection.request("POST", "/v3/kv/range", READ_ALL)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        connection.close()


def _ports(cluster: RealCluster) -> list[int]:
    return [cluster._ports.etcd, cluster._ports.etcd_peer]


def _trusting(pki: Pki) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=pki.certificate("etcd-ca"))


def test_without_tls_nobody_is_answered(real_cluster: RealCluster) -> None:
    assert [_status(port, None) in (0, 400) for port in _ports(real_cluster)] == [True, True]


def test_without_a_certificate_nobody_is_answered(real_cluster: RealCluster) -> None:
    assert [_status(port, _trusting(real_cluster._pki)) for port in _ports(real_cluster)] == [0, 0]


def test_the_certificate_of_an_administrator_opens_the_api_and_not_its_storage(
    real_cluster: RealCluster, tmp_path: Path
) -> None:
    admin = real_cluster._pki.authority.client("admin", groups=("system:masters",))
    file = tmp_path / "admin.pem"
    file.write_bytes(admin.certificate + admin.key)
    tls = _trusting(real_cluster._pki)
    tls.load_cert_chain(file)

    assert [_status(port, tls) for port in _ports(real_cluster)] == [0, 0]


async def test_the_api_servers_certificate_opens_it(real_cluster: RealCluster) -> None:
    pki = real_cluster._pki
    tls = _trusting(pki)
    tls.load_cert_chain(pki.certificate("etcd-client"), pki.key("etcd-client"))

    assert _status(real_cluster._ports.etcd, tls) == 200


def test_the_key_of_etcds_authority_is_written_nowhere(real_cluster: RealCluster) -> None:
    assert list(real_cluster.folder.rglob("etcd-ca.key")) == []
