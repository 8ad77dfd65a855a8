"""What the operating system's network errors mean, in words for people."""

import errno
import os
import socket

_REASONS = {
    errno.ECONNREFUSED: "connection refused; nobody listens there",
    errno.ECONNRESET: "the peer reset the connection",
    errno.EPIPE: "the peer had closed the connection",
    errno.EADDRINUSE: "the port is in use",
    errno.EADDRNOTAVAIL: "this machine has no such address",
    errno.EACCES: "not allowed; ports below 1024 need a privilege",
    errno.EMFILE: "this process has too many open files",
}


def reason_of(error: Exception) -> str:
    """Say what went wrong, without addresses and numbers the caller knows already."""
    if isinstance(error, UnicodeError):
        return "the host name is not a valid name"
    if isinstance(error, socket.gaierror):
        return f"the host name does not resolve: {error.strerror}"
    number = error.errno if isinstance(error, OSError) else None
    if number is None:
        return str(error) or type(error).__name__
    return _REASONS.get(number) or os.strerror(number)
