from pathlib import Path

import pytest

from kubewright.cluster.pki.files import Pki
from kubewright.cluster.planes.flags import Ports, apiserver_command, controller_manager_command, etcd_command

PORTS = Ports(etcd=1, etcd_peer=2, apiserver=3, controller_manager=4)


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    folder = tmp_path_factory.mktemp("pki")
    return Pki.prepare(persistent=folder, temporary=folder)


def test_the_api_server_listens_on_loopback_and_authorizes_nodes_and_roles(pki: Pki) -> None:
    command = apiserver_command(
        Path("/k"), ports=PORTS, pki=pki, audit=None, runtime_config={}, simulated_nodes=False, extra={}
    )

    assert command[0] == "/k"
    assert {"--bind-address=127.0.0.1", "--secure-port=3", "--authorization-mode=Node,RBAC"} <= set(command)
    assert "--enable-admission-plugins=NodeRestriction" in command
    assert not any(flag.startswith("--audit") for flag in command)


def test_a_flag_replaces_the_default_and_an_empty_one_drops_it(pki: Pki) -> None:
    extra = {"authorization-mode": "AlwaysAllow", "--profiling": "", "v": "4"}

    command = apiserver_command(
        Path("/k"), ports=PORTS, pki=pki, audit=None, runtime_config={}, simulated_nodes=False, extra=extra
    )

    assert "--authorization-mode=AlwaysAllow" in command
    assert "--authorization-mode=Node,RBAC" not in command
    assert "--v=4" in command
    assert not any(flag.startswith("--profiling") for flag in command)


@pytest.mark.parametrize("simulated", [True, False])
def test_kubelets_see_a_client_certificate_and_simulated_ones_are_verified(pki: Pki, simulated: bool) -> None:
    command = apiserver_command(
        Path("/k"), ports=PORTS, pki=pki, audit=None, runtime_config={}, simulated_nodes=simulated, extra={}
    )

    assert f"--kubelet-client-certificate={pki.certificate('apiserver-kubelet-client')}" in command
    assert f"--kubelet-client-key={pki.key('apiserver-kubelet-client')}" in command
    assert (f"--kubelet-certificate-authority={pki.certificate('ca')}" in command) is simulated


@pytest.mark.parametrize(
    ("runtime_config", "extra"),
    [({"resource.k8s.io/v1": "false"}, {}), ({}, {"runtime-config": "a/v1=true,resource.k8s.io/v1=false"})],
    ids=["option", "flag"],
)
def test_a_server_without_resource_slices_has_no_node_authorizer(
    pki: Pki, runtime_config: dict[str, str], extra: dict[str, str]
) -> None:
    """It would wait for them, and the server would never be ready."""
    command = apiserver_command(
        Path("/k"), ports=PORTS, pki=pki, audit=None, runtime_config=runtime_config, simulated_nodes=False, extra=extra
    )

    assert "--authorization-mode=RBAC" in command


def test_audit_and_runtime_config_become_flags(pki: Pki) -> None:
    command = apiserver_command(
        Path("/k"),
        ports=PORTS,
        pki=pki,
        audit=(Path("/policy"), Path("/log")),
        runtime_config={"api/alpha": "true", "batch/v1": "false"},
        simulated_nodes=False,
        extra={},
    )

    assert {"--audit-policy-file=/policy", "--audit-log-path=/log"} <= set(command)
    assert "--runtime-config=api/alpha=true,batch/v1=false" in command


@pytest.mark.parametrize(("durable", "flag"), [(True, "false"), (False, "true")])
def test_etcd_syncs_to_disk_only_where_data_must_survive(pki: Pki, durable: bool, flag: str) -> None:
    command = etcd_command(Path("/e"), ports=PORTS, pki=pki, data=Path("/d"), durable=durable)

    assert f"--unsafe-no-fsync={flag}" in command
    assert {"--listen-client-urls=https://127.0.0.1:1", "--client-cert-auth=true"} <= set(command)


def test_the_controller_manager_skips_leader_election_and_uses_service_accounts(pki: Pki) -> None:
    command = controller_manager_command(Path("/c"), ports=PORTS, pki=pki, kubeconfig=Path("/f/k"), extra={})

    assert {"--leader-elect=false", "--use-service-account-credentials=true", "--kubeconfig=/f/k"} <= set(command)
    assert "--flex-volume-plugin-dir=/f/flexvolume" in command
