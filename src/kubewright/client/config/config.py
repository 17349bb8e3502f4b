"""Config: which cluster to talk to, and as which user.

`Config` is plain frozen data, found in the order of controller-runtime (pkg/client/config/config.go): a file named by
the caller, `$KUBECONFIG`, the service account of the pod, `~/.kube/config`. `config.kubeconfig` reads the file format;
here its fields become addresses, bytes and `Credentials`. `connect` and the transports take a `Config`; nothing here
opens a connection or runs a program. A missing or wrong field is a `ConfigError` that names file and field.
"""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, final
from urllib.parse import quote, urlsplit

from kubewright._base.clock import Clock
from kubewright._base.version import __version__
from kubewright.client.config import kubeconfig as kubeconfigs
from kubewright.client.config.credentials import (
    Anonymous,
    BasicAuth,
    ClientCertificate,
    CombinedCredentials,
    Credentials,
    StaticToken,
    TokenFile,
    read_file,
)
from kubewright.errors import ConfigError

if TYPE_CHECKING:
    from kubewright.client.config.exec_plugin import ExecSpec

__all__ = ("Config", "Impersonation", "default_user_agent")

_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_EXEC_EXTENSION = "client.authentication.k8s.io/exec"
_PROXY_SCHEMES = ("http", "https", "socks5")

_AUTH_PROVIDER_ADVICE = {
    "gcp": "use the exec plug-in gke-gcloud-auth-plugin, set up by `gcloud container clusters get-credentials`",
    "azure": "use the exec plug-in kubelogin, set up by `kubelogin convert-kubeconfig`",
    "oidc": "use an exec plug-in such as kubelogin (`kubectl oidc-login`), or put a token in its place",
}


