//! What `submit` takes for each message: a place in the open batch, and a future.
//!
//! These run per message, so they are classes whose state stays here. The interpreter's lock guards
//! them: each changes in one step, between which no Python code runs.

use std::mem::take;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock};

use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple, PyType};
use pyo3::{intern, PyTypeInfo};

use crate::batch::{plain_size, Encoded};
use crate::python::Imported;
use crate::receipts::BatchReceipts;
use crate::wire::push_hex;

static MESSAGE: Imported = Imported::new("pocketmq.model.message", "Message");
static AS_TUPLE: Imported = Imported::new("msgspec.structs", "astuple");

/// A message's place in a batch: what is known of its future as long as no thread waits for it.
#[pyclass(module = "pocketmq_core", subclass, frozen)]
pub(crate) struct Place {
    batch: Mutex<Option<Py<PyAny>>>,
    at: AtomicUsize,
    /// Not a `PyOnceLock`, which hands the interpreter over to other threads when it is set.
    receipt: OnceLock<Py<PyAny>>,
}

impl Place {
    fn batch_of<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        let batch = self.batch.lock().ok()?;
        Some(batch.as_ref()?.bind(py).clone())
    }
}

#[pymethods]
impl Place {
    #[new]
    #[pyo3(signature = (batch=None, at=0))]
    fn new(batch: Option<Py<PyAny>>, at: usize) -> Self {
        Place {
            batch: Mutex::new(batch),
            at: AtomicUsize::new(at),
            receipt: OnceLock::new(),
        }
    }

    /// Whether the receipt is there, or will not come.
    fn done(this: &Bound<'_, Self>) -> PyResult<bool> {
        let (py, place) = (this.py(), this.get());
        let Some(batch) = place.batch_of(py) else {
            if place.receipt.get().is_some() {
                return Ok(true);
            }
            return this
                .call_method0(intern!(py, "_done_after_wait"))?
                .extract();
        };
        if !batch.getattr(intern!(py, "receipts"))?.is_none() {
            return Ok(true);
        }
        batch
            .call_method1(intern!(py, "has_ended"), (place.at.load(Relaxed),))?
            .extract()
    }

    /// Return the receipt, or raise the error; waits for it at most `timeout` seconds.
    #[pyo3(signature = (timeout=None))]
    fn result<'py>(
        this: &Bound<'py, Self>,
        timeout: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, place) = (this.py(), this.get());
        if let Some(receipt) = place.receipt.get() {
            return Ok(receipt.bind(py).clone());
        }
        if let Some(batch) = place.batch_of(py) {
            let receipts = batch.getattr(intern!(py, "receipts"))?;
            if let Ok(receipts) = receipts.cast_exact::<BatchReceipts>() {
                let made = receipts.get().make(py, place.at.load(Relaxed))?;
                let receipt = place.receipt.get_or_init(|| made.unbind());
                let batch = place.batch.lock().map(|mut batch| batch.take());
                drop(batch);
                return Ok(receipt.bind(py).clone());
            }
        }
        this.call_method1(intern!(py, "_result_after_wait"), (timeout,))
    }

    /// Return batch, position and receipt, and leave the batch: from now on a thread waits.
    fn _leave_place<'py>(
        &self,
        py: Python<'py>,
    ) -> (Option<Py<PyAny>>, usize, Option<&Bound<'py, PyAny>>) {
        let batch = self.batch.lock().ok().and_then(|mut batch| batch.take());
        let receipt = self.receipt.get().map(|receipt| receipt.bind(py));
        (batch, self.at.load(Relaxed), receipt)
    }
}

/// The places of an open batch, and what was written into them.
#[pyclass(module = "pocketmq_core", frozen)]
pub(crate) struct OpenPlaces {
    batch: Py<PyAny>,
    messages: Py<PyList>,
    timeout: Py<PyAny>,
    futures: Py<PyType>,
    alone_from: usize,
    /// What stands for the id of a message, but for its last four digits.
    blank: Vec<u8>,
    written: Mutex<Written>,
}

#[derive(Default)]
struct Written {
    encoded: Encoded,
    /// Where ids are still to be written: in the body, and among the ids.
    blanks: Vec<(usize, usize)>,
    /// Granted and not taken.
    places: usize,
    bytes: usize,
}

impl Written {
    /// Write a message with nothing but a body, and leave its id blank; `None` if it is too long.
    fn push_plain(&mut self, content: &[u8], blank: &[u8]) -> Option<()> {
        let encoded = &mut self.encoded;
        encoded.push(content, 0, (b"", b""), (blank, 0))?;
        let size = blank.len() + 4;
        let blank = (encoded.body.len() - 1 - size, encoded.ids.len() - size);
        self.blanks.push(blank);
        Some(())
    }
}

fn broken<E>(_: E) -> PyErr {
    PyRuntimeError::new_err("an earlier error broke this batch")
}

/// Return the fields of a message; `None` for anything else, a kind of message, too.
pub(crate) fn fields_of<'py>(message: &Bound<'py, PyAny>) -> Option<Bound<'py, PyTuple>> {
    let py = message.py();
    if !message.get_type().is(MESSAGE.get(py).ok()?) {
        return None;
    }
    let fields = AS_TUPLE.get(py).ok()?.call1((message,)).ok()?;
    fields.cast_into::<PyTuple>().ok()
}

