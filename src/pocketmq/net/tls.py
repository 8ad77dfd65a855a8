"""TLS settings of servers and clients, and the SSL contexts made from them.

Owns contexts and the files behind them. The context is looked up at every handshake, so that
certificates that were replaced are used from the next connection on, without a restart.
"""

import logging
import os
import ssl
from collections.abc import Callable
from enum import StrEnum
from typing import Any

import msgspec

from pocketmq.errors import InvalidInput
from pocketmq.model.secrets import HIDDEN

logger = logging.getLogger("pocketmq.net")

_CHECK_PERIOD = 0.5  # seconds between two checks of the files, as in Java


class TlsMode(StrEnum):
    """What a server expects of clients (Java: tls.server.mode)."""

    DISABLED = "disabled"
    PERMISSIVE = "permissive"
    """Either TLS or plain: the first byte decides."""
    ENFORCING = "enforcing"


class ClientAuth(StrEnum):
    """Whether a server asks for clients' certificates (Java: tls.server.need.client.auth)."""

    NONE = "none"
    OPTIONAL = "optional"
    REQUIRE = "require"


class _Files(msgspec.Struct, frozen=True, kw_only=True):
    cert: str = ""
    """PEM file with the certificate and its chain."""
    key: str = ""
    """PEM file with its key; empty if `cert` holds both."""
    key_password: str = ""
    """Password of the key, if it is encrypted."""

    def __repr__(self) -> str:
        shown = (
            f"{name}={HIDDEN if name == 'key_password' and value else repr(value)}"
            for name, value in self._pairs()
        )
        return f"{type(self).__name__}({', '.join(shown)})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [(n, HIDDEN if n == "key_password" and v else v) for n, v in self._pairs()]

    def _pairs(self) -> list[tuple[str, Any]]:
        return [(name, getattr(self, name)) for name in self.__struct_fields__]

    def _show_certificate(self, context: ssl.SSLContext) -> None:
        # A function, so that OpenSSL never asks at the terminal for a password that is missing.
        context.load_cert_chain(self.cert, self.key or None, lambda: self.key_password)


class ServerTls(_Files, frozen=True, kw_only=True):
    """TLS settings of a server. Raises `InvalidInput` for a combination that cannot work."""

    mode: TlsMode = TlsMode.PERMISSIVE
    client_auth: ClientAuth = ClientAuth.NONE
    trust: str = ""
    """PEM file with the CA certificates that sign clients' certificates."""

    def __post_init__(self) -> None:
        if self.mode is not TlsMode.DISABLED and not self.cert:
            raise InvalidInput("TLS needs a certificate: set its file and the file of its key")
        if self.client_auth is not ClientAuth.NONE and not self.trust:
            raise InvalidInput("client certificates need CA certificates to verify them: set trust")

    @property
    def files(self) -> tuple[str, ...]:
        """The files it is made from."""
        return tuple(filter(None, (self.cert, self.key, self.trust)))

    def context(self) -> ssl.SSLContext:
        """Read the files. Raises OSError (also for TLS's own reasons)."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._show_certificate(context)
        if self.client_auth is not ClientAuth.NONE:
            context.load_verify_locations(self.trust)
            required = self.client_auth is ClientAuth.REQUIRE
            context.verify_mode = ssl.CERT_REQUIRED if required else ssl.CERT_OPTIONAL
        return context


class Tls(_Files, frozen=True, kw_only=True):
    """TLS settings of a client; its own certificate is for servers that require one.

    Java's clients do not verify servers by default; these do.
    """

    ca: str = ""
    """PEM file with the CA certificates that sign servers' certificates; empty: the system's."""
    verify: bool = True
    """Whether to verify servers' certificates. Without it a man in the middle can read along."""
    check_hostname: bool = True
    """Whether certificates must name the host connected to, which is mostly an IP address."""
    server_name: str = ""
    """The name certificates must hold, if it is not the host connected to."""

    @property
    def files(self) -> tuple[str, ...]:
        """The files it is made from."""
        return tuple(filter(None, (self.cert, self.key, self.ca)))

    def context(self) -> ssl.SSLContext:
        """Read the files. Raises OSError (also for TLS's own reasons)."""
        context = ssl.create_default_context(cafile=self.ca or None)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.check_hostname = self.verify and self.check_hostname
        context.verify_mode = ssl.CERT_REQUIRED if self.verify else ssl.CERT_NONE
        if self.cert:
            self._show_certificate(context)
        return context


class Contexts:
    """The SSL context of one server or dialer, made again when its files change.

    Belongs to one event loop. Raises `InvalidInput` if the files are unusable at the start; later
    files that are unusable are ignored with a warning, and the old context stays in use.
    """

    def __init__(self, tls: ServerTls | Tls, clock: Callable[[], float]) -> None:
        self.tls = tls
        self._clock = clock
        self._seen = self._stamps()
        self._checked = clock()
        try:
            self._context = tls.context()
        except (OSError, ValueError) as error:
            raise InvalidInput(f"TLS cannot use {_named(tls.files)}: {_reason(error)}") from error

    def current(self) -> ssl.SSLContext:
        """Return the context for a new connection."""
        now = self._clock()
        if now - self._checked >= _CHECK_PERIOD:
            self._checked = now
            self._reload()
        return self._context

    def _reload(self) -> None:
        seen = self._stamps()
        if seen == self._seen:
            return
        self._seen = seen
        try:
            self._context = self.tls.context()
        except (OSError, ValueError) as error:
            files = _named(self.tls.files)
            logger.warning(
                "TLS certificates not reloaded: %s changed, but %s; keeping the old ones",
                files, _reason(error),
            )  # fmt: skip
        else:
            logger.info("TLS certificates reloaded from %s", _named(self.tls.files))

    def _stamps(self) -> list[tuple[int, int, int] | None]:
        return [_stamp(file) for file in self.tls.files]


def _stamp(file: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(file)  # noqa: PTH116 - a text from the settings
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _named(files: tuple[str, ...]) -> str:
    return ", ".join(files) or "the system's CA certificates"


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return f"it is not a matching certificate and key ({error.reason or error})"
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)