def default_user_agent() -> str:
    """The User-Agent of this client: name, version, system."""
    return f"kubewright/{__version__} ({sys.platform}/{platform.machine().lower() or 'unknown'})"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Impersonation:
    """The user to impersonate; the server checks that the authenticated user may."""

    user: str = ""
    """The user name; empty for no impersonation."""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.user and (self.uid or self.groups or self.extra):
            raise ConfigError("groups, uid and extra are those of a user to impersonate, and none is named; name one")

    def headers(self) -> tuple[tuple[str, str], ...]:
        """The impersonation headers; a name may occur several times."""
        if not self.user:
            return ()
        pairs = [("Impersonate-User", self.user)]
        if self.uid:
            pairs.append(("Impersonate-Uid", self.uid))
        pairs.extend(("Impersonate-Group", group) for group in self.groups)
        for key, values in self.extra.items():
            # A key such as example.org/team has characters that a header name cannot have, so it is percent-encoded
            # (client-go: transport/round_trippers.go, headerKeyEscape).
            name = f"Impersonate-Extra-{quote(key, safe='!#$&*+^|~')}"
            pairs.extend((name, value) for value in values)
        return tuple(pairs)


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Config:
    """A cluster, a user, and how to connect. Change a copy with `dataclasses.replace`."""

    server: str
    """The URL, such as `https://10.0.0.1:6443`, without a slash at the end."""
    namespace: str = "default"
    """For calls that name no namespace."""
    ca_data: bytes | None = None
    """The authorities that may sign the server's certificate, PEM; None for this machine's trust store."""
    ca_origin: str = "this machine's trust store"
    """Where `ca_data` comes from, for messages."""
    tls_server_name: str | None = None
    """The name in the server's certificate, if it is not the host of the URL."""
    insecure_skip_tls_verify: bool = False
    proxy_url: str | None = None
    disable_compression: bool = False
    credentials: Credentials = field(default_factory=Anonymous)
    impersonation: Impersonation = field(default_factory=Impersonation)
    user_agent: str = field(default_factory=default_user_agent)
    source: str = "given by the program"
    """Where this configuration comes from, for messages: the file and the context."""
    connect_timeout: float = 10.0
    """Seconds until a connection is established, with TLS."""
    request_timeout: float = 30.0
    """Seconds until a response is complete, unless the call says otherwise."""

    def __post_init__(self) -> None:
        _check_server(self.server, f"the server of the configuration {self.source}")

    def __repr__(self) -> str:
        # Without the CA, which is long, and the proxy, whose URL may contain a password.
        return f"Config(server={self.server!r}, namespace={self.namespace!r}, source={self.source!r})"

    def impersonating(
        self,
        user: str,
        *,
        groups: Sequence[str] = (),
        uid: str = "",
        extra: Mapping[str, Sequence[str]] | None = None,
    ) -> Config:
        """The same configuration, impersonating a user; ConfigError if none is named."""
        if not user:
            # Without a name nobody would be impersonated, and requests would have all rights of the caller.
            raise ConfigError("the user to impersonate has no name; name one, or use the configuration as it is")
        more = {key: tuple(values) for key, values in (extra or {}).items()}
        other = Impersonation(user=user, uid=uid, groups=tuple(groups), extra=more)
        return replace(self, impersonation=other)

    @classmethod
    def load(
        cls,
        kubeconfig: str | PathLike[str] | None = None,
        context: str | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        service_account: Path = _SERVICE_ACCOUNT,
        clock: Clock | None = None,
    ) -> Config:
        """Find the cluster: the file named here, `$KUBECONFIG`, the pod's own cluster, `~/.kube/config`.

        With `context`, only kubeconfig files are considered.
        """
        env = os.environ if environ is None else environ
        if kubeconfig is not None:
            path = Path(kubeconfig).expanduser()
            return cls.from_kubeconfig(path, context=context, environ=env, clock=clock)
        if listed := [Path(part) for part in env.get("KUBECONFIG", "").split(os.pathsep) if part]:
            return cls.from_kubeconfig(listed, context=context, environ=env, clock=clock)
        in_pod = bool(env.get("KUBERNETES_SERVICE_HOST") and env.get("KUBERNETES_SERVICE_PORT"))
        if in_pod and not context and (service_account / "token").exists():
            return cls.in_cluster(folder=service_account, environ=env, clock=clock)
        home = Path(env["HOME"]) if env.get("HOME") else Path.home()
        path = home / ".kube" / "config"
        if not path.exists():
            raise ConfigError(
                f"no cluster is configured: KUBECONFIG is not set, {path} does not exist, and this is "
                f"{'a pod without a service account token' if in_pod else 'not a pod'}; "
                "name a kubeconfig file, or set KUBECONFIG"
            )
        return cls.from_kubeconfig(path, context=context, environ=env, clock=clock)

    @classmethod
    def from_kubeconfig(
        cls,
        paths: str | PathLike[str] | Sequence[str | PathLike[str]],
        context: str | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        clock: Clock | None = None,
    ) -> Config:
        """From one file, which must exist, or from several files merged as kubectl does, one of which must exist."""
        if isinstance(paths, str | PathLike):
            merged = kubeconfigs.read(Path(paths))
        else:
            files = [Path(path) for path in paths]
            found = [kubeconfigs.read(path) for path in files if path.exists()]
            if not found:
                names = ", ".join(str(path) for path in files) or "none was named"
                raise ConfigError(f"none of the kubeconfig files exists: {names}; check KUBECONFIG")
            merged = kubeconfigs.merge(found)
        return _config_from(kubeconfigs.select(merged, context), merged.title, environ, clock)

    @classmethod
    def from_dict(
        cls,
        tree: Mapping[str, Any],
        base_folder: Path,
        context: str | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        clock: Clock | None = None,
    ) -> Config:
        """From the content of a kubeconfig; relative paths in it are relative to the folder."""
        parsed = kubeconfigs.parse(dict(tree), source="the given kubeconfig", folder=base_folder.absolute())
        return _config_from(kubeconfigs.select(parsed, context), parsed.title, environ, clock)

    @classmethod
    def in_cluster(
        cls,
        *,
        folder: Path = _SERVICE_ACCOUNT,
        environ: Mapping[str, str] | None = None,
        clock: Clock | None = None,
    ) -> Config:
        """As the service account of the pod this runs in."""
        env = os.environ if environ is None else environ
        host, port = env.get("KUBERNETES_SERVICE_HOST", ""), env.get("KUBERNETES_SERVICE_PORT", "")
        if not (host and port):
            missing = "KUBERNETES_SERVICE_PORT" if host else "KUBERNETES_SERVICE_HOST"
            raise ConfigError(f"this is not a pod of a cluster: the variable {missing} is not set")
        server = f"https://{f'[{host}]' if ':' in host else host}:{port}"
        _check_server(server, "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT")
        ca, namespace = folder / "ca.crt", folder / "namespace"
        origin = "the service account of this pod"
        return cls(
            server=server,
            namespace=_text(namespace, origin) if namespace.exists() else "default",
            ca_data=read_file(ca, origin) if ca.exists() else None,
            ca_origin=str(ca) if ca.exists() else "this machine's trust store",
            credentials=TokenFile(folder / "token", origin=origin, clock=clock),
            source=f"{origin} in {folder}",
        )


