//! Pulled messages: what all of a pull need lies here, together; a message is its number in it.
//!
//! A message that waits in a consumer is thus a small object of Python, which no garbage collector
//! visits: PyO3's classes are all visited, so messages are not of one. All else of them is Python's.

use memchr::{memchr, memmem};
use pyo3::exceptions::PyIndexError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyList, PyRange, PyString, PyTuple, PyType};

use crate::python::{pure, Imported};
use crate::wire::{be32s, be64s};

static MESSAGE: Imported = Imported::new("pocketmq.protocol.pulled_message", "PulledMessage");
static MAP: Imported = Imported::new("builtins", "map");
static REPEAT: Imported = Imported::new("itertools", "repeat");
/// Numbers of messages, made once: those above 256 would be objects of their own each time.
static NUMBERS: PyOnceLock<Py<PyTuple>> = PyOnceLock::new();

const MADE_ONCE: usize = 1024;
const FLAG_BYTE: usize = 39;
const COMPRESSED: u8 = 1;
/// Where a body begins, by the bits of the system flag that say how long the two hosts are.
const BODIES_AT: [usize; 4] = [88, 100, 100, 112];

/// Bodies up to this size are sliced again at each read: that costs less than to remember them, and
/// a message that waits for others of its batch does not hold them. Larger ones are copied once.
const SLICED_AGAIN: u32 = 1024;

/// Where a message is in the data of its pull.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub queue_offset: i64,
    pub position: u32,
    pub store_size: u32,
    pub body_size: u32,
    pub text_at: u32,
}

/// The plain messages of one pull.
#[pyclass(module = "pocketmq_core", frozen)]
pub struct PulledRun {
    buffer: Py<PyBytes>,
    delivery: Py<PyAny>,
    places: Vec<Place>,
}

fn numbers(py: Python<'_>) -> PyResult<&Bound<'_, PyTuple>> {
    let made = || PyTuple::new(py, 0..MADE_ONCE).map(Bound::unbind);
    Ok(NUMBERS.get_or_try_init(py, made)?.bind(py))
}

/// Return a list of messages with these places in the data.
pub(crate) fn messages_at<'py>(
    data: &Bound<'py, PyBytes>,
    delivery: &Bound<'py, PyAny>,
    places: Vec<Place>,
) -> PyResult<Bound<'py, PyList>> {
    let (py, count) = (data.py(), places.len());
    if count == 0 {
        return Ok(PyList::empty(py));
    }
    let run = PulledRun {
        buffer: data.clone().unbind(),
        delivery: delivery.clone().unbind(),
        places,
    };
    // One call makes all: one for each would take twice as long.
    let runs = REPEAT.get(py)?.call1((Bound::new(py, run)?, count))?;
    let class = MESSAGE.get(py)?;
    let made = if count <= MADE_ONCE {
        MAP.get(py)?.call1((class, runs, numbers(py)?))?
    } else {
        let numbers = PyRange::new(py, 0, count.try_into()?)?;
        MAP.get(py)?.call1((class, runs, numbers))?
    };
    let made = py.get_type::<PyList>().call1((made,))?;
    Ok(made.cast_into::<PyList>()?)
}

fn out_of_range() -> PyErr {
    PyIndexError::new_err("the message is not in its pull")
}

/// A message: its pull, and its place in there.
struct Found<'py> {
    run: Bound<'py, PulledRun>,
    place: Place,
}

impl<'py> Found<'py> {
    fn of(message: &Bound<'py, PyAny>) -> PyResult<Self> {
        let py = message.py();
        let run = message.getattr(intern!(py, "_run"))?;
        let run = run.cast_into::<PulledRun>()?;
        let at: usize = message.getattr(intern!(py, "_at"))?.extract()?;
        let place = run.get().places.get(at).copied();
        Ok(Found {
            place: place.ok_or_else(out_of_range)?,
            run,
        })
    }

