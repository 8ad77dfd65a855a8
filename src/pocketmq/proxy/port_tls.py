"""TLS of the proxy's port: HTTP/2 over a given certificate, or over one that is made for this run.

Apache's servers accept TLS with a self-signed certificate by default, and most of Apache's gRPC
clients use TLS by default and verify nothing. So there is always a certificate to show; it protects
from listeners, not from a server that pretends to be this one.
"""

import ssl
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from pocketmq.net.tls import ServerTls, TlsMode

_NAME = "PocketMQ self-signed"
_VALID = timedelta(days=3650)


class GivenTls(ServerTls, frozen=True, kw_only=True):
    """The TLS settings of a server, for HTTP/2."""

    def context(self) -> ssl.SSLContext:
        """Read the files. Raises OSError (also for TLS's own reasons)."""
        context = super().context()
        context.set_alpn_protocols(["h2"])
        return context


class SelfSignedTls(ServerTls, frozen=True, kw_only=True):
    """TLS or plain, with a certificate that is made when the first client wants one."""

    def __post_init__(self) -> None:
        """Need no certificate."""

    def context(self) -> ssl.SSLContext:
        """Return a context without files; see `certify`."""
        context = _NotCertified(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["h2"])
        return context


class _NotCertified(ssl.SSLContext):
    """A context that has no certificate yet.

    The package that makes one takes a tenth of a second to import, which plain clients need not
    wait for.
    """

    certified = False


def certify(context: ssl.SSLContext) -> None:
    """Make the certificate of a context that has none yet. Raises OSError."""
    if not isinstance(context, _NotCertified) or context.certified:
        return
    try:
        made = _self_signed()
    except ImportError as error:
        text = "there is no certificate, and no package `cryptography` to make one"
        raise OSError(text) from error
    with tempfile.TemporaryDirectory() as directory:  # readable by its owner alone
        file = Path(directory, "certificate.pem")
        file.write_bytes(made)
        context.load_cert_chain(file)
    context.certified = True


def port_tls(tls: ServerTls | None) -> ServerTls | None:
    """Return the TLS of a proxy's port for a server's settings; None if it is disabled.

    Without settings it is permissive, with a self-signed certificate.
    """
    if tls is None:
        return SelfSignedTls()
    if tls.mode is TlsMode.DISABLED:
        return None
    return GivenTls(**msgspec.structs.asdict(tls))


def _self_signed() -> bytes:
    """Return a new key and a certificate for it, PEM."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, _NAME)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + _VALID)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return private + certificate.public_bytes(pem)
