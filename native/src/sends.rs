//! Plain sends of a client: the requests of messages, one or those of an event-loop iteration.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};

use crate::posts;
use crate::python::{pure, Imported};
use crate::wire::{push_decimal, push_hex};

/// How every header of ours ends.
pub(crate) static TAIL: Imported = Imported::new("pocketmq.protocol.header_json", "REQUEST_TAIL");

/// What the frame of one plain message is made of; see the pure `plain_frame`.
struct Parts<'a> {
    head: &'a [u8],
    middle: &'a [u8],
    tail: &'a [u8],
    prefix: &'a str,
    number: i64,
    body: &'a [u8],
    born_ms: i64,
    opaque: i64,
}

impl Parts<'_> {
    /// Append the frame; return where the id stands in it. `None` if it is too large for a frame:
    /// then nothing useful was appended.
    fn write(&self, frame: &mut Vec<u8>, last: &[u8]) -> Option<(usize, usize)> {
        let begin = frame.len();
        let most = self.head.len() + self.middle.len() + self.tail.len() + self.prefix.len();
        frame.reserve(most + last.len() + self.body.len() + 160);
        frame.extend_from_slice(&[0; 8]);
        frame.extend_from_slice(self.head);
        frame.extend_from_slice(b"\",\"g\":\"");
        push_decimal(frame, self.born_ms);
        frame.extend_from_slice(b"\",\"h\":\"0\",\"i\":\"UNIQ_KEY\\u0001");
        let id_at = frame.len();
        frame.extend_from_slice(self.prefix.as_bytes());
        push_hex(frame, &((self.number & 0xFFFF) as u16).to_be_bytes());
        let id_end = frame.len();
        frame.extend_from_slice(self.tail);
        frame.extend_from_slice(b"\",\"j\":\"0");
        frame.extend_from_slice(self.middle);
        frame.extend_from_slice(b"0,\"language\":\"PYTHON\",\"opaque\":");
        push_decimal(frame, self.opaque);
        frame.extend_from_slice(last);
        let header = frame.len() - begin - 8;
        let length = u32::try_from(header + 4 + self.body.len()).ok()?;
        let header = u32::try_from(header).ok()?;
        frame.extend_from_slice(self.body);
        frame[begin..begin + 4].copy_from_slice(&length.to_be_bytes());
        frame[begin + 4..begin + 8].copy_from_slice(&header.to_be_bytes());
        Some((id_at, id_end))
    }
}

/// Return the whole frame of a plain message.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub fn plain_frame<'py>(
    py: Python<'py>,
    head: &[u8],
    middle: &[u8],
    tail: &[u8],
    prefix: &str,
    number: i64,
    body: &[u8],
    born_ms: i64,
    opaque: i64,
) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyString>)> {
    let last = TAIL.get(py)?.extract::<&[u8]>()?;
    let mut frame = Vec::new();
    let parts = Parts {
        head,
        middle,
        tail,
        prefix,
        number,
        body,
        born_ms,
        opaque,
    };
    let Some((id_at, id_end)) = parts.write(&mut frame, last) else {
        let made = pure(py, "plain_frame")?
            .call1((head, middle, tail, prefix, number, body, born_ms, opaque))?;
        return made.extract();
    };
    let unique_id = PyString::new(py, &String::from_utf8_lossy(&frame[id_at..id_end]));
    Ok((PyBytes::new(py, &frame), unique_id))
}

/// Return the frames of messages that were posted, one after another; see the pure `plain_frames`.
#[pyfunction]
pub fn plain_frames<'py>(posted: &Bound<'py, PyList>) -> PyResult<Bound<'py, PyBytes>> {
    let py = posted.py();
    let last = TAIL.get(py)?.extract::<&[u8]>()?;
    let mut frames = Vec::new();
    for each in posted {
        let each = each.cast_into::<PyTuple>()?;
        if !write_posted(&each, &mut frames, last)? {
            return Ok(pure(py, "plain_frames")?
                .call1((posted,))?
                .cast_into::<PyBytes>()?);
        }
    }
    Ok(PyBytes::new(py, &frames))
}

fn write_posted(posted: &Bound<'_, PyTuple>, frames: &mut Vec<u8>, last: &[u8]) -> PyResult<bool> {
    let py = posted.py();
    let template = posted.get_item(posts::TEMPLATE)?;
    let head = template.getattr(intern!(py, "plain"))?;
    let middle = template.getattr(intern!(py, "middle"))?;
    let tail = posted.get_item(posts::TAIL)?;
    let prefix = posted.get_item(posts::PREFIX)?;
    let body = posted
        .get_item(posts::MESSAGE)?
        .getattr(intern!(py, "body"))?;
    let prefix = prefix.cast::<PyString>()?.to_cow()?;
    let parts = Parts {
        head: head.cast::<PyBytes>()?.as_bytes(),
        middle: middle.cast::<PyBytes>()?.as_bytes(),
        tail: tail.cast::<PyBytes>()?.as_bytes(),
        prefix: &prefix,
        number: posted.get_item(posts::NUMBER)?.extract()?,
        body: body.cast::<PyBytes>()?.as_bytes(),
        born_ms: posted.get_item(posts::BORN)?.extract()?,
        opaque: posted.get_item(posts::OPAQUE)?.extract()?,
    };
    Ok(parts.write(frames, last).is_some())
}
