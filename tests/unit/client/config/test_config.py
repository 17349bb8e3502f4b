"""The cluster is found in the promised order, and every broken configuration is one sentence."""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from kubewright._base import yaml
from kubewright.client.config.config import Config, Impersonation
from kubewright.client.config.credentials import Anonymous, Certificate
from kubewright.errors import ConfigError


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def tree(
    *, name: str = "a", cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None
) -> dict[str, Any]:
    return {
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}:6443"} | (cluster or {})}],
        "users": [{"name": name, "user": user or {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": f"ns-{name}"}}],
        "current-context": name,
    }


def written(path: Path, **parts: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.dump(tree(**parts)))
    return path


def of(folder: Path, *, cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None) -> Config:
    return Config.from_dict(tree(cluster=cluster, user=user), folder)


def mounted_account(folder: Path) -> dict[str, str]:
    """A service account as the kubelet mounts it, and the variables that go with it."""
    folder.mkdir(exist_ok=True)
    (folder / "token").write_text("pod-token")
    (folder / "ca.crt").write_bytes(b"CA")
    (folder / "namespace").write_text("shop\n")
    return {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


# Where the configuration is found -----------------------------------------------------------------------------


def test_the_order_is_named_file_then_variable_then_pod_then_home(tmp_path: Path) -> None:
    account = tmp_path / "account"
    named, listed = written(tmp_path / "named", name="named"), written(tmp_path / "listed", name="listed")
    written(tmp_path / ".kube" / "config", name="home")
    environ = {"HOME": str(tmp_path)}

    def server(kubeconfig: Path | None = None) -> str:
        return Config.load(kubeconfig, environ=environ, service_account=account).server

    assert server() == "https://home:6443"
    environ |= mounted_account(account)
    assert server() == "https://10.0.0.1:443"
    environ["KUBECONFIG"] = str(listed)
    assert server() == "https://listed:6443"
    assert server(named) == "https://named:6443"


def test_a_pod_without_a_token_falls_back_to_the_home_folder(tmp_path: Path) -> None:
    account = tmp_path / "account"
    environ = mounted_account(account) | {"HOME": str(tmp_path)}
    (account / "token").unlink()
    written(tmp_path / ".kube" / "config", name="home")

    assert Config.load(environ=environ, service_account=account).server == "https://home:6443"


def test_a_named_context_is_looked_for_in_files_even_in_a_pod(tmp_path: Path) -> None:
    account = tmp_path / "account"
    environ = mounted_account(account) | {"HOME": str(tmp_path)}
    written(tmp_path / ".kube" / "config", name="home")

    found = Config.load(context="home", environ=environ, service_account=account)

    assert found.server == "https://home:6443"


def test_a_list_of_files_is_merged_without_the_missing_ones(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "ca.crt").write_bytes(b"CA of x")
    one = written(tmp_path / "x" / "one", name="one", cluster={"certificate-authority": "ca.crt"})
    two = written(tmp_path / "two", name="two")
    environ = {"KUBECONFIG": f"{tmp_path}/missing::{one}:{two}"}

    first, second = Config.load(environ=environ), Config.load(context="two", environ=environ)

    assert (first.server, first.ca_data, first.namespace) == ("https://one:6443", b"CA of x", "ns-one")
    assert second.server == "https://two:6443"
    assert first.source == f"context 'one' of kubeconfig {one}, kubeconfig {two}"


def test_a_list_of_files_that_are_all_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        Config.load(environ={"KUBECONFIG": f"{tmp_path}/a:{tmp_path}/b"})

    assert str(caught.value) == (f"none of the kubeconfig files exists: {tmp_path}/a, {tmp_path}/b; check KUBECONFIG")


def test_a_named_file_must_exist(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        Config.load(tmp_path / "none", environ={})

    assert str(caught.value) == f"kubeconfig {tmp_path}/none does not exist"


@pytest.mark.parametrize("in_pod", [False, True])
def test_nothing_found_says_where_it_was_looked_for(tmp_path: Path, in_pod: bool) -> None:
    environ = {"HOME": str(tmp_path)}
    if in_pod:
        environ |= {"KUBERNETES_SERVICE_HOST": "h", "KUBERNETES_SERVICE_PORT": "1"}
    this = "a pod without a service account token" if in_pod else "not a pod"

    with pytest.raises(ConfigError) as caught:
        Config.load(environ=environ, service_account=tmp_path)

    assert str(caught.value) == (
        f"no cluster is configured: KUBECONFIG is not set, {tmp_path}/.kube/config does not exist, "
        f"and this is {this}; name a kubeconfig file, or set KUBECONFIG"
    )


async def test_a_pod_uses_its_service_account(tmp_path: Path) -> None:
    environ = mounted_account(tmp_path)

    found = Config.in_cluster(folder=tmp_path, environ=environ)

    assert found.server == "https://10.0.0.1:443"
    assert (found.namespace, found.ca_data) == ("shop", b"CA")
    assert await found.credentials.headers() == {"Authorization": "Bearer pod-token"}
    (tmp_path / "token").write_text("rotated")
    assert await found.credentials.refresh()
    assert await found.credentials.headers() == {"Authorization": "Bearer rotated"}


def test_a_pod_may_have_an_ipv6_address_and_no_ca_or_namespace(tmp_path: Path) -> None:
    environ = mounted_account(tmp_path) | {"KUBERNETES_SERVICE_HOST": "fd00::1"}
    (tmp_path / "ca.crt").unlink()
    (tmp_path / "namespace").unlink()

    found = Config.in_cluster(folder=tmp_path, environ=environ)

    assert (found.server, found.ca_data, found.namespace) == ("https://[fd00::1]:443", None, "default")


@pytest.mark.parametrize(
    ("environ", "sentence"),
    [
        ({}, "this is not a pod of a cluster: the variable KUBERNETES_SERVICE_HOST is not set"),
        (
            {"KUBERNETES_SERVICE_HOST": "h"},
            "this is not a pod of a cluster: the variable KUBERNETES_SERVICE_PORT is not set",
        ),
        (
            {"KUBERNETES_SERVICE_HOST": "h", "KUBERNETES_SERVICE_PORT": "x"},
            "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT is no address of an API server: "
            "its host or its port is malformed",
        ),
        (
            {"KUBERNETES_SERVICE_HOST": "h", "KUBERNETES_SERVICE_PORT": "1"},
            "the service account of this pod: cannot read {folder}/token: No such file or directory",
        ),
    ],
)
def test_a_broken_pod_is_explained(tmp_path: Path, environ: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Config.in_cluster(folder=tmp_path, environ=environ)

    assert str(caught.value) == sentence.format(folder=tmp_path)


# What the fields mean -----------------------------------------------------------------------------------------


def test_the_cluster_is_as_its_fields_say(tmp_path: Path) -> None:
    found = of(
        tmp_path,
        cluster={
            "server": "https://rancher/k8s/clusters/c-1/",
            "certificate-authority-data": encoded(b"CA"),
            "tls-server-name": "kubernetes",
            "proxy-url": "http://me:hunter2@proxy:3128",
            "disable-compression": True,
        },
    )

    assert found.server == "https://rancher/k8s/clusters/c-1"
    assert found.ca_data == b"CA"
    assert found.ca_origin == "the given kubeconfig: clusters[0].cluster.certificate-authority-data"
    assert found.tls_server_name == "kubernetes"
    assert found.proxy_url == "http://me:hunter2@proxy:3128"
    assert found.disable_compression
    assert found.namespace == "ns-a"
    assert found.source == "context 'a' of the given kubeconfig"
    assert found.user_agent.startswith("kubewright/")
    assert "hunter2" not in repr(found)


def test_ca_data_beats_the_ca_file(tmp_path: Path) -> None:
    both = {"certificate-authority-data": encoded(b"CA"), "certificate-authority": "missing"}

    assert of(tmp_path, cluster=both).ca_data == b"CA"


def test_verification_can_be_switched_off(tmp_path: Path) -> None:
    found = of(tmp_path, cluster={"insecure-skip-tls-verify": True})

    assert found.insecure_skip_tls_verify
    assert found.ca_data is None


def test_a_user_without_fields_is_nobody(tmp_path: Path) -> None:
    assert isinstance(of(tmp_path).credentials, Anonymous)


async def test_a_token_file_beats_a_token(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from-file")

    found = of(tmp_path, user={"token": "t", "tokenFile": "token"})

    assert await found.credentials.headers() == {"Authorization": "Bearer from-file"}


async def test_a_token_is_used_and_the_plug_in_beside_it_is_not(tmp_path: Path) -> None:
    found = of(tmp_path, user={"token": "t", "exec": {"command": "none", "apiVersion": "x"}})

    assert await found.credentials.headers() == {"Authorization": "Bearer t"}


async def test_user_and_password_are_used(tmp_path: Path) -> None:
    found = of(tmp_path, user={"username": "a", "password": "b"})

    assert await found.credentials.headers() == {"Authorization": "Basic YTpi"}


async def test_a_certificate_and_a_token_go_together(tmp_path: Path) -> None:
    (tmp_path / "k").write_bytes(b"K")
    user = {"token": "t", "client-certificate-data": encoded(b"C"), "client-key": "k"}

    found = of(tmp_path, user=user).credentials

    origin = "the given kubeconfig: users[0].user.client-certificate-data and client-key"
    assert found.client_certificate() == Certificate(b"C", b"K", origin)
    assert await found.headers() == {"Authorization": "Bearer t"}


async def test_a_plug_in_beside_the_file_gets_its_arguments_and_the_cluster(tmp_path: Path) -> None:
    plugin = tmp_path / "bin" / "plugin"
    plugin.parent.mkdir()
    plugin.write_text(
        f"#!{sys.executable}\n"
        "import json, os, pathlib\n"
        f"pathlib.Path({str(tmp_path)!r}, 'info').write_text(os.environ['KUBERNETES_EXEC_INFO'])\n"
        "print(json.dumps({'apiVersion': 'client.authentication.k8s.io/v1beta1', 'kind': 'ExecCredential',\n"
        "                  'status': {'token': os.environ['WHO']}}))\n"
    )
    plugin.chmod(0o755)
    user = {
        "exec": {
            "command": "./bin/plugin",
            "apiVersion": "client.authentication.k8s.io/v1beta1",
            "env": [{"name": "WHO", "value": "me"}],
            "args": None,
            "provideClusterInfo": True,
        }
    }
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}
    cluster = {"certificate-authority-data": encoded(b"CA"), "extensions": [extension]}

    found = of(tmp_path, cluster=cluster, user=user)

    assert await found.credentials.headers() == {"Authorization": "Bearer me"}
    told = json.loads((tmp_path / "info").read_text())["spec"]["cluster"]
    assert told == {
        "server": "https://a:6443",
        "certificate-authority-data": encoded(b"CA"),
        "config": {"audience": "x"},
    }


def test_impersonation_becomes_headers(tmp_path: Path) -> None:
    user = {
        "as": "jane",
        "as-uid": "u-1",
        "as-groups": ["dev", "ops"],
        "as-user-extra": {"example.org/team": ["a", "b"]},
    }

    assert of(tmp_path, user=user).impersonation.headers() == (
        ("Impersonate-User", "jane"),
        ("Impersonate-Uid", "u-1"),
        ("Impersonate-Group", "dev"),
        ("Impersonate-Group", "ops"),
        ("Impersonate-Extra-example.org%2Fteam", "a"),
        ("Impersonate-Extra-example.org%2Fteam", "b"),
    )
    assert of(tmp_path).impersonation.headers() == ()


def test_a_program_can_impersonate_too() -> None:
    found = Config(server="https://a").impersonating("jane", groups=["dev"], extra={"k": ["v"]})

    assert found.impersonation == Impersonation(user="jane", groups=("dev",), extra={"k": ("v",)})
    assert found.server == "https://a"


# What is wrong ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cluster", "sentence"),
    [
        ({"server": ""}, "server is missing; give the address of the API server"),
        (
            {"server": "10.0.0.1:6443"},
            "server is no address of an API server: it must be an address such as https://10.0.0.1:6443",
        ),
        (
            {"server": "https://a:port"},
            "server is no address of an API server: its host or its port is malformed",
        ),
        (
            {"server": "https://me:hunter2@a"},
            "server is no address of an API server: it must not contain a user or a password; "
            "these belong to the user of the context",
        ),
        (
            {"server": "https://a?b=c"},
            "server is no address of an API server: it must not contain a query, a fragment or a space",
        ),
        (
            {"certificate-authority-data": "%%%"},
            "certificate-authority-data is not valid base64; write it without line breaks",
        ),
        (
            {"certificate-authority": "none.crt"},
            "certificate-authority: cannot read {folder}/none.crt: No such file or directory",
        ),
        (
            {"insecure-skip-tls-verify": True, "certificate-authority-data": encoded(b"CA")},
            "insecure-skip-tls-verify is true although a certificate authority is given; remove one of the two",
        ),
        (
            {"proxy-url": "ftp://hunter2"},
            "proxy-url is no address of a proxy: it must begin with http://, https://, socks5://",
        ),
    ],
)
def test_a_broken_cluster_is_named_by_its_field(tmp_path: Path, cluster: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        of(tmp_path, cluster=cluster)

    assert str(caught.value) == "the given kubeconfig: clusters[0].cluster." + sentence.format(folder=tmp_path)


@pytest.mark.parametrize(
    ("user", "sentence"),
    [
        (
            {"token": "hunter2", "username": "u"},
            "token and username are both given; remove one of them",
        ),
        (
            {"token": "hunter2 hunter2"},
            "token is no token: it has a space, a line break or another forbidden character",
        ),
        ({"tokenFile": "none"}, "tokenFile: cannot read {folder}/none: No such file or directory"),
        (
            {"client-certificate-data": "%"},
            "client-certificate-data is not valid base64; write it without line breaks",
        ),
        (
            {"client-certificate-data": encoded(b"C")},
            "client-key is missing; client-certificate is of no use without it",
        ),
        ({"client-key": "k"}, "client-certificate is missing; client-key is of no use without it"),
        (
            {"client-certificate": "c", "client-key-data": encoded(b"hunter2")},
            "client-certificate and client-key-data: cannot read {folder}/c: No such file or directory",
        ),
        ({"as-groups": ["g"]}, "as-groups is given without `as`; name the user to impersonate"),
        (
            {"auth-provider": {"name": "gcp"}},
            "auth-provider 'gcp' is not supported; use the exec plug-in gke-gcloud-auth-plugin, "
            "set up by `gcloud container clusters get-credentials`",
        ),
        (
            {"auth-provider": {"name": "mine"}},
            "auth-provider 'mine' is not supported; use an exec plug-in in its place",
        ),
        ({"exec": {}}, "exec.command is missing; name the program to run"),
        (
            {"exec": {"command": "x", "apiVersion": "client.authentication.k8s.io/v1alpha1"}},
            "exec.apiVersion is 'client.authentication.k8s.io/v1alpha1'; "
            "use client.authentication.k8s.io/v1 or client.authentication.k8s.io/v1beta1",
        ),
        (
            {"exec": {"command": "x", "apiVersion": "client.authentication.k8s.io/v1"}},
            "exec.interactiveMode is missing; use Never, IfAvailable or Always",
        ),
        (
            {
                "exec": {
                    "command": "x",
                    "apiVersion": "client.authentication.k8s.io/v1",
                    "interactiveMode": "Never",
                    "env": [{"value": "hunter2"}],
                }
            },
            "exec.env[0].name is missing; every variable needs one",
        ),
    ],
)
def test_a_broken_user_is_named_by_its_field(tmp_path: Path, user: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        of(tmp_path, user=user)

    assert str(caught.value) == "the given kubeconfig: users[0].user." + sentence.format(folder=tmp_path)


def test_an_address_given_by_a_program_is_checked() -> None:
    with pytest.raises(ConfigError, match=r"^the server of the configuration given by the program is no address"):
        Config(server="a:6443")


def test_broken_base64_in_a_file_names_the_file(tmp_path: Path) -> None:
    path = written(tmp_path / "c", cluster={"certificate-authority-data": "?"})

    with pytest.raises(ConfigError) as caught:
        Config.from_kubeconfig(path)

    assert str(caught.value).startswith(f"kubeconfig {path}: clusters[0].cluster.certificate-authority-data ")


def test_no_secret_is_in_a_repr(tmp_path: Path) -> None:
    assert "hunter2" not in repr(of(tmp_path, user={"token": "hunter2"}))
