"""Hypothesis strategies for stored messages."""

from hypothesis import strategies as st

from pocketmq.protocol.batch import BatchEntry
from pocketmq.protocol.records import Record

int32s = st.integers(-(2**31), 2**31 - 1)
int64s = st.integers(-(2**63), 2**63 - 1)
hosts = st.binary(min_size=8, max_size=8) | st.binary(min_size=20, max_size=20)
bodies = st.binary(max_size=200)
topics = st.binary(max_size=20) | st.integers(120, 300).map(lambda size: b"t" * size)
property_texts = st.binary(max_size=60)


@st.composite
def records(draw: st.DrawFn) -> Record:
    born_host, store_host = draw(hosts), draw(hosts)
    host_bits = (0x10 if len(born_host) == 20 else 0) | (0x20 if len(store_host) == 20 else 0)
    return Record(
        topic=draw(topics),
        body=draw(bodies),
        property_bytes=draw(property_texts),
        queue_id=draw(int32s),
        flag=draw(int32s),
        sys_flag=draw(int32s) & ~0x30 | host_bits,
        born_timestamp_ms=draw(int64s),
        born_host=born_host,
        reconsume_times=draw(int32s),
        prepared_transaction_offset=draw(int64s),
        queue_offset=draw(int64s),
        commit_log_offset=draw(st.integers(0, 2**62)),
        store_timestamp_ms=draw(int64s),
        store_host=store_host,
        body_crc=draw(int32s),
    )


entries = st.builds(BatchEntry, bodies, property_texts, int32s)