    fn data(&self) -> &[u8] {
        self.run.get().buffer.as_bytes(self.run.py())
    }

    fn delivery(&self, name: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
        self.run.get().delivery.bind(self.run.py()).getattr(name)
    }

    fn byte(&self, at: usize) -> PyResult<u8> {
        let found = self.data().get(self.place.position as usize + at);
        found.copied().ok_or_else(out_of_range)
    }

    fn int(&self, at: usize) -> PyResult<i32> {
        be32s(self.data(), self.place.position as usize + at).ok_or_else(out_of_range)
    }

    fn long(&self, at: usize) -> PyResult<i64> {
        be64s(self.data(), self.place.position as usize + at).ok_or_else(out_of_range)
    }

    fn body_at(&self) -> PyResult<usize> {
        Ok(BODIES_AT[usize::from(self.byte(FLAG_BYTE)? >> 4 & 3)])
    }

    /// Return where the time of storing is.
    fn stored_at(&self) -> PyResult<usize> {
        let born_v6 = self.byte(FLAG_BYTE)? & 0x10 != 0;
        Ok(if born_v6 { 68 } else { 56 })
    }

    fn bytes(&self, start: usize, end: usize) -> PyResult<Bound<'py, PyBytes>> {
        let at = self.place.position as usize;
        let bytes = self.data().get(at + start..at + end);
        Ok(PyBytes::new(self.run.py(), bytes.ok_or_else(out_of_range)?))
    }

    fn stored_body(&self) -> PyResult<Bound<'py, PyBytes>> {
        let start = self.body_at()?;
        self.bytes(start, start + self.place.body_size as usize)
    }

    fn text(&self) -> PyResult<&[u8]> {
        let end = self.place.position as usize + self.place.store_size as usize;
        let text = self.data().get(self.place.text_at as usize..end);
        text.ok_or_else(out_of_range)
    }
}

/// Return text as Python decodes it; what is not UTF-8 is replaced.
fn decoded<'py>(py: Python<'py>, text: &[u8]) -> PyResult<Bound<'py, PyString>> {
    if let Ok(text) = std::str::from_utf8(text) {
        return Ok(PyString::new(py, text));
    }
    let text = PyBytes::new(py, text);
    let made = text.call_method1(intern!(py, "decode"), ("utf-8", "replace"))?;
    Ok(made.cast_into::<PyString>()?)
}

/// Return the value of a property; see the pure `find_property`.
pub fn find_property<'a>(text: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let value_at = |at: usize| {
        let value = text.get(at..)?;
        value.get(..memchr(2, value).unwrap_or(value.len()))
    };
    let mut needle = Vec::with_capacity(64);
    needle.push(2);
    needle.extend_from_slice(name);
    needle.push(1);
    let mut stop = text.len();
    while let Some(at) = memmem::rfind(text.get(..stop)?, &needle) {
        match value_at(at + needle.len())? {
            b"" => stop = at, // an empty value does not count, an earlier one may
            value => return Some(value),
        }
    }
    let first = needle.get(1..)?;
    if !text.starts_with(first) {
        return None;
    }
    value_at(first.len()).filter(|value| !value.is_empty())
}

/// What messages read of themselves: functions of a message, for its class to make properties of.
#[pymethods]
impl PulledRun {
    #[staticmethod]
    fn buffer(message: &Bound<'_, PyAny>) -> PyResult<Py<PyBytes>> {
        let found = Found::of(message)?;
        Ok(found.run.get().buffer.clone_ref(message.py()))
    }

    #[staticmethod]
    fn delivery(message: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let found = Found::of(message)?;
        Ok(found.run.get().delivery.clone_ref(message.py()))
    }

    #[staticmethod]
    fn queue_offset(message: &Bound<'_, PyAny>) -> PyResult<i64> {
        Ok(Found::of(message)?.place.queue_offset)
    }

