//! Messages in the body of a pull reply.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::python::pure;
use crate::received::{messages_at, Place};
use crate::wire::{be16, be32, be64s, checksum, slice_at, BODY_AT, LARGEST_TEXT, MAGIC_V1};

/// System flags: hosts of 16 bytes, or a batch inside that is to be unwrapped.
const NOT_PLAIN: u32 = 0x10 | 0x20 | 0x40 | 0x80;
/// Bytes of a record with a small body, to make a list of about the right length.
const USUAL_RECORD: usize = 256;

/// A record with a topic of up to 127 bytes, IPv4 hosts and no batch inside.
pub struct Plain<'a> {
    /// Bytes of the whole record.
    pub size: usize,
    /// Its number in its queue.
    pub queue_offset: i64,
    /// The body as stored.
    pub body: &'a [u8],
    /// Where its properties begin in the data.
    pub text_at: usize,
    /// RocketMQ's own bits.
    pub sys_flag: u32,
}

/// Measure the record at a position; `None` if it is damaged or special.
pub fn plain_record(data: &[u8], position: usize) -> Option<Plain<'_>> {
    let size = be32(data, position)? as usize;
    let record = slice_at(data, position, size)?;
    let sys_flag = be32(record, 36)?;
    if be32(record, 4)? != MAGIC_V1 || sys_flag & NOT_PLAIN != 0 {
        return None;
    }
    let body_size = be32(record, BODY_AT - 4)? as usize;
    let body = slice_at(record, BODY_AT, body_size)?;
    let topic_at = BODY_AT + body_size;
    let topic_size = usize::from(*record.get(topic_at)?);
    let text_at = topic_at + topic_size + 3;
    let text_size = usize::from(be16(record, text_at - 2)?);
    if text_at + text_size != size || topic_size > 127 || text_size > LARGEST_TEXT {
        return None;
    }
    let crc = be32(record, 8)?;
    if crc != 0 && checksum(body) != crc {
        return None;
    }
    Some(Plain {
        size,
        queue_offset: be64s(record, 20)?,
        body,
        text_at: position + text_at,
        sys_flag,
    })
}

impl Plain<'_> {
    /// Return its place; `None` if that takes more than 32 bits, or its offset more than 64.
    fn place(&self, position: usize, delta: Option<i64>) -> Option<Place> {
        Some(Place {
            queue_offset: self.queue_offset.checked_add(delta?)?,
            position: position.try_into().ok()?,
            store_size: self.size.try_into().ok()?,
            body_size: self.body.len().try_into().ok()?,
            text_at: self.text_at.try_into().ok()?,
        })
    }
}

/// Return the messages before the first record that is damaged or special, and its position.
#[pyfunction]
pub fn plain_messages<'py>(
    data: &Bound<'py, PyBytes>,
    delivery: &Bound<'py, PyAny>,
) -> PyResult<(Bound<'py, PyList>, usize)> {
    let py = data.py();
    let delta = delivery.getattr(intern!(py, "offset_delta"))?;
    let delta = delta.extract::<i64>().ok();
    let bytes = data.as_bytes();
    let mut places = Vec::with_capacity(bytes.len() / USUAL_RECORD);
    let mut position = 0;
    while let Some(found) = plain_record(bytes, position) {
        let Some(place) = found.place(position, delta) else {
            let made = pure(py, "plain_messages")?.call1((data, delivery))?;
            return made.extract();
        };
        places.push(place);
        position += found.size;
    }
    places.shrink_to_fit();
    Ok((messages_at(data, delivery, places)?, position))
}
