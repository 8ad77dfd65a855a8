//! From the body of SEND_BATCH_MESSAGE straight to stored records.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::python::{pure, Imported};
use crate::tags::{looks_torn, tags_code};
use crate::wire::{be32, be32s, checksum, slice_at, LARGEST_TEXT, MAGIC_V1, MAGIC_V2};

static PACKED_BATCH: Imported = Imported::new("pocketmq.protocol.batch_records", "PackedBatch");
static ARRAY: Imported = Imported::new("array", "array");

/// Bytes that an entry takes besides its body and its properties.
const ENTRY_OVERHEAD: usize = 22;
const HOST_BITS: i32 = 0x30;
const V4_SIZE: usize = 8;
const V6_SIZE: usize = 20;
const V1_TOPIC_LIMIT: usize = 127;

/// What the records of a batch have in common.
pub struct Mould {
    magic: u32,
    queue_id: i32,
    /// From the system flag up to the size of the body.
    common: Vec<u8>,
    /// The topic with its length before it.
    topic: Vec<u8>,
}

/// The fields of a `Record` that a batch takes over, and where and when it is stored.
pub struct Shared<'a> {
    /// The topic's name.
    pub topic: &'a [u8],
    /// The queue's number.
    pub queue_id: i32,
    /// The system flag; its bits for hosts follow the hosts.
    pub sys_flag: i32,
    /// When the batch was sent.
    pub born_timestamp_ms: i64,
    /// Who sent it, 8 bytes or 20.
    pub born_host: &'a [u8],
    /// When it is stored.
    pub store_timestamp_ms: i64,
    /// Who stores it, 8 bytes or 20.
    pub store_host: &'a [u8],
    /// How often consuming failed.
    pub reconsume_times: i32,
    /// Where the half message of a transaction is.
    pub prepared_transaction_offset: i64,
}

impl Mould {
    /// Make it; `None` if a host or the topic has a length that is not allowed.
    pub fn new(shared: &Shared<'_>) -> Option<Mould> {
        let flag = shared.sys_flag & !HOST_BITS | host_bit(shared.born_host, 0x10)?;
        let flag = flag | host_bit(shared.store_host, 0x20)?;
        let mut common = Vec::with_capacity(72);
        common.extend_from_slice(&flag.to_be_bytes());
        common.extend_from_slice(&shared.born_timestamp_ms.to_be_bytes());
        common.extend_from_slice(shared.born_host);
        common.extend_from_slice(&shared.store_timestamp_ms.to_be_bytes());
        common.extend_from_slice(shared.store_host);
        common.extend_from_slice(&shared.reconsume_times.to_be_bytes());
        common.extend_from_slice(&shared.prepared_transaction_offset.to_be_bytes());
        let (magic, mut topic) = match shared.topic.len() {
            size @ 0..=V1_TOPIC_LIMIT => (MAGIC_V1, vec![size as u8]),
            size @ ..=LARGEST_TEXT => (MAGIC_V2, (size as u16).to_be_bytes().to_vec()),
            _ => return None,
        };
        topic.extend_from_slice(shared.topic);
        let queue_id = shared.queue_id;
        Some(Mould {
            magic,
            queue_id,
            common,
            topic,
        })
    }
}

fn host_bit(host: &[u8], bit: i32) -> Option<i32> {
    match host.len() {
        V4_SIZE => Some(0),
        V6_SIZE => Some(bit),
        _ => None,
    }
}

/// Records of a batch back to back, and columns of numbers as the machine has them in memory.
#[derive(Default)]
pub struct Packed {
    /// The records.
    pub data: Vec<u8>,
    /// Where each begins in the log, 8 bytes each.
    pub positions: Vec<u8>,
    /// The size of each, 4 bytes each.
    pub sizes: Vec<u8>,
    /// The code of each one's tag, 8 bytes each.
    pub tags: Vec<u8>,
    /// Whether one of them looks like one that a crash cut short.
    pub looks_torn: bool,
}

