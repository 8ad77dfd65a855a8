"""TLS of the proxy's port: HTTP/2 over a given certificate, or over a self-signed one.

Apache's servers accept TLS with a self-signed certificate by default, and most of Apache's gRPC
clients use TLS by default and verify nothing. So there is always a certificate to show.
"""

import ssl
from pathlib import Path

import msgspec

from pocketmq.net.self_signed import SelfSigned
from pocketmq.net.tls import ServerTls, TlsMode

_HTTP2 = "h2"


class GivenTls(ServerTls, frozen=True, kw_only=True):
    """The TLS settings of a server, for HTTP/2."""

    def context(self) -> ssl.SSLContext:
        """Read the files. Raises OSError (also for TLS's own reasons)."""
        context = super().context()
        context.set_alpn_protocols([_HTTP2])
        return context


def port_tls(tls: ServerTls | None, kept: Path | None = None) -> ServerTls | SelfSigned | None:
    """Return the TLS of a proxy's port for a server's settings; None if it is disabled.

    Without settings it is permissive, with a self-signed certificate, which a file may keep.
    """
    if tls is None:
        return SelfSigned(kept, _HTTP2)
    if tls.mode is TlsMode.DISABLED:
        return None
    return GivenTls(**msgspec.structs.asdict(tls))
