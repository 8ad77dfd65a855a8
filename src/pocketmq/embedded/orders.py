"""What a cluster tells its broker processes and what they report: one JSON value a line."""

import msgspec

from pocketmq.embedded.server_logging import LogSettings


class BrokerOrder(msgspec.Struct, frozen=True, kw_only=True):
    """Run this broker. `data` None keeps everything in memory."""

    properties: dict[str, str]  # RocketMQ's keys, see `pocketmq.broker.config`
    given: list[str] = []  # keys that count before what was changed while the broker ran
    data: str | None
    nameservers: list[str]
    log: LogSettings


class BrokerReady(msgspec.Struct, frozen=True, tag="ready", tag_field="report"):
    """The broker serves at this address and has told the name servers."""

    address: str


class BrokerRefused(msgspec.Struct, frozen=True, tag="refused", tag_field="report"):
    """The broker cannot run as ordered; the process ends."""

    reason: str


Report = BrokerReady | BrokerRefused


def write_line(value: BrokerOrder | Report) -> bytes:
    """Encode a value with the end of its line."""
    return msgspec.json.encode(value) + b"\n"


def read_order(line: bytes) -> BrokerOrder:
    """Decode what the parent said."""
    return msgspec.json.decode(line, type=BrokerOrder)


def read_report(line: bytes) -> Report:
    """Decode what a child said."""
    report: Report = msgspec.json.decode(line, type=Report)
    return report
