"""Limits: what one connection or server may use before back-pressure, or before it is cut off.

Also the process's limit of file descriptors. Connections must not take the last ones: a store has
to open files, too.
"""

import msgspec

from pocketmq.host import open_files_limit
from pocketmq.protocol.frame import FRAME_LIMIT

_RESERVED = 64


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds on what a peer can make this side hold, and on how long it may take."""

    frame: int = FRAME_LIMIT
    """A longer frame closes the connection, as in Java."""

    connections: int = 10_000
    """A server closes further connections at once; fewer if the process may not open that many
    files."""

    idle: float = 120.0
    """Seconds without a byte in either direction until the connection is closed, as in Java."""

    batch: int = 64
    """Requests of one connection handed over in one event-loop iteration; the rest waits."""

    slice: float = 0.02
    """Seconds a batch should take; after one that took longer, the next is half as large."""

    write_high: int = 4 * 1024 * 1024
    """With more unsent bytes than this, a server takes no more work from that client."""

    write_low: int = 1024 * 1024
    """Work resumes once unsent bytes fall below this."""

    request_high: int = 256 * 1024
    """With more unsent bytes than this, a client holds further requests back: one that times out
    before it was handed to the socket is certainly not carried out."""

    request_low: int = 64 * 1024
    """Held requests are sent once unsent bytes fall below this."""

    write_max: int = 256 * 1024 * 1024
    """A client of a server with more unsent bytes than this is cut off."""

    write_stall: float = 60.0
    """Seconds a peer may read nothing of its unsent answers until it is cut off."""

    linger: float = 2.0
    """Seconds a closed connection waits, without progress, for its last bytes to be taken."""

    connect: float = 3.0
    """Seconds to wait for a connection to be made."""

    handshake: float = 10.0
    """Seconds a peer may take for a PROXY header, and for the TLS handshake."""

    silence: float = 1.0
    """A request that timed out after at least this long, without a byte of any kind from the
    peer meanwhile, makes a dialer close the connection."""

    memory: int = 128 * 1024 * 1024
    """Bytes a server holds for all its peers together: unfinished frames, requests that wait and
    unsent answers. Enough for 24 clients that each have `write_high` bytes unsent, before there is
    back-pressure; see `budget`."""

    frame_stall: float = 30.0
    """Seconds in which at least 64 KiB of an unfinished frame have to come, or its end."""

    backlog: int = 1024
    """Connections the kernel holds until they are accepted."""


def for_connections(wanted: int) -> int:
    """Return the number of connections a server may have: `wanted`, or fewer to leave files."""
    files = open_files_limit()
    return wanted if files is None else min(wanted, max(files // 2, files - _RESERVED))
