//! Plain sends of a client: the request of one message, and the response that says it is stored.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple};

use crate::python::Imported;
use crate::wire::{be32, push_decimal, push_hex};

static TAIL: Imported = Imported::new("pocketmq.client.producer.plain_frames", "TAIL");
static PURE: Imported = Imported::new("pocketmq.native", "pure");

/// Decimal digits that always fit into 64 bits.
const MOST_DIGITS: usize = 18;
const RESPONSE_FLAG: i64 = 1;
/// Bytes of a header that are read without counting its fields first.
const LONGEST: usize = 64 * 1024;

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
    let mut frame = Vec::with_capacity(
        head.len() + middle.len() + tail.len() + prefix.len() + last.len() + body.len() + 160,
    );
    frame.extend_from_slice(&[0; 8]);
    frame.extend_from_slice(head);
    frame.extend_from_slice(b"0\",\"g\":\"");
    push_decimal(&mut frame, born_ms);
    frame.extend_from_slice(b"\",\"h\":\"0\",\"i\":\"UNIQ_KEY\\u0001");
    let id_at = frame.len();
    frame.extend_from_slice(prefix.as_bytes());
    push_hex(&mut frame, &((number & 0xFFFF) as u16).to_be_bytes());
    let unique_id = PyString::new(py, &String::from_utf8_lossy(&frame[id_at..]));
    frame.extend_from_slice(tail);
    frame.extend_from_slice(b"\",\"j\":\"0");
    frame.extend_from_slice(middle);
    frame.extend_from_slice(b"0,\"language\":\"PYTHON\",\"opaque\":");
    push_decimal(&mut frame, opaque);
    frame.extend_from_slice(last);
    let header = frame.len() - 8;
    let sizes = (
        u32::try_from(header + 4 + body.len()),
        u32::try_from(header),
    );
    let (Ok(length), Ok(header)) = sizes else {
        let pure = PURE.get(py)?.get_item(intern!(py, "plain_frame"))?;
        let made = pure.call1((head, middle, tail, prefix, number, body, born_ms, opaque))?;
        return made.extract();
    };
    frame.extend_from_slice(body);
    frame[..4].copy_from_slice(&length.to_be_bytes());
    frame[4..8].copy_from_slice(&header.to_be_bytes());
    Ok((PyBytes::new(py, &frame), unique_id))
}

/// Text of JSON in the form that brokers write it: no white space, no escapes, no other letters.
struct Text<'a> {
    data: &'a [u8],
    at: usize,
}

impl<'a> Text<'a> {
    /// Step over one byte; `None` if there is another one.
    fn step(&mut self, byte: u8) -> Option<()> {
        if *self.data.get(self.at)? != byte {
            return None;
        }
        self.at += 1;
        Some(())
    }

    /// Read a string between quotes.
    fn string(&mut self) -> Option<&'a str> {
        self.step(b'"')?;
        let rest = self.data.get(self.at..)?;
        let size = memchr::memchr2(b'"', b'\\', rest)?;
        let (text, quote) = (rest.get(..size)?, rest.get(size)?);
        // All bytes, not the first that differs: this way many are compared at once.
        let simple = text
            .iter()
            .fold(true, |so_far, byte| so_far & (0x20..0x7F).contains(byte));
        if *quote != b'"' || !simple {
            return None;
        }
        self.at += size + 1;
        std::str::from_utf8(text).ok()
    }

    /// Read a number without a fraction.
    fn number(&mut self) -> Option<i64> {
        let rest = self.data.get(self.at..)?;
        let end = rest
            .iter()
            .position(|byte| !matches!(byte, b'0'..=b'9' | b'-'))?;
        self.at += end;
        number(rest.get(..end)?)
    }

    /// Step over a comma, or the end of an object; return whether there is more.
    fn more(&mut self) -> Option<bool> {
        if self.step(b',').is_some() {
            return Some(true);
        }
        self.step(b'}').map(|()| false)
    }
}

/// Return a number written as Java and Python write it.
fn number(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let leading_zero = digits.len() > 1 && digits.first() == Some(&b'0');
    let minus_zero = negative && digits == b"0";
    if digits.is_empty() || digits.len() > MOST_DIGITS || leading_zero || minus_zero {
        return None;
    }
    let mut value = 0_i64;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        value = value * 10 + i64::from(digit - b'0');
    }
    Some(if negative { -value } else { value })
}

