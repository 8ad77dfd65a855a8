"""The timer wheel of a 5.x broker: its figures, and its checkpoint, which is binary."""

import struct

from pocketmq.errors import BodyMalformed
from pocketmq.model.data_version import DataVersion
from pocketmq.model.value import WireValue
from pocketmq.protocol.forms import Form


class TimerMetric(WireValue, frozen=True, kw_only=True):
    """How many messages of a topic wait, as counted at a time in milliseconds."""

    count: int = 0
    time_stamp: int = 0


class TimerMetrics(WireValue, frozen=True, kw_only=True):
    """The waiting messages by topic (Java: TimerMetricsSerializeWrapper)."""

    timing_count: dict[str, TimerMetric] = {}
    data_version: DataVersion = DataVersion()


class TimerCheckpoint(WireValue, frozen=True, kw_only=True):
    """How far a broker's timer wheel has read and flushed."""

    last_read_time_ms: int = 0
    last_timer_log_flush_pos: int = 0
    last_timer_queue_offset: int = 0
    master_timer_queue_offset: int = 0
    data_version: DataVersion = DataVersion()


_POSITIONS = struct.Struct(">4q")
_VERSION = struct.Struct(">3q")


def decode_timer_checkpoint(data: bytes) -> TimerCheckpoint:
    """Read a checkpoint; early 5.x releases end before the version. Raises `BodyMalformed`."""
    if len(data) not in (_POSITIONS.size, _POSITIONS.size + _VERSION.size):
        raise BodyMalformed("TimerCheckpoint", f"it has {len(data)} bytes, not 32 or 56")
    read_time, flushed, queue_offset, master_offset = _POSITIONS.unpack_from(data)
    version = DataVersion()
    if len(data) > _POSITIONS.size:
        state, timestamp, counter = _VERSION.unpack_from(data, _POSITIONS.size)
        version = DataVersion(state_version=state, timestamp=timestamp, counter=counter)
    return TimerCheckpoint(
        last_read_time_ms=read_time,
        last_timer_log_flush_pos=flushed,
        last_timer_queue_offset=queue_offset,
        master_timer_queue_offset=master_offset,
        data_version=version,
    )


def encode_timer_checkpoint(checkpoint: TimerCheckpoint) -> bytes:
    """Write a checkpoint with its version."""
    version = checkpoint.data_version
    return _POSITIONS.pack(
        checkpoint.last_read_time_ms,
        checkpoint.last_timer_log_flush_pos,
        checkpoint.last_timer_queue_offset,
        checkpoint.master_timer_queue_offset,
    ) + _VERSION.pack(version.state_version, version.timestamp, version.counter)


TIMER_CHECKPOINT: Form[TimerCheckpoint] = Form(
    "timer checkpoint", encode_timer_checkpoint, decode_timer_checkpoint
)
