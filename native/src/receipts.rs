//! The receipts of messages that share a batch.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyList, PyString, PyTuple};

use crate::python::Imported;

static AS_TUPLE: Imported = Imported::new("msgspec.structs", "astuple");
static RECEIPT: Imported = Imported::new("pocketmq.model.message", "SendReceipt");

/// The receipts of a batch's messages, each made when it is asked for.
#[pyclass(module = "pocketmq_core", frozen)]
pub(crate) struct BatchReceipts {
    whole: Py<PyAny>,
    joined: Py<PyString>,
    count: usize,
    parts: PyOnceLock<Parts>,
}

/// What the receipts of a batch are made of, once one was asked for.
struct Parts {
    ids: Py<PyList>,
    places: Option<Py<PyList>>,
    offset: i64,
    whole: Py<PyTuple>,
}

impl BatchReceipts {
    fn parts(&self, py: Python<'_>) -> PyResult<&Parts> {
        self.parts.get_or_try_init(py, || {
            let whole = AS_TUPLE.get(py)?.call1((&self.whole,))?;
            let whole = whole.cast_into::<PyTuple>()?;
            let places = whole.get_item(2)?;
            let places = match places.cast::<PyString>() {
                Err(_) => None,
                Ok(places) => Some(split_ids(places, self.count)?),
            };
            Ok(Parts {
                ids: split_ids(self.joined.bind(py), self.count)?,
                places,
                offset: whole.get_item(4)?.extract()?,
                whole: whole.unbind(),
            })
        })
    }

    /// Return the receipt of one message.
    pub(crate) fn make<'py>(&self, py: Python<'py>, at: usize) -> PyResult<Bound<'py, PyAny>> {
        let parts = self.parts(py)?;
        let whole = parts.whole.bind(py);
        let place = match &parts.places {
            None => py.None().into_bound(py),
            Some(places) => places.bind(py).get_item(at)?,
        };
        RECEIPT.get(py)?.call1((
            whole.get_borrowed_item(0)?,
            parts.ids.bind(py).get_item(at)?,
            place,
            whole.get_borrowed_item(3)?,
            parts.offset + at as i64,
            whole.get_borrowed_item(5)?,
            whole.get_borrowed_item(6)?,
            whole.get_borrowed_item(7)?,
            whole.get_borrowed_item(8)?,
        ))
    }
}

/// Return ids that were joined by commas; the same for each message if they are not as many.
fn split_ids(joined: &Bound<'_, PyString>, count: usize) -> PyResult<Py<PyList>> {
    let py = joined.py();
    let found = joined.call_method1(intern!(py, "split"), (",",))?;
    let found = found.cast_into::<PyList>()?;
    if found.len() == count {
        return Ok(found.unbind());
    }
    Ok(PyList::new(py, (0..count).map(|_| joined))?.unbind())
}

#[pymethods]
impl BatchReceipts {
    #[new]
    fn new(whole: Py<PyAny>, ids: Py<PyString>, count: usize) -> Self {
        BatchReceipts {
            whole,
            joined: ids,
            count,
            parts: PyOnceLock::new(),
        }
    }

    /// Return the receipt of one message.
    fn own<'py>(&self, py: Python<'py>, at: usize) -> PyResult<Bound<'py, PyAny>> {
        self.make(py, at)
    }

    /// Return the receipts of all messages.
    fn each<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let made = (0..self.count)
            .map(|at| self.make(py, at))
            .collect::<PyResult<Vec<_>>>()?;
        Ok(PyList::new(py, made)?.try_iter()?.into_any())
    }
}