fn int32(value: i64) -> Option<i64> {
    i32::try_from(value).is_ok().then_some(value)
}

/// What a receipt needs of a response.
#[derive(Default)]
struct Stored<'a> {
    message_id: Option<&'a str>,
    queue_id: Option<i64>,
    queue_offset: Option<i64>,
    transaction_id: Option<&'a str>,
    recall_handle: Option<&'a str>,
    region: Option<&'a str>,
    trace_on: Option<&'a str>,
}

/// Fill what is empty; a key that comes twice is not for here.
fn once<T>(place: &mut Option<T>, value: T) -> Option<()> {
    place.replace(value).is_none().then_some(())
}

/// Read the fields of a response; `None` for any that are not as usual.
fn fields<'a>(text: &mut Text<'a>) -> Option<Stored<'a>> {
    let mut stored = Stored::default();
    text.step(b'{')?;
    loop {
        let key = text.string()?;
        text.step(b':')?;
        let value = text.string()?;
        match key {
            "msgId" => once(&mut stored.message_id, value)?,
            "queueId" => once(&mut stored.queue_id, int32(number(value.as_bytes())?)?)?,
            "queueOffset" => once(&mut stored.queue_offset, number(value.as_bytes())?)?,
            "transactionId" => once(&mut stored.transaction_id, value)?,
            "recallHandle" => once(&mut stored.recall_handle, value)?,
            "MSG_REGION" => once(&mut stored.region, value)?,
            "TRACE_ON" => once(&mut stored.trace_on, value)?,
            _ => return None, // the id of a batch, or one that only the pure path knows
        }
        if !text.more()? {
            return Some(stored);
        }
    }
}

/// Read a whole header that says "stored" in answer to a request, as brokers usually write it.
fn answer(header: &[u8], wanted: i64) -> Option<Stored<'_>> {
    let mut text = Text {
        data: header,
        at: 0,
    };
    let (mut code, mut flag, mut opaque, mut version) = (None, None, None, None);
    let (mut stored, mut language, mut serialize) = (None, None, None);
    text.step(b'{')?;
    loop {
        let key = text.string()?;
        text.step(b':')?;
        match key {
            "code" => once(&mut code, text.number()?)?,
            "extFields" => once(&mut stored, fields(&mut text)?)?,
            "flag" => once(&mut flag, int32(text.number()?)?)?,
            "opaque" => once(&mut opaque, int32(text.number()?)?)?,
            "version" => once(&mut version, int32(text.number()?)?)?,
            "language" => once(&mut language, text.string()?)?,
            "serializeTypeCurrentRPC" => once(&mut serialize, text.string()?)?,
            _ => return None,
        }
        if !text.more()? {
            break;
        }
    }
    let whole = text.at == header.len() && code? == 0 && opaque? == wanted;
    (whole && flag? & RESPONSE_FLAG != 0).then_some(stored?)
}

/// Return the fields of the one frame in `data`, if it is a plain response to `opaque`.
fn plain_answer(data: &[u8], opaque: i64) -> Option<Stored<'_>> {
    let header = data.get(8..)?;
    let size = u32::try_from(header.len()).ok()?;
    let fits = be32(data, 0)?.checked_sub(4)? == size && be32(data, 4)? == size;
    if !fits || header.len() > LONGEST {
        return None;
    }
    answer(header, opaque)
}

/// Return what a receipt needs, if `data` is one frame: a response that says "stored".
#[pyfunction]
pub fn stored_answer<'py>(
    data: &Bound<'py, PyBytes>,
    opaque: i64,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = data.py();
    let found = plain_answer(data.as_bytes(), opaque);
    if let Some(Stored {
        message_id: Some(message_id),
        queue_id: Some(queue_id),
        queue_offset: Some(queue_offset),
        transaction_id,
        recall_handle,
        region,
        trace_on,
    }) = found
    {
        let region = match region {
            None | Some("" | "DefaultRegion") => intern!(py, "DefaultRegion").clone(),
            Some(other) => PyString::new(py, other),
        };
        let made: Bound<'py, PyTuple> = (
            message_id,
            queue_id,
            queue_offset,
            transaction_id,
            recall_handle,
            region,
            trace_on != Some("false"),
        )
            .into_pyobject(py)?;
        return Ok(Some(made.into_any()));
    }
    let pure = PURE.get(py)?.get_item(intern!(py, "stored_answer"))?;
    let made = pure.call1((data, opaque))?;
    Ok((!made.is_none()).then_some(made))
}