    #[staticmethod]
    fn position(message: &Bound<'_, PyAny>) -> PyResult<u32> {
        Ok(Found::of(message)?.place.position)
    }

    #[staticmethod]
    fn store_size(message: &Bound<'_, PyAny>) -> PyResult<u32> {
        Ok(Found::of(message)?.place.store_size)
    }

    #[staticmethod]
    fn body_size(message: &Bound<'_, PyAny>) -> PyResult<u32> {
        Ok(Found::of(message)?.place.body_size)
    }

    #[staticmethod]
    fn text_at(message: &Bound<'_, PyAny>) -> PyResult<u32> {
        Ok(Found::of(message)?.place.text_at)
    }

    #[staticmethod]
    fn body_crc(message: &Bound<'_, PyAny>) -> PyResult<i32> {
        Found::of(message)?.int(8)
    }

    #[staticmethod]
    fn queue_id<'py>(message: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (py, found) = (message.py(), Found::of(message)?);
        let given = found.delivery(intern!(py, "queue_id"))?;
        if given.is_none() {
            return Ok(found.int(12)?.into_pyobject(py)?.into_any());
        }
        Ok(given)
    }

    #[staticmethod]
    fn flag(message: &Bound<'_, PyAny>) -> PyResult<i32> {
        Found::of(message)?.int(16)
    }

    #[staticmethod]
    fn commit_log_offset(message: &Bound<'_, PyAny>) -> PyResult<i64> {
        Found::of(message)?.long(28)
    }

    #[staticmethod]
    fn sys_flag(message: &Bound<'_, PyAny>) -> PyResult<i32> {
        Found::of(message)?.int(36)
    }

    #[staticmethod]
    fn born_timestamp_ms(message: &Bound<'_, PyAny>) -> PyResult<i64> {
        Found::of(message)?.long(40)
    }

    #[staticmethod]
    fn store_timestamp_ms(message: &Bound<'_, PyAny>) -> PyResult<i64> {
        let found = Found::of(message)?;
        found.long(found.stored_at()?)
    }

    #[staticmethod]
    fn reconsume_times<'py>(message: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (py, found) = (message.py(), Found::of(message)?);
        let given = found.delivery(intern!(py, "reconsume_times"))?;
        if given.is_none() {
            let stored = found.int(found.body_at()? - 16)?;
            return Ok(stored.into_pyobject(py)?.into_any());
        }
        Ok(given)
    }

    #[staticmethod]
    fn stored_body<'py>(message: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        Found::of(message)?.stored_body()
    }

    /// Return the body; one that is large or compressed is read, and kept, by Python.
    #[staticmethod]
    fn body<'py>(message: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = message.py();
        let found = Found::of(message)?;
        if found.place.body_size > SLICED_AGAIN || found.byte(FLAG_BYTE)? & COMPRESSED != 0 {
            return message.call_method0(intern!(py, "_kept_body"));
        }
        Ok(found.stored_body()?.into_any())
    }

    #[staticmethod]
    fn born_host_bytes<'py>(message: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        let found = Found::of(message)?;
        found.bytes(48, found.stored_at()?)
    }

    #[staticmethod]
    fn store_host_bytes<'py>(message: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        let found = Found::of(message)?;
        found.bytes(found.stored_at()? + 8, found.body_at()? - 16)
    }

    #[staticmethod]
    fn property_bytes<'py>(message: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(message.py(), Found::of(message)?.text()?))
    }

    /// Return one property without reading the others.
    #[staticmethod]
    fn find_property<'py>(
        message: &Bound<'py, PyAny>,
        name: &Bound<'py, PyString>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (py, get) = (message.py(), intern!(message.py(), "get"));
        let read = message.getattr(intern!(py, "_properties"))?;
        if !read.is_none() {
            return Ok(Some(read.call_method1(get, (name,))?));
        }
        let message = Found::of(message)?;
        let added = message.delivery(intern!(py, "added"))?;
        let added = match added.cast_exact::<PyDict>() {
            Ok(added) => added.get_item(name)?,
            Err(_) => Some(added.call_method1(get, (name,))?),
        };
        if added.as_ref().is_some_and(|value| !value.is_none()) {
            return Ok(added);
        }
        let text = message.text()?;
        let value = match name.to_str() {
            Ok(name) => find_property(text, name.as_bytes()),
            Err(_) => {
                let name = name.call_method1(intern!(py, "encode"), ("utf-8", "replace"))?;
                find_property(text, name.cast::<PyBytes>()?.as_bytes())
            }
        };
        value
            .map(|value| Ok(decoded(py, value)?.into_any()))
            .transpose()
    }

    /// Return what an equal message of the pure path is made of, but for the delivery.
    #[staticmethod]
    fn fields(message: &Bound<'_, PyAny>) -> PyResult<(Py<PyBytes>, u32, i64, u32, u32, u32)> {
        let found = Found::of(message)?;
        let (buffer, place) = (found.run.get().buffer.clone_ref(message.py()), found.place);
        Ok((
            buffer,
            place.position,
            place.queue_offset,
            place.store_size,
            place.body_size,
            place.text_at,
        ))
    }
}