def _config_from(
    selection: kubeconfigs.Selection, title: str, environ: Mapping[str, str] | None, clock: Clock | None
) -> Config:
    cluster = selection.cluster
    value = cluster.value
    server = value.server.rstrip("/")
    if not server:
        raise ConfigError(f"{cluster.field('server')} is missing; give the address of the API server")
    _check_server(server, cluster.field("server"))
    ca, ca_origin = _authority(cluster)
    if value.insecure_skip_tls_verify and ca is not None:
        raise ConfigError(
            f"{cluster.field('insecure-skip-tls-verify')} is true although a certificate authority is given; "
            "remove one of the two"
        )
    return Config(
        server=server,
        namespace=selection.namespace,
        ca_data=ca,
        ca_origin=ca_origin,
        tls_server_name=value.tls_server_name or None,
        insecure_skip_tls_verify=value.insecure_skip_tls_verify,
        proxy_url=_proxy(cluster),
        disable_compression=value.disable_compression,
        credentials=_credentials(selection.user, cluster, ca, environ, clock),
        impersonation=_impersonation(selection.user),
        source=f"context {selection.context!r} of {title}",
    )


def _authority(cluster: kubeconfigs.Entry[kubeconfigs.Cluster]) -> tuple[bytes | None, str]:
    value = cluster.value
    if value.certificate_authority_data:
        name = "certificate-authority-data"
        return kubeconfigs.decode_base64(cluster, name, value.certificate_authority_data), cluster.field(name)
    if value.certificate_authority:
        path = cluster.path(value.certificate_authority)
        origin = cluster.field("certificate-authority")
        return read_file(path, origin), f"{path} ({origin})"
    return None, "this machine's trust store"


def _credentials(
    user: kubeconfigs.Entry[kubeconfigs.User],
    cluster: kubeconfigs.Entry[kubeconfigs.Cluster],
    ca: bytes | None,
    environ: Mapping[str, str] | None,
    clock: Clock | None,
) -> Credentials:
    """The credentials for the fields of a user, with kubectl's precedence."""
    value = user.value
    if value.auth_provider is not None:
        name = value.auth_provider.name
        instead = _AUTH_PROVIDER_ADVICE.get(name, "use an exec plug-in in its place")
        raise ConfigError(f"{user.field('auth-provider')} {name!r} is not supported; {instead}")
    if (value.token or value.token_file) and (value.username or value.password):
        raise ConfigError(f"{user.field('token')} and username are both given; remove one of them")
    certificate = _certificate(user, clock)
    authorization: Credentials | None = None
    if value.token_file:
        path = user.path(value.token_file)
        authorization = TokenFile(path, origin=user.field("tokenFile"), clock=clock)
    elif value.token:
        authorization = StaticToken(value.token, origin=user.field("token"))
    elif value.username or value.password:
        authorization = BasicAuth(value.username, value.password)
    elif value.exec_ is not None:
        from kubewright.client.config.exec_plugin import ExecPlugin  # an operator in a cluster never runs one

        spec = _exec_spec(user, value.exec_, cluster, ca)
        authorization = ExecPlugin(spec, clock=clock, environ=environ)
    if authorization and certificate:
        return CombinedCredentials(authorization, certificate)
    return authorization or certificate or Anonymous()


def _certificate(user: kubeconfigs.Entry[kubeconfigs.User], clock: Clock | None) -> ClientCertificate | None:
    value = user.value

    def source(name: str, data: str, path: str) -> bytes | Path | None:
        if data:
            return kubeconfigs.decode_base64(user, f"{name}-data", data)
        return user.path(path) if path else None

    certificate = source("client-certificate", value.client_certificate_data, value.client_certificate)
    key = source("client-key", value.client_key_data, value.client_key)
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        missing = "client-key" if key is None else "client-certificate"
        other = "client-certificate" if key is None else "client-key"
        raise ConfigError(f"{user.field(missing)} is missing; {other} is of no use without it")
    names = [
        f"{name}-data" if isinstance(part, bytes) else name
        for name, part in (("client-certificate", certificate), ("client-key", key))
    ]
    return ClientCertificate(certificate, key, origin=user.field(" and ".join(names)), clock=clock)


