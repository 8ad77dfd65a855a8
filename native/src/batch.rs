//! Messages to the body of SEND_BATCH_MESSAGE, each with an id of its own.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

use crate::python::{pure, Imported};
use crate::sends::TAIL;
use crate::wire::{push_decimal, push_hex, LARGEST_TEXT};

static MESSAGE: Imported = Imported::new("pocketmq.model.message", "Message");
static AS_TUPLE: Imported = Imported::new("msgspec.structs", "astuple");
static MAP: Imported = Imported::new("builtins", "map");
static NO_PROPERTIES: Imported = Imported::new("pocketmq.model.message", "NO_PROPERTIES");

const ENTRY_OVERHEAD: usize = 22;
/// Names that the properties of an application cannot have.
const OWN_NAMES: [&[u8]; 4] = [b"KEYS", b"WAIT", b"TAGS", b"UNIQ_KEY"];

/// The body of a batch, and the ids of its messages with commas between them.
#[derive(Default)]
pub struct Encoded {
    /// The entries, back to back.
    pub body: Vec<u8>,
    /// The ids.
    pub ids: Vec<u8>,
}

const WAIT: &[u8] = b"WAIT\x01true\x02";
const UNIQUE_KEY: &[u8] = b"UNIQ_KEY\x01";

/// Return the size of the entry of a message with nothing but a body.
pub(crate) fn plain_size(content: &[u8], prefix: &[u8]) -> usize {
    ENTRY_OVERHEAD + content.len() + WAIT.len() + UNIQUE_KEY.len() + prefix.len() + 4 + 1
}

impl Encoded {
    /// Append the entry of a message; `None` if it is too long.
    ///
    /// `before` and `after` are the properties on both sides of RocketMQ's mark for "wait until
    /// it is stored". An id is `prefix` and four digits.
    pub fn push(
        &mut self,
        content: &[u8],
        flag: i32,
        (before, after): (&[u8], &[u8]),
        (prefix, step): (&[u8], u16),
    ) -> Option<()> {
        let fixed = WAIT.len() + UNIQUE_KEY.len() + prefix.len() + 4 + 1;
        let text_size = before.len() + after.len() + fixed;
        let size = i32::try_from(content.len().checked_add(ENTRY_OVERHEAD + text_size)?).ok()?;
        if text_size > LARGEST_TEXT {
            return None;
        }
        if !self.ids.is_empty() {
            self.ids.push(b',');
        }
        let id_at = self.ids.len();
        self.ids.extend_from_slice(prefix);
        push_hex(&mut self.ids, &step.to_be_bytes());
        let mut head = [0; ENTRY_OVERHEAD - 2]; // no magic, no checksum: the broker computes its own
        head[..4].copy_from_slice(&size.to_be_bytes());
        head[12..16].copy_from_slice(&flag.to_be_bytes());
        head[16..].copy_from_slice(&(content.len() as u32).to_be_bytes());
        let body = &mut self.body;
        body.reserve(size as usize);
        body.extend_from_slice(&head);
        body.extend_from_slice(content);
        body.extend_from_slice(&(text_size as u16).to_be_bytes());
        body.extend_from_slice(before);
        body.extend_from_slice(WAIT);
        body.extend_from_slice(after);
        body.extend_from_slice(UNIQUE_KEY);
        body.extend_from_slice(&self.ids[id_at..]);
        body.push(2);
        Some(())
    }
}

/// Append a property; `None` if its name or value is odd.
fn push_property(text: &mut Vec<u8>, name: &[u8], value: &[u8]) -> Option<()> {
    let odd = |byte: &u8| matches!(byte, 1 | 2);
    if name.is_empty() || name.iter().any(odd) || value.iter().any(odd) {
        return None;
    }
    text.extend_from_slice(name);
    text.push(1);
    text.extend_from_slice(value);
    text.push(2);
    Some(())
}

fn text_of<'a>(value: &'a Bound<'_, PyAny>) -> Option<&'a [u8]> {
    Some(value.cast::<PyString>().ok()?.to_str().ok()?.as_bytes())
}

/// Write an application's properties and keys; `None` if they are not a dict and a list of texts.
fn write_before(
    text: &mut Vec<u8>,
    keys: &Bound<'_, PyAny>,
    properties: &Bound<'_, PyAny>,
) -> Option<()> {
    if !properties.is(NO_PROPERTIES.get(properties.py()).ok()?) {
        for (name, value) in properties.cast_exact::<PyDict>().ok()? {
            let name = text_of(&name)?;
            if OWN_NAMES.contains(&name) {
                return None;
            }
            push_property(text, name, text_of(&value)?)?;
        }
    }
    let mut joined = Vec::new();
    let mut key = |key: Bound<'_, PyAny>| {
        if !joined.is_empty() {
            joined.push(b' ');
        }
        joined.extend_from_slice(text_of(&key).filter(|key| !key.is_empty())?);
        Some(())
    };
    if let Ok(keys) = keys.cast_exact::<PyTuple>() {
        keys.iter().try_for_each(&mut key)?;
    } else {
        keys.cast_exact::<PyList>()
            .ok()?
            .iter()
            .try_for_each(&mut key)?;
    }
    if !joined.is_empty() {
        push_property(text, b"KEYS", &joined)?;
    }
    Some(())
}