/// Show the place of each message in a list; `None` if one of them has none.
fn visit(messages: &Bound<'_, PyAny>, mut see: impl FnMut(&Place)) -> Option<()> {
    let py = messages.py();
    let class = MESSAGE.get(py).ok()?.cast::<PyType>().ok()?;
    let numbers = numbers(py).ok()?;
    let (run_name, at_name) = (intern!(py, "_run"), intern!(py, "_at"));
    let mut next = 0;
    let mut run: Option<Bound<'_, PulledRun>> = None;
    for message in messages.cast::<PyList>().ok()?.iter() {
        if !message.is_exact_instance(class) {
            return None;
        }
        let its = message.getattr(run_name).ok()?;
        let run = match &run {
            Some(run) if run.is(&its) => run,
            _ => run.insert(its.cast_into::<PulledRun>().ok()?),
        };
        let at = message.getattr(at_name).ok()?;
        let at = match numbers.get_borrowed_item(next) {
            Ok(usual) if usual.is(&at) => next, // as of most: no number is read
            _ => at.extract::<usize>().ok()?,
        };
        see(run.get().places.get(at)?);
        next = at + 1;
    }
    Some(())
}

/// Return the bytes of the bodies of messages; see the pure function.
#[pyfunction]
pub fn body_bytes<'py>(messages: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = messages.py();
    let mut bytes = 0;
    match visit(messages, |place| bytes += u64::from(place.body_size)) {
        Some(()) => Ok(bytes.into_pyobject(py)?.into_any()),
        None => pure(py, "body_bytes")?.call1((messages,)),
    }
}

/// Return the offsets of messages and the bytes of their bodies; see the pure function.
#[pyfunction]
pub fn offsets_and_bytes<'py>(messages: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = messages.py();
    let (mut offsets, mut bytes) = (Vec::new(), 0);
    let usual = visit(messages, |place| {
        offsets.push(place.queue_offset);
        bytes += u64::from(place.body_size);
    });
    let slow = || pure(py, "offsets_and_bytes")?.call1((messages,));
    if usual.is_none() {
        return slow();
    }
    let first = offsets.first().copied().unwrap_or_default();
    let count = i64::try_from(offsets.len())?;
    let Some(stop) = first.checked_add(count) else {
        return slow(); // the end of the run is beyond 64 bits
    };
    if (first..stop).eq(offsets.iter().copied()) {
        let run = PyRange::new(py, first.try_into()?, stop.try_into()?)?;
        return Ok((run, bytes).into_pyobject(py)?.into_any());
    }
    Ok((offsets, bytes).into_pyobject(py)?.into_any())
}