impl OpenPlaces {
    /// Return the body among the fields of a message with nothing else; `None` for any other.
    fn plain_body<'py>(&self, fields: &Bound<'py, PyTuple>) -> Option<Bound<'py, PyBytes>> {
        let field = |at| fields.get_borrowed_item(at).ok();
        let body = fields.get_item(1).ok()?.cast_into::<PyBytes>().ok()?;
        for at in 2..6 {
            if field(at)?.is_truthy().ok()? {
                return None;
            }
        }
        let size = body.as_bytes().len();
        let fits = field(6)?.is_none() && size > 0 && size < self.alone_from;
        fits.then_some(body)
    }

    /// Do as `add` does, with the fields of the message.
    pub(crate) fn take<'py>(
        &self,
        message: &Bound<'py, PyAny>,
        fields: &Bound<'py, PyTuple>,
        timeout: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = message.py();
        let free = self.written.lock().map_err(broken)?.places;
        if free == 0 || !timeout.is(&self.timeout) {
            return Ok(None);
        }
        let Some(body) = self.plain_body(fields) else {
            return Ok(None);
        };
        // Made before the place is taken: making things may run other threads.
        let future = self.futures.bind(py).call0()?;
        let place = future.cast::<Place>()?.get();
        *place.batch.lock().map_err(broken)? = Some(self.batch.clone_ref(py));
        let messages = self.messages.bind(py);
        let mut written = self.written.lock().map_err(broken)?;
        let size = plain_size(body.as_bytes(), &self.blank);
        let free = written.places > 0 && written.bytes >= size;
        if !free || written.push_plain(body.as_bytes(), &self.blank).is_none() {
            return Ok(None);
        }
        written.places -= 1;
        written.bytes -= size;
        place.at.store(messages.len(), Relaxed);
        messages.append(message)?;
        Ok(Some(future))
    }
}

#[pymethods]
impl OpenPlaces {
    #[new]
    fn new(
        batch: Py<PyAny>,
        messages: Py<PyList>,
        timeout: Py<PyAny>,
        futures: Bound<'_, PyType>,
        alone_from: usize,
        id_size: usize,
    ) -> PyResult<Self> {
        if !futures.is_subclass(&Place::type_object(futures.py()))? {
            return Err(PyTypeError::new_err("no kind of Place"));
        }
        Ok(OpenPlaces {
            batch,
            messages,
            timeout,
            futures: futures.unbind(),
            alone_from,
            blank: vec![b'0'; id_size.saturating_sub(4)],
            written: Mutex::default(),
        })
    }

    /// Bytes of its messages as entries of a batch.
    #[getter]
    fn size(&self) -> PyResult<usize> {
        Ok(self.written.lock().map_err(broken)?.encoded.body.len())
    }

    /// Give a plain message a granted place, and return its future; `None` if there is none.
    fn add<'py>(
        &self,
        message: &Bound<'py, PyAny>,
        timeout: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        match fields_of(message) {
            None => Ok(None),
            Some(fields) => self.take(message, &fields, timeout),
        }
    }

    /// Give a message a place that was not granted; return its position.
    ///
    /// `entry` is what it is in a batch, and its id. One without has nothing but a body.
    fn append(&self, message: &Bound<'_, PyAny>, entry: Option<(&[u8], &str)>) -> PyResult<usize> {
        let messages = self.messages.bind(message.py());
        let body = match entry {
            None => Some(message.getattr("body")?.cast_into::<PyBytes>()?),
            Some(_) => None,
        };
        let mut written = self.written.lock().map_err(broken)?;
        if let Some((entry, name)) = entry {
            let encoded = &mut written.encoded;
            if !encoded.ids.is_empty() {
                encoded.ids.push(b',');
            }
            encoded.ids.extend_from_slice(name.as_bytes());
            encoded.body.extend_from_slice(entry);
        } else if let Some(body) = body {
            written
                .push_plain(body.as_bytes(), &self.blank)
                .ok_or_else(|| PyValueError::new_err("the body is too long"))?;
        }
        let at = messages.len();
        messages.append(message)?;
        Ok(at)
    }

    /// Grant more places, and bytes of messages in them.
    fn grant(&self, places: usize, bytes: usize) -> PyResult<()> {
        let mut written = self.written.lock().map_err(broken)?;
        written.places += places;
        written.bytes += bytes;
        Ok(())
    }

    /// Take back what was granted and not used: places and bytes.
    fn reclaim(&self) -> PyResult<(usize, usize)> {
        let mut written = self.written.lock().map_err(broken)?;
        Ok((take(&mut written.places), take(&mut written.bytes)))
    }

    /// Return the body of the batch, and the ids of its messages with commas between them.
    ///
    /// Ids of messages without any are `prefix` and four digits, of the numbers from `step` on.
    fn packed<'py>(
        &self,
        py: Python<'py>,
        prefix: &str,
        step: i64,
    ) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyString>)> {
        let mut written = self.written.lock().map_err(broken)?;
        let Written {
            encoded, blanks, ..
        } = &mut *written;
        if prefix.len() != self.blank.len() {
            return Err(PyValueError::new_err("ids of another size are needed"));
        }
        let mut own = prefix.as_bytes().to_vec();
        for (&(body_at, id_at), step) in blanks.iter().zip(step..) {
            own.truncate(prefix.len());
            push_hex(&mut own, &((step & 0xFFFF) as u16).to_be_bytes());
            encoded.body[body_at..body_at + own.len()].copy_from_slice(&own);
            encoded.ids[id_at..id_at + own.len()].copy_from_slice(&own);
        }
        let ids = PyString::from_bytes(py, &encoded.ids)?;
        Ok((PyBytes::new(py, &encoded.body), ids))
    }
}
