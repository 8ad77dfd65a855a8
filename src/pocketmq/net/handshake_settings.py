"""Settings of broker and name server for TLS and load balancers, by RocketMQ's keys.

Java reads the same keys as system properties or from tls.properties. As in its test mode, a server
without a certificate has a self-signed one.
"""

from pathlib import Path

import msgspec

from pocketmq.errors import InvalidInput
from pocketmq.net.handshake import Handshake, parse_networks
from pocketmq.net.limits import Limits
from pocketmq.net.self_signed import FILE_NAME, SelfSigned
from pocketmq.net.tls import ClientAuth, ServerTls, Tls, TlsMode

SECRET_KEYS = frozenset({"tls.server.keyPassword", "tls.client.keyPassword"})

_AUTH = {"": ClientAuth.NONE, "want": ClientAuth.OPTIONAL, "need": ClientAuth.REQUIRE} | {
    str(each): each for each in ClientAuth
}


class HandshakeSettings(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How a server is reached, and how it reaches other servers. Read at the start."""

    tls_server_mode: str = msgspec.field(name="tls.server.mode", default="permissive")
    tls_server_cert_path: str = msgspec.field(name="tls.server.certPath", default="")
    tls_server_key_path: str = msgspec.field(name="tls.server.keyPath", default="")
    tls_server_key_password: str = msgspec.field(name="tls.server.keyPassword", default="")
    tls_server_need_client_auth: str = msgspec.field(
        name="tls.server.need.client.auth", default="none"
    )
    tls_server_trust_cert_path: str = msgspec.field(name="tls.server.trustCertPath", default="")
    tls_test_mode_enable: bool = msgspec.field(name="tls.test.mode.enable", default=True)
    """Whether a permissive server without a certificate uses a self-signed one."""
    tls_server_self_signed_path: str = msgspec.field(name="tls.server.selfSignedPath", default="")
    """Ours: the file to keep that one in; by default it is in the data directory."""

    tls_enable: bool = msgspec.field(name="tls.enable", default=False)
    """Whether it connects to other servers with TLS, which for a broker are name servers."""
    tls_client_auth_server: bool = msgspec.field(name="tls.client.authServer", default=False)
    tls_client_trust_cert_path: str = msgspec.field(name="tls.client.trustCertPath", default="")
    tls_client_cert_path: str = msgspec.field(name="tls.client.certPath", default="")
    tls_client_key_path: str = msgspec.field(name="tls.client.keyPath", default="")
    tls_client_key_password: str = msgspec.field(name="tls.client.keyPassword", default="")

    ha_proxy_addresses: str = ""
    """Load balancers that send a PROXY header; Java accepts one from any peer."""

    def server_tls(self) -> ServerTls | None:
        """Return the server's TLS settings; None without a certificate, or if TLS is disabled.

        Raises `InvalidInput` for a combination that cannot work.
        """
        try:
            mode = TlsMode(self.tls_server_mode.lower())
        except ValueError as error:
            known = ", ".join(TlsMode)
            raise InvalidInput(
                f"tls.server.mode must be one of {known}, not {self.tls_server_mode[:40]!r}"
            ) from error
        auth = _AUTH.get(self.tls_server_need_client_auth.lower())
        if auth is None:  # Java would silently require no certificate
            text = self.tls_server_need_client_auth[:40]
            raise InvalidInput(
                f"tls.server.need.client.auth must be one of {', '.join(ClientAuth)}, not {text!r}"
            )
        if mode is TlsMode.DISABLED or (
            mode is TlsMode.PERMISSIVE and not self.tls_server_cert_path
        ):
            return None
        return ServerTls(
            mode=mode,
            cert=self.tls_server_cert_path,
            key=self.tls_server_key_path,
            key_password=self.tls_server_key_password,
            client_auth=auth,
            trust=self.tls_server_trust_cert_path,
        )

    def client_tls(self) -> Tls | None:
        """Return the TLS settings for other servers; as in Java host names are not verified."""
        if not self.tls_enable:
            return None
        return Tls(
            ca=self.tls_client_trust_cert_path,
            verify=self.tls_client_auth_server,
            check_hostname=False,
            cert=self.tls_client_cert_path,
            key=self.tls_client_key_path,
            key_password=self.tls_client_key_password,
        )

    @property
    def self_signs(self) -> bool:
        """Whether a self-signed certificate stands for one that is not set."""
        permissive = self.tls_server_mode.lower() == TlsMode.PERMISSIVE
        return permissive and not self.tls_server_cert_path and self.tls_test_mode_enable

    def handshake(self, limits: Limits, data: Path | None) -> Handshake | None:
        """Return the handshake of a server's new connections, on its loop; None if none is needed.

        `data` is where the server keeps files. Raises `InvalidInput` for unusable settings or
        certificates.
        """
        tls: ServerTls | SelfSigned | None = self.server_tls()
        if self.self_signs:
            named = self.tls_server_self_signed_path
            kept = None if data is None else data / FILE_NAME
            tls = SelfSigned(Path(named) if named else kept)
        balancers = parse_networks(self.ha_proxy_addresses)
        if tls is None and not balancers:
            return None
        return Handshake(tls, balancers, limits)