/// Make records of a batch's entries; `None` if it cannot be read or a number grows too large.
pub fn pack_entries(
    body: &[u8],
    mould: &Mould,
    queue_offset: i64,
    commit_log_offset: i64,
) -> Option<Packed> {
    let mut packed = Packed::default();
    // Entries of usual sizes about double; what a peer sends is in memory already.
    packed.data.reserve(body.len().checked_mul(2)?);
    let (mut offset, mut position) = (queue_offset, commit_log_offset);
    let mut rest = body;
    while !rest.is_empty() {
        let entry = slice_at(rest, 0, be32(rest, 0)? as usize)?;
        let flag = be32s(entry, 12)?;
        let body_size = be32(entry, 16)?;
        let content = slice_at(entry, 20, body_size as usize)?;
        let text = entry.get(20 + content.len()..)?; // with its length before it
        let (length, properties) = text.split_first_chunk::<2>()?;
        let text_size = usize::from(u16::from_be_bytes(*length));
        if text_size != properties.len() || text_size > LARGEST_TEXT {
            return None;
        }
        let growth = 36 + mould.common.len() + 4 + mould.topic.len() + 2 - ENTRY_OVERHEAD;
        let size = i32::try_from(entry.len().checked_add(growth)?).ok()?;
        let data = &mut packed.data;
        data.extend_from_slice(&size.to_be_bytes());
        data.extend_from_slice(&mould.magic.to_be_bytes());
        data.extend_from_slice(&checksum(content).to_be_bytes());
        data.extend_from_slice(&mould.queue_id.to_be_bytes());
        data.extend_from_slice(&flag.to_be_bytes());
        data.extend_from_slice(&offset.to_be_bytes());
        data.extend_from_slice(&position.to_be_bytes());
        data.extend_from_slice(&mould.common);
        data.extend_from_slice(&body_size.to_be_bytes());
        data.extend_from_slice(content);
        data.extend_from_slice(&mould.topic);
        data.extend_from_slice(text);
        packed.positions.extend_from_slice(&position.to_ne_bytes());
        packed.sizes.extend_from_slice(&size.to_ne_bytes());
        let tag = i64::from(tags_code(properties));
        packed.tags.extend_from_slice(&tag.to_ne_bytes());
        packed.looks_torn |= looks_torn(properties);
        offset = offset.checked_add(1)?;
        position = position.checked_add(i64::from(size))?;
        rest = rest.get(entry.len()..)?;
    }
    Some(packed)
}

/// The fields that are read from a `Record` of Python.
#[derive(FromPyObject)]
struct Like<'py> {
    topic: Bound<'py, PyBytes>,
    queue_id: i32,
    sys_flag: i32,
    born_timestamp_ms: i64,
    born_host: Bound<'py, PyBytes>,
    reconsume_times: i32,
    prepared_transaction_offset: i64,
}

/// Make records of a batch's messages, from a queue offset and a position of the log on.
#[pyfunction]
#[pyo3(signature = (body, like, queue_offset, commit_log_offset, *, store_timestamp_ms, store_host))]
pub fn pack_batch<'py>(
    body: &Bound<'py, PyAny>,
    like: &Bound<'py, PyAny>,
    queue_offset: &Bound<'py, PyAny>,
    commit_log_offset: &Bound<'py, PyAny>,
    store_timestamp_ms: &Bound<'py, PyAny>,
    store_host: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = body.py();
    let native = || {
        let like = like.extract::<Like<'_>>().ok()?;
        let mould = Mould::new(&Shared {
            topic: like.topic.as_bytes(),
            queue_id: like.queue_id,
            sys_flag: like.sys_flag,
            born_timestamp_ms: like.born_timestamp_ms,
            born_host: like.born_host.as_bytes(),
            store_timestamp_ms: store_timestamp_ms.extract().ok()?,
            store_host: store_host.cast::<PyBytes>().ok()?.as_bytes(),
            reconsume_times: like.reconsume_times,
            prepared_transaction_offset: like.prepared_transaction_offset,
        })?;
        let position: i64 = commit_log_offset.extract().ok()?;
        if position < 0 {
            return None;
        }
        let body = body.cast::<PyBytes>().ok()?.as_bytes();
        pack_entries(body, &mould, queue_offset.extract().ok()?, position)
    };
    let Some(packed) = native() else {
        let options = PyDict::new(py);
        options.set_item("store_timestamp_ms", store_timestamp_ms)?;
        options.set_item("store_host", store_host)?;
        let args = (body, like, queue_offset, commit_log_offset);
        return pure(py, "pack_batch")?.call(args, Some(&options));
    };
    let array = ARRAY.get(py)?;
    let column = |kind: &str, bytes: &[u8]| array.call1((kind, PyBytes::new(py, bytes)));
    PACKED_BATCH.get(py)?.call1((
        PyBytes::new(py, &packed.data),
        column("Q", &packed.positions)?,
        column("I", &packed.sizes)?,
        column("q", &packed.tags)?,
        packed.looks_torn,
    ))
}
