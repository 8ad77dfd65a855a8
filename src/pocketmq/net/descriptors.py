"""File descriptors: how many a process may have, and how many of them are for connections.

Whoever connects must not be able to take the last ones: a store has to open files, too.
"""

import resource
from contextlib import suppress

_RESERVED = 64


def raise_descriptor_limit() -> None:
    """Let this process have as many as the system allows it, as a JVM does."""
    with suppress(OSError, ValueError):  # macOS knows limits that it does not grant
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def for_connections(wanted: int) -> int:
    """Give how many connections a server may have: `wanted`, or what leaves some for files."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return wanted
    return min(wanted, max(soft // 2, soft - _RESERVED))
