//! Responses to pops and acks, as brokers usually write them, and the messages in them.
//!
//! Usual is what the pure functions of the same names read; all else is left to them.

use memchr::memmem;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

use crate::pulled::{plain_record, Plain};
use crate::python::{pure, Imported};
use crate::stored::{int32, number, once, Text, LONGEST, RESPONSE_FLAG};
use crate::wire::{be32, push_decimal, slice_at, BODY_AT};

static WHOLE_MESSAGE: Imported = Imported::new("pocketmq.protocol.received", "WholeMessage");
static DELIVERY: Imported = Imported::new("pocketmq.protocol.received", "DeliveryContext");
static INFLATE_LIMIT: Imported = Imported::new("pocketmq.protocol.compression", "INFLATE_LIMIT");

/// Digits of an offset, and of a queue's id, at most.
pub(crate) const OFFSET_DIGITS: usize = 18;
const QUEUE_DIGITS: usize = 9;
const RETRY: &[u8] = b"%RETRY%";

/// The fields of a response that brings popped messages.
#[derive(Default)]
pub struct Fields<'a> {
    pop_time: Option<i64>,
    invisible_time: Option<i64>,
    revive_queue: Option<i64>,
    rest: Option<i64>,
    starts: Option<&'a str>,
    offsets: Option<&'a str>,
}

impl<'a> Fields<'a> {
    /// Fields that were read before: the times of a pop and its revive queue, and where its messages
    /// were taken from.
    pub fn of(numbers: (i64, i64, i64), starts: &'a str, offsets: &'a str) -> Self {
        Fields {
            pop_time: Some(numbers.0),
            invisible_time: Some(numbers.1),
            revive_queue: Some(numbers.2),
            rest: None,
            starts: Some(starts),
            offsets: Some(offsets),
        }
    }
}

/// Messages of one queue: what their handles have in common, and their offsets as they are written.
pub struct Popped<'a> {
    /// When they were popped.
    pub pop_time: i64,
    /// A handle up to the broker's name.
    pub before: Vec<u8>,
    /// The queue's id.
    pub queue_id: i64,
    /// The mark of the topic: 0, or 1 and 2 for retry topics.
    pub mark: u8,
    /// Offsets, with commas between them.
    pub offsets: &'a str,
}

impl Popped<'_> {
    /// Complete what handles have in common: all up to an offset.
    pub fn name_queue(&mut self, broker: &str) {
        self.before.extend_from_slice(broker.as_bytes());
        self.before.push(b' ');
        push_decimal(&mut self.before, self.queue_id);
        self.before.push(b' ');
    }
}

/// Read a number of decimal digits alone, leading zeros among them.
pub(crate) fn digits(text: &str, most: usize) -> Option<i64> {
    let usual = !text.is_empty() && text.len() <= most && text.bytes().all(|b| b.is_ascii_digit());
    usual.then(|| text.parse().ok()).flatten()
}

/// Read the fields of a response to a pop; `None` for any that are not as usual.
fn fields<'a>(text: &mut Text<'a>) -> Option<Fields<'a>> {
    let mut found = Fields::default();
    text.step(b'{')?;
    loop {
        let key = text.string()?;
        text.step(b':')?;
        let value = text.string()?;
        let number = || number(value.as_bytes());
        match key {
            "popTime" => once(&mut found.pop_time, number()?)?,
            "invisibleTime" => once(&mut found.invisible_time, number()?)?,
            "reviveQid" => once(&mut found.revive_queue, int32(number()?)?)?,
            "restNum" => once(&mut found.rest, number()?)?,
            "startOffsetInfo" => once(&mut found.starts, value)?,
            "msgOffsetInfo" => once(&mut found.offsets, value)?,
            _ => return None, // only the pure path knows it
        }
        if !text.more()? {
            return Some(found);
        }
    }
}

/// Return header and body of the one frame in `data`, if that is all there is.
fn parts(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let size = be32(data, 4)? as usize;
    let whole = be32(data, 0)? as usize + 4 == data.len();
    if !whole || size > LONGEST {
        return None;
    }
    let header = slice_at(data, 8, size)?;
    Some((header, data.get(8 + size..)?))
}

/// Read a whole header that says "done" in response to a request, and its fields if it has some.
fn done(header: &[u8], wanted: i64) -> Option<Option<Fields<'_>>> {
    let mut text = Text::new(header);
    let (mut code, mut flag, mut opaque, mut version) = (None, None, None, None);
    let (mut found, mut language, mut remark, mut serialize) = (None, None, None, None);
    text.step(b'{')?;
    loop {
        let key = text.string()?;
        text.step(b':')?;
        match key {
            "code" => once(&mut code, text.number()?)?,
            "extFields" => once(&mut found, fields(&mut text)?)?,
            "flag" => once(&mut flag, int32(text.number()?)?)?,
            "opaque" => once(&mut opaque, int32(text.number()?)?)?,
            "version" => once(&mut version, int32(text.number()?)?)?,
            "language" => once(&mut language, text.string()?)?,
            "remark" => once(&mut remark, text.string()?)?,
            "serializeTypeCurrentRPC" => once(&mut serialize, text.string()?)?,
            _ => return None,
        }
        if !text.more()? {
            break;
        }
    }
    let whole = text.at() == header.len() && code? == 0 && opaque? == wanted;
    (whole && flag? & RESPONSE_FLAG != 0).then_some(found)
}

