"""Why a connection ended or could not be made, in words that an operator would search for."""

import errno
import os
import socket
import ssl
from typing import TypeVar

E = TypeVar("E", bound=BaseException)

_REASONS = {
    errno.ECONNREFUSED: "connection refused; no server listens there",
    errno.ECONNRESET: "the peer reset the connection",
    errno.EPIPE: "the peer had closed the connection",
    errno.EADDRINUSE: "the port is in use",
    errno.EADDRNOTAVAIL: "this machine has no such address",
    errno.EACCES: "permission denied; ports below 1024 need a privilege",
    errno.EMFILE: "this process has too many open files",
}


def reason_of(error: Exception) -> str:
    """Return what went wrong, without the address and errno that the caller has already."""
    if isinstance(error, UnicodeError):
        return "the host name is invalid"
    if isinstance(error, socket.gaierror):
        return f"the host name does not resolve: {error.strerror}"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate verification failed: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed: {error.reason or error}"
    number = error.errno if isinstance(error, OSError) else None
    if number is None and isinstance(error, ConnectionResetError):  # asyncio's way to say so
        return (
            "the peer closed the connection during the TLS handshake; does it speak TLS, or need a "
            "client certificate?"
        )
    if number is None:
        return str(error) or type(error).__name__
    return _REASONS.get(number) or os.strerror(number)


def untraced(error: E) -> E:
    """Drop the tracebacks of an error and of what led to it.

    For errors that are kept: a traceback holds every frame it passed, and so would keep the
    connection that keeps the error.
    """
    waiting: list[BaseException | None] = [error]
    seen: set[int] = set()
    while waiting:
        each = waiting.pop()
        if each is not None and id(each) not in seen:
            seen.add(id(each))
            each.__traceback__ = None
            waiting += [each.__cause__, each.__context__]
    return error
