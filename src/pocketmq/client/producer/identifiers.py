"""The source of a producer's message ids, in Java's form."""

import ipaddress

from pocketmq.client.clock import process_id, utc_offset_ms
from pocketmq.client.session import Session
from pocketmq.model.java_strings import java_hash
from pocketmq.protocol.message_ids import UniqueIds


def unique_ids(session: Session, group: str) -> UniqueIds:
    """Give a source whose ids no other producer's repeat.

    What Java fills with a hash of the process (of its class loader) we draw for each producer, so
    that several in one process need no common counter.
    """
    drawn = session.random.getrandbits(32) ^ java_hash(f"{session.client_id} {group}") & 0xFFFFFFFF
    return UniqueIds(_ip(session.client_id), process_id(), drawn, utc_offset_ms=utc_offset_ms())


def _ip(client_id: str) -> bytes:
    """Give the address in a client id; what a user wrote there need not be one."""
    text = client_id.partition("@")[0].strip("[]").partition("%")[0]
    try:
        return ipaddress.ip_address(text).packed
    except ValueError:
        return (java_hash(client_id) & 0xFFFF_FFFF).to_bytes(4, "big")