/// Encode messages behind what is there already; `None` if the pure function must look at them.
///
/// `alike`: all are of one topic, have a body and no priority.
fn encode(
    messages: &Bound<'_, PyAny>,
    prefix: &Bound<'_, PyAny>,
    steps: &Bound<'_, PyAny>,
    mut encoded: Encoded,
    alike: bool,
) -> Option<Encoded> {
    let py = messages.py();
    let messages = match messages.cast_exact::<PyTuple>() {
        Ok(messages) => &messages.to_list(),
        Err(_) => messages.cast_exact::<PyList>().ok()?,
    };
    let steps = steps.cast_exact::<PyList>().ok()?;
    let prefix = text_of(prefix)?;
    let class = MESSAGE.get(py).ok()?;
    let known = messages.iter().all(|each| each.get_type().is(class));
    let fits = messages.len() == steps.len() && !messages.is_empty();
    if !known || !fits || !prefix.iter().all(u8::is_ascii_alphanumeric) {
        return None;
    }
    let (mut before, mut after) = (Vec::new(), Vec::new());
    let mut topic: Option<Bound<'_, PyAny>> = None;
    // One call for all: reading the attributes of each would take twice as long.
    let tuples = MAP
        .get(py)
        .ok()?
        .call1((AS_TUPLE.get(py).ok()?, messages))
        .ok()?;
    for (fields, step) in tuples.try_iter().ok()?.zip(steps) {
        let fields = fields.ok()?;
        let fields = fields.cast::<PyTuple>().ok()?;
        let field = |at| fields.get_borrowed_item(at).ok();
        let (body, tag) = (field(1)?, field(2)?);
        if alike {
            let own = field(0)?;
            let first = topic.get_or_insert_with(|| own.to_owned());
            let empty = body.cast::<PyBytes>().ok()?.as_bytes().is_empty();
            if empty
                || !field(6)?.is_none()
                || !own.is(&*first) && text_of(&own)? != text_of(first)?
            {
                return None;
            }
        }
        before.clear();
        write_before(&mut before, &*field(3)?, &*field(4)?)?;
        after.clear();
        if !tag.is_none() {
            let tag = text_of(&tag)?;
            if !tag.is_empty() {
                push_property(&mut after, b"TAGS", tag)?;
            }
        }
        let step = step.extract::<i64>().ok()? & 0xFFFF;
        encoded.push(
            body.cast::<PyBytes>().ok()?.as_bytes(),
            field(5)?.extract().ok()?,
            (&before, &after),
            (prefix, step as u16),
        )?;
    }
    Some(encoded)
}

/// Return the body of a batch, and the ids of its messages with commas between them.
#[pyfunction]
pub fn encode_numbered<'py>(
    messages: &Bound<'py, PyAny>,
    prefix: &Bound<'py, PyAny>,
    steps: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = messages.py();
    match encode(messages, prefix, steps, Encoded::default(), false) {
        None => pure(py, "encode_numbered")?.call1((messages, prefix, steps)),
        Some(encoded) => {
            let ids = PyString::from_bytes(py, &encoded.ids)?;
            Ok((PyBytes::new(py, &encoded.body), ids)
                .into_pyobject(py)?
                .into_any())
        }
    }
}

/// Return the whole frame of a batch, the ids of its messages, and the size of its body.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub fn batch_frame<'py>(
    head: &[u8],
    middle: &[u8],
    properties: &[u8],
    messages: &Bound<'py, PyAny>,
    prefix: &Bound<'py, PyAny>,
    steps: &Bound<'py, PyAny>,
    born_ms: i64,
    opaque: i64,
) -> PyResult<Bound<'py, PyAny>> {
    let py = messages.py();
    let last = TAIL.get(py)?.extract::<&[u8]>()?;
    let mut begun = Encoded::default();
    let frame = &mut begun.body;
    frame.extend_from_slice(&[0; 8]);
    frame.extend_from_slice(head);
    frame.extend_from_slice(b"0\",\"g\":\"");
    push_decimal(frame, born_ms);
    frame.extend_from_slice(b"\",\"h\":\"0\",\"i\":\"");
    frame.extend_from_slice(properties);
    frame.extend_from_slice(b"\",\"j\":\"0");
    frame.extend_from_slice(middle);
    frame.extend_from_slice(b"0,\"language\":\"PYTHON\",\"opaque\":");
    push_decimal(frame, opaque);
    frame.extend_from_slice(last);
    let begin = frame.len();
    let finish = || {
        let mut whole = encode(messages, prefix, steps, begun, true)?;
        let length = u32::try_from(whole.body.len() - 4).ok()?;
        let header = u32::try_from(begin - 8).ok()?;
        whole.body[..4].copy_from_slice(&length.to_be_bytes());
        whole.body[4..8].copy_from_slice(&header.to_be_bytes());
        Some(whole)
    };
    let Some(whole) = finish() else {
        let args = (
            head, middle, properties, messages, prefix, steps, born_ms, opaque,
        );
        return pure(py, "batch_frame")?.call1(args);
    };
    let ids = PyString::from_bytes(py, &whole.ids)?;
    let made = (PyBytes::new(py, &whole.body), ids, whole.body.len() - begin);
    Ok(made.into_pyobject(py)?.into_any())
}
