//! Messages in the body of a pull reply.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt};

use crate::python::Imported;
use crate::wire::{be16, be32, be64s, checksum, slice_at, BODY_AT, LARGEST_TEXT, MAGIC_V1};

pub(crate) static RECEIVED_MESSAGE: Imported =
    Imported::new("pocketmq.protocol.received", "ReceivedMessage");

/// System flags: hosts of 16 bytes, or a batch inside that is to be unwrapped.
const NOT_PLAIN: u32 = 0x10 | 0x20 | 0x40 | 0x80;
const COMPRESSED: u32 = 1;
const KEPT_SLICE: usize = 1024;

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

/// Return the body if it is kept with its message; `None` of Python for others.
pub(crate) fn kept_body<'py>(py: Python<'py>, found: &Plain<'_>) -> Bound<'py, PyAny> {
    if found.body.len() > KEPT_SLICE || found.sys_flag & COMPRESSED != 0 {
        py.None().into_bound(py)
    } else {
        PyBytes::new(py, found.body).into_any()
    }
}

/// A number of Python that is made again only when it changes: most messages are of one size.
struct LastNumber<'py> {
    value: usize,
    made: Bound<'py, PyInt>,
}

impl<'py> LastNumber<'py> {
    fn new(py: Python<'py>) -> PyResult<Self> {
        Ok(LastNumber {
            value: 0,
            made: 0usize.into_pyobject(py)?,
        })
    }

    fn of(&mut self, value: usize) -> PyResult<&Bound<'py, PyInt>> {
        if value != self.value {
            self.made = value.into_pyobject(self.made.py())?;
            self.value = value;
        }
        Ok(&self.made)
    }
}

/// Return the messages before the first record that is damaged or special, and its position.
#[pyfunction]
pub fn plain_messages<'py>(
    data: &Bound<'py, PyBytes>,
    delivery: &Bound<'py, PyAny>,
) -> PyResult<(Vec<Bound<'py, PyAny>>, usize)> {
    let py = data.py();
    let class = RECEIVED_MESSAGE.get(py)?;
    let delta = delivery.getattr(intern!(py, "offset_delta"))?;
    let small_delta = delta.extract::<i64>().ok();
    let (mut sizes, mut body_sizes) = (LastNumber::new(py)?, LastNumber::new(py)?);
    let bytes = data.as_bytes();
    let mut messages = Vec::new();
    let mut position = 0;
    while let Some(found) = plain_record(bytes, position) {
        let kept = kept_body(py, &found);
        let offset = small_delta.and_then(|delta| found.queue_offset.checked_add(delta));
        let offset = match offset {
            Some(offset) => offset.into_pyobject(py)?.into_any(),
            None => delta.add(found.queue_offset)?, // beyond 64 bits, as Python has it
        };
        messages.push(class.call1((
            data,
            position,
            offset,
            sizes.of(found.size)?,
            body_sizes.of(found.body.len())?,
            found.text_at,
            delivery,
            kept,
        ))?);
        position += found.size;
    }
    Ok((messages, position))
}
