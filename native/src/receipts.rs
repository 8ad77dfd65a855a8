//! The receipts of messages that share a batch.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyList, PyString, PyTuple};

use crate::python::Imported;

static AS_TUPLE: Imported = Imported::new("msgspec.structs", "astuple");
static RECEIPT: Imported = Imported::new("pocketmq.model.message", "SendReceipt");
static MAP: Imported = Imported::new("builtins", "map");
static REPEAT: Imported = Imported::new("itertools", "repeat");
static COUNT: Imported = Imported::new("itertools", "count");

/// The receipts of a batch's messages, made when one is asked for.
#[pyclass(module = "pocketmq_core", frozen)]
pub(crate) struct BatchReceipts {
    whole: Py<PyAny>,
    joined: Py<PyString>,
    count: usize,
    made: PyOnceLock<Py<PyList>>,
}

impl BatchReceipts {
    /// Return the receipts of all messages. One call makes them: one for each would take twice as
    /// long.
    fn all<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyList>> {
        let made = self.made.get_or_try_init(py, || {
            let whole = AS_TUPLE.get(py)?.call1((&self.whole,))?;
            let whole = whole.cast_into::<PyTuple>()?;
            let same = |at| REPEAT.get(py)?.call1((whole.get_item(at)?,));
            let places = match whole.get_item(2)?.cast::<PyString>() {
                Err(_) => same(2)?,
                Ok(places) => split_ids(places, self.count)?.into_any(),
            };
            let made = MAP.get(py)?.call1((
                RECEIPT.get(py)?,
                same(0)?,
                split_ids(self.joined.bind(py), self.count)?,
                places,
                same(3)?,
                COUNT.get(py)?.call1((whole.get_item(4)?,))?,
                same(5)?,
                same(6)?,
                same(7)?,
                same(8)?,
            ))?;
            let made = py.get_type::<PyList>().call1((made,))?;
            Ok::<_, PyErr>(made.cast_into::<PyList>()?.unbind())
        })?;
        Ok(made.bind(py))
    }

    /// Return the receipt of one message.
    pub(crate) fn make<'py>(&self, py: Python<'py>, at: usize) -> PyResult<Bound<'py, PyAny>> {
        self.all(py)?.get_item(at)
    }
}

/// Return ids that were joined by commas; the same for each message if they are not as many.
fn split_ids<'py>(joined: &Bound<'py, PyString>, count: usize) -> PyResult<Bound<'py, PyList>> {
    let py = joined.py();
    let found = joined.call_method1(intern!(py, "split"), (",",))?;
    let found = found.cast_into::<PyList>()?;
    if found.len() == count {
        return Ok(found);
    }
    PyList::new(py, (0..count).map(|_| joined))
}

#[pymethods]
impl BatchReceipts {
    #[new]
    fn new(whole: Py<PyAny>, ids: Py<PyString>, count: usize) -> Self {
        BatchReceipts {
            whole,
            joined: ids,
            count,
            made: PyOnceLock::new(),
        }
    }

    /// Return the receipt of one message.
    fn own<'py>(&self, py: Python<'py>, at: usize) -> PyResult<Bound<'py, PyAny>> {
        self.make(py, at)
    }

    /// Return the receipts of all messages.
    fn each<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.all(py)?.try_iter()?.into_any())
    }
}
