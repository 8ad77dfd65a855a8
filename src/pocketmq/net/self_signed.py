"""The certificate of a server that was given none: made when the first client wants TLS, and kept.

Apache's servers accept TLS with a self-signed certificate by default, and their clients verify
nothing by default. It protects against eavesdropping, not against a server that pretends to be this
one.

Nothing is made or imported for plain clients. The parts of a cluster share one file: the first that
needs a certificate makes it. It is renewed before it expires. Needs the extra `tls`.
"""

import asyncio
import ipaddress
import logging
import os
import socket
import ssl
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

logger = logging.getLogger("pocketmq.net")

FILE_NAME = "self-signed.pem"
MISSING = "pip install 'pocketmq[tls]', or set a certificate"
_NAME = "PocketMQ self-signed"
_VALID = timedelta(days=397)
_RENEWED = timedelta(days=30)
"""Time before its end at which a certificate is replaced."""


class SelfSigned:
    """A certificate and the context that shows it. Belongs to one event loop."""

    def __init__(self, file: Path | None, *protocols: str) -> None:
        """Keep it in a file, or in memory alone; `protocols` are those that TLS offers."""
        self._file = file
        self._protocols = list(protocols)
        self._context: ssl.SSLContext | None = None
        self._renew = datetime.min.replace(tzinfo=UTC)
        self._making = asyncio.Lock()
        self._reported = False

    async def context(self) -> ssl.SSLContext:
        """Return the context for a new connection. Raises OSError if there is no certificate."""
        if self._context is None or _now() >= self._renew:
            async with self._making:
                if self._context is None or _now() >= self._renew:
                    await self._load()
        assert self._context is not None
        return self._context

    async def _load(self) -> None:
        try:
            # A tenth of a second for the package alone: not on the loop.
            pem, end = await asyncio.to_thread(kept_or_made, self._file)
        except ImportError as error:
            if not self._reported:
                logger.warning("TLS clients are not served: there is no certificate; %s", MISSING)
            self._reported = True
            raise OSError("there is no certificate, and no package to make one") from error
        self._context = _context(pem, self._protocols)
        self._renew = end - _RENEWED
        kept = "in memory" if self._file is None else str(self._file)
        logger.info("TLS uses a self-signed certificate: stored=%s expires=%s", kept, end.date())


def kept_or_made(file: Path | None) -> tuple[bytes, datetime]:
    """Return key and certificate, PEM, and when it expires: the kept one if it is good, or new.

    Raises ImportError without the extra.
    """
    found = _read(file) if file is not None else None
    if found is not None:
        return found
    made = make()
    if file is not None:
        try:
            if not _keep(file, made[0]):  # another process was first
                return _read(file) or made
        except OSError as error:
            logger.warning(
                "cannot store the self-signed certificate: file=%s error=%r; keeping it in memory",
                file,
                error.strerror,
            )
    return made


def make() -> tuple[bytes, datetime]:
    """Return a new key with a certificate for it, PEM, and when it expires."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, _NAME)])
    hosts: list[x509.GeneralName] = [x509.DNSName("localhost")]
    with suppress(ValueError):  # a host name that is not one of DNS
        hosts.append(x509.DNSName(socket.gethostname()))
    hosts += [x509.IPAddress(ipaddress.ip_address(each)) for each in ("127.0.0.1", "::1")]
    now = _now()
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + _VALID)
        .add_extension(x509.SubjectAlternativeName(hosts), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain)
    return private + certificate.public_bytes(pem), certificate.not_valid_after_utc


def _read(file: Path) -> tuple[bytes, datetime] | None:
    """Return what is kept; None if there is nothing, or nothing that can be used for long."""
    from cryptography import x509

    try:
        pem = file.read_bytes()
    except OSError:
        return None
    try:
        end = x509.load_pem_x509_certificate(pem).not_valid_after_utc
        _context(pem, [])
    except (ValueError, OSError) as error:
        logger.warning("certificate unusable: file=%s error=%r; making a new one", file, str(error))
    else:
        if _now() < end - _RENEWED:
            return pem, end
    with suppress(FileNotFoundError):
        file.unlink()
    return None


def _keep(file: Path, pem: bytes) -> bool:
    """Write a file whole, for its owner alone; False if there is one. Raises OSError."""
    import secrets

    file.parent.mkdir(0o700, parents=True, exist_ok=True)
    part = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
        opened.write(pem)
    try:
        os.link(part, file)
    except FileExistsError:
        return False
    finally:
        part.unlink()
    return True


def _context(pem: bytes, protocols: list[str]) -> ssl.SSLContext:
    import tempfile  # slow to import, and most servers need none

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if protocols:
        context.set_alpn_protocols(protocols)
    with tempfile.TemporaryDirectory() as directory:  # readable by its owner alone
        file = Path(directory, FILE_NAME)
        file.write_bytes(pem)
        context.load_cert_chain(file)
    return context


def _now() -> datetime:
    return datetime.now(UTC)