def _exec_spec(
    user: kubeconfigs.Entry[kubeconfigs.User],
    plugin: kubeconfigs.Exec,
    cluster: kubeconfigs.Entry[kubeconfigs.Cluster],
    ca: bytes | None,
) -> ExecSpec:
    from kubewright.client.config.exec_plugin import EXEC_VERSIONS, ExecSpec  # see _credentials

    if not plugin.command:
        raise ConfigError(f"{user.field('exec.command')} is missing; name the program to run")
    if plugin.api_version not in EXEC_VERSIONS:
        found = f"is {plugin.api_version!r}" if plugin.api_version else "is missing"
        raise ConfigError(f"{user.field('exec.apiVersion')} {found}; use {' or '.join(EXEC_VERSIONS)}")
    mode = plugin.interactive_mode
    if not mode and plugin.api_version == EXEC_VERSIONS[1]:
        mode = "IfAvailable"
    if mode not in ("Never", "IfAvailable", "Always"):
        found = f"is {mode!r}" if mode else "is missing"
        raise ConfigError(f"{user.field('exec.interactiveMode')} {found}; use Never, IfAvailable or Always")
    for index, variable in enumerate(plugin.env):
        if not variable.name:
            raise ConfigError(f"{user.field(f'exec.env[{index}].name')} is missing; every variable needs one")
    # A bare name is looked up on the PATH; one with a slash is relative to the kubeconfig
    # (client-go: tools/clientcmd/loader.go, ResolveLocalPaths).
    command = str(user.path(plugin.command)) if "/" in plugin.command else plugin.command
    return ExecSpec(
        command=command,
        api_version=plugin.api_version,
        args=plugin.args,
        env={variable.name: variable.value for variable in plugin.env},
        install_hint=plugin.install_hint,
        interactive_mode=cast("Literal['Never', 'IfAvailable', 'Always']", mode),
        cluster=_cluster_info(cluster.value, ca) if plugin.provide_cluster_info else None,
        origin=user.field("exec"),
    )


def _cluster_info(cluster: kubeconfigs.Cluster, ca: bytes | None) -> dict[str, Any]:
    """The cluster part of KUBERNETES_EXEC_INFO, for a plug-in with provideClusterInfo."""
    info: dict[str, Any] = {
        "server": cluster.server,
        "tls-server-name": cluster.tls_server_name,
        "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
        "certificate-authority-data": ca,
        "proxy-url": cluster.proxy_url,
        "disable-compression": cluster.disable_compression,
        "config": next((one.extension for one in cluster.extensions if one.name == _EXEC_EXTENSION), None),
    }
    return {name: value for name, value in info.items() if value or name == "server"}


def _impersonation(user: kubeconfigs.Entry[kubeconfigs.User]) -> Impersonation:
    value = user.value
    if value.as_:
        extra = value.as_user_extra
        return Impersonation(user=value.as_, uid=value.as_uid, groups=value.as_groups, extra=extra)
    for name, field_value in (
        ("as-uid", value.as_uid),
        ("as-groups", value.as_groups),
        ("as-user-extra", value.as_user_extra),
    ):
        if field_value:
            raise ConfigError(f"{user.field(name)} is given without `as`; name the user to impersonate")
    return Impersonation()


def _check_server(server: str, what: str) -> None:
    parts, problem = _split(server)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        # The message does not repeat the text: it may be a secret that was put in the wrong field.
        problem = problem or "it must be an address such as https://10.0.0.1:6443"
    elif parts.username is not None or parts.password is not None:
        problem = "it must not contain a user or a password; these belong to the user of the context"
    elif parts.query or parts.fragment or re.search(r"\s", server):
        problem = "it must not contain a query, a fragment or a space"
    if problem:
        raise ConfigError(f"{what} is no address of an API server: {problem}")


def _proxy(cluster: kubeconfigs.Entry[kubeconfigs.Cluster]) -> str | None:
    url = cluster.value.proxy_url
    if not url:
        return None
    parts, problem = _split(url)
    if parts is None or parts.scheme not in _PROXY_SCHEMES or not parts.hostname:
        problem = problem or f"it must begin with {', '.join(f'{scheme}://' for scheme in _PROXY_SCHEMES)}"
        raise ConfigError(f"{cluster.field('proxy-url')} is no address of a proxy: {problem}")
    return url


def _split(url: str) -> tuple[Any, str]:
    """The parts of a URL, and what is wrong with them as far as the standard library says."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None, "its host or its port is malformed"
    return parts, ""


def _text(path: Path, origin: str) -> str:
    return read_file(path, origin).decode("utf-8", "replace").strip() or "default"
