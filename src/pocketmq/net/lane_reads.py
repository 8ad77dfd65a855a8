"""How much one read may bring a lane: other connections wait until all of it is carried out."""

LANE_READ = 32 * 1024
"""Bytes of one read: fewer than 256 of the smallest sends."""
_LARGEST = 128 * 1024
"""Bytes of one read at most, where the last one began with a large frame."""
_STEP = 16 * 1024


def next_read(data: bytes) -> int:
    """Return the bytes of the next read, by what the last one brought, from a frame's start on.

    After a large frame, such as a batch, another one of about that size is expected: two reads and
    an event-loop iteration between them would cost more than storing it. Small frames are again
    read a little at a time.
    """
    size = 4 + int.from_bytes(data[:4], "big")
    return LANE_READ if size < LANE_READ else min((size // _STEP + 1) * _STEP, _LARGEST)
