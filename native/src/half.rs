//! What a usual commit makes of its half message; see the pure `usual_commit`.

use memchr::memmem;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::pulled::plain_record;
use crate::python::pure;
use crate::tags::tags_code;
use crate::wire::{be32, checksum, slice_at, BODY_AT, MAGIC_V1, SECTOR};

const HALF_TOPIC: &str = "RMQ_SYS_TRANS_HALF_TOPIC";
const TRANSACTION: u32 = 0x0C;
const COMMITTED: u32 = 0x08;
const LONGEST_TOPIC: usize = 127;
/// Digits of a queue's id that always fit into 32 bits.
const QUEUE_DIGITS: usize = 9;

/// A message that a half message becomes, packed without its place.
pub struct Ending<'a> {
    /// The topic it was sent to.
    pub topic: &'a str,
    /// The queue it was sent to.
    pub queue_id: u32,
    /// The hash of its tag.
    pub tag: i32,
    /// The record; offset, position, store time and store host are zero.
    pub record: Vec<u8>,
}

/// Return the last value of a property that is not empty.
fn property<'a>(text: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    text.split(|byte| *byte == 2)
        .rev()
        .filter_map(|piece| piece.strip_prefix(name)?.strip_prefix(b"\x01"))
        .find(|value| !value.is_empty())
}

/// Return where a half message belongs, and its properties without that.
fn place(text: &[u8]) -> Option<(&str, u32, &[u8])> {
    let end = text.strip_suffix(b"\x02")?;
    let at = memmem::rfind(end, b"\x02REAL_QID\x01")?;
    let (before, digits) = (end.get(..at)?, end.get(at + 10..)?);
    let usual = digits.len() <= QUEUE_DIGITS && digits.iter().all(u8::is_ascii_digit);
    if !usual || (digits.len() > 1 && digits.first() == Some(&b'0')) {
        return None;
    }
    let queue_id = std::str::from_utf8(digits).ok()?.parse().ok()?;
    let at = memmem::rfind(before, b"\x02REAL_TOPIC\x01")?;
    let topic = std::str::from_utf8(before.get(at + 12..)?).ok()?;
    let simple = topic.bytes().all(|byte| (0x20..0x7F).contains(&byte));
    if topic.is_empty() || topic.len() > LONGEST_TOPIC || topic == HALF_TOPIC || !simple {
        return None;
    }
    Some((topic, queue_id, text.get(..=at)?))
}

/// Return what a group's commit makes of a half message; `None` if it is not a usual one.
pub fn commit<'a>(half: &'a [u8], group: &[u8]) -> Option<Ending<'a>> {
    let found = plain_record(half, 0)?;
    let text = half.get(found.text_at..)?;
    if found.size != half.len()
        || be32(half, 8)? != checksum(found.body)
        || text.len() > SECTOR
        || property(text, b"PGROUP")? != group
        || property(text, b"CHECK_IMMUNITY_TIME_IN_SECONDS").is_some()
    {
        return None;
    }
    let (topic, queue_id, rest) = place(text)?;
    let size = BODY_AT + found.body.len() + 1 + topic.len() + 2 + rest.len();
    let mut record = Vec::with_capacity(size);
    record.extend_from_slice(&u32::try_from(size).ok()?.to_be_bytes());
    record.extend_from_slice(&MAGIC_V1.to_be_bytes());
    record.extend_from_slice(slice_at(half, 8, 4)?); // the checksum
    record.extend_from_slice(&queue_id.to_be_bytes());
    record.extend_from_slice(slice_at(half, 16, 4)?); // the application's flag
    record.extend_from_slice(&[0; 16]);
    let sys_flag = found.sys_flag & !TRANSACTION | COMMITTED;
    record.extend_from_slice(&sys_flag.to_be_bytes());
    record.extend_from_slice(slice_at(half, 40, 16)?); // born when and where
    record.extend_from_slice(&[0; 16]);
    record.extend_from_slice(slice_at(half, 72, 4)?); // how often it was delivered
    record.extend_from_slice(slice_at(half, 28, 8)?); // where the half message lies
    record.extend_from_slice(slice_at(half, BODY_AT - 4, 4)?);
    record.extend_from_slice(found.body);
    record.push(u8::try_from(topic.len()).ok()?);
    record.extend_from_slice(topic.as_bytes());
    record.extend_from_slice(&u16::try_from(rest.len()).ok()?.to_be_bytes());
    record.extend_from_slice(rest);
    Some(Ending {
        topic,
        queue_id,
        tag: tags_code(rest),
        record,
    })
}

/// Return topic, queue, tag and record of a usual commit.
#[pyfunction]
pub fn usual_commit<'py>(
    half: &Bound<'py, PyBytes>,
    group: &Bound<'py, PyBytes>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = half.py();
    let Some(ending) = commit(half.as_bytes(), group.as_bytes()) else {
        let made = pure(py, "usual_commit")?.call1((half, group))?;
        return Ok((!made.is_none()).then_some(made));
    };
    let made = (
        PyString::new(py, ending.topic),
        ending.queue_id,
        ending.tag,
        PyBytes::new(py, &ending.record),
    );
    Ok(Some(made.into_pyobject(py)?.into_any()))
}