/// Read the response to a pop that brings messages of one queue; return what it says of them.
pub fn popped(data: &[u8], opaque: i64) -> Option<(Popped<'_>, &[u8])> {
    let (header, body) = parts(data)?;
    let found = done(header, opaque)??;
    found.rest?;
    Some((one_queue(&found)?, body))
}

/// Return what the fields of a response say of messages of one queue.
pub fn one_queue<'a>(found: &Fields<'a>) -> Option<Popped<'a>> {
    let start = found.starts?;
    let (mark, rest) = start.split_once(' ')?;
    let (queue, first) = rest.split_once(' ')?;
    let where_to = start.len() - first.len();
    let (offsets, pop_time) = (found.offsets?, found.pop_time?);
    if !matches!(mark, "0" | "1" | "2") || offsets.get(..where_to)? != start.get(..where_to)? {
        return None;
    }
    let mark = *mark.as_bytes().first()?;
    let queue_id = digits(queue, QUEUE_DIGITS)?;
    let mut before = Vec::with_capacity(128);
    for value in [
        digits(first, OFFSET_DIGITS)?,
        pop_time,
        found.invisible_time?,
        found.revive_queue?,
    ] {
        push_decimal(&mut before, value);
        before.push(b' ');
    }
    before.extend_from_slice(&[mark, b' ']);
    Some(Popped {
        pop_time,
        before,
        queue_id,
        mark,
        offsets: offsets.get(where_to..)?,
    })
}

/// Return the records of a body with their positions and offsets; `None` unless all are usual ones
/// of the queue that the response names.
pub fn records<'a>(popped: &Popped<'_>, body: &'a [u8]) -> Option<Vec<(usize, Plain<'a>, i64)>> {
    if memmem::find(body, b"POP_CK").is_some() || memmem::find(body, b"1ST_POP_TIME").is_some() {
        return None; // popped before
    }
    let mut found = Vec::new();
    let mut position = 0;
    let mut place = None;
    for text in popped.offsets.split(',') {
        let offset = digits(text, OFFSET_DIGITS)?;
        let record = plain_record(body, position)?;
        let topic_at = position + BODY_AT + record.body.len();
        let queue = be32(body, position + 12)?;
        let here = (queue, body.get(topic_at..record.text_at - 2)?);
        if *place.get_or_insert(here) != here {
            return None;
        }
        let size = record.size;
        found.push((position, record, offset));
        position += size;
    }
    let (queue, topic) = place?;
    let name = topic.get(1..)?;
    let is_retry = popped.mark != b'0';
    let usual = position == body.len()
        && i64::from(queue) == popped.queue_id
        && name.starts_with(RETRY) == is_retry
        && (!is_retry || name.contains(&b'+') == (popped.mark == b'2'));
    usual.then_some(found)
}

/// Return the messages of a response to a pop; see the pure `read_usual_pop`.
#[pyfunction]
pub fn read_usual_pop<'py>(
    broker: &Bound<'py, PyString>,
    topic: &Bound<'py, PyString>,
    data: &Bound<'py, PyBytes>,
    opaque: i64,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = data.py();
    let usual = popped(data.as_bytes(), opaque)
        .and_then(|(popped, body)| records(&popped, body).map(|found| (popped, body, found)));
    let Some((mut popped, body, found)) = usual else {
        let made = pure(py, "read_usual_pop")?.call1((broker, topic, data, opaque))?;
        return Ok((!made.is_none()).then_some(made));
    };
    popped.name_queue(&broker.to_cow()?);
    let (class, delivery) = (WHOLE_MESSAGE.get(py)?, DELIVERY.get(py)?);
    let (limit, none) = (INFLATE_LIMIT.get(py)?, py.None());
    let popped_at = PyString::new(py, &popped.pop_time.to_string());
    let buffer = PyBytes::new(py, body);
    let mut handle = popped.before.clone();
    let mut messages = Vec::with_capacity(found.len());
    for (position, record, offset) in found {
        handle.truncate(popped.before.len());
        push_decimal(&mut handle, offset);
        let added = PyDict::new(py);
        let text = PyString::new(py, &String::from_utf8_lossy(&handle));
        added.set_item(intern!(py, "POP_CK"), text)?;
        added.set_item(intern!(py, "1ST_POP_TIME"), &popped_at)?;
        let context = delivery.call1((broker, &none, topic, 0, added, limit))?;
        messages.push(class.call1((
            &buffer,
            position,
            record.queue_offset,
            record.size,
            record.body.len(),
            record.text_at,
            context,
            &none,
            topic,
        ))?);
    }
    Ok(Some(messages.into_pyobject(py)?))
}

/// Return whether `data` is one whole response that says "done"; see the pure `is_done`.
#[pyfunction]
pub fn is_done<'py>(
    data: &Bound<'py, PyBytes>,
    opaque: i64,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = data.py();
    let plain = parts(data.as_bytes()).and_then(|(header, _)| done(header, opaque));
    if matches!(plain, Some(None)) {
        return Ok(Some(true.into_pyobject(py)?.to_owned().into_any()));
    }
    let made = pure(py, "is_done")?.call1((data, opaque))?;
    Ok((!made.is_none()).then_some(made))
}
