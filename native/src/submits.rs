//! What `submit` does for most messages, in one call: the open batch of the topic, and a place in it.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, ThreadId};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::shared::{fields_of, OpenPlaces};

/// What `submit` tries first: a place in the open batch of the message's topic.
#[pyclass(module = "pocketmq_core", frozen)]
pub(crate) struct PlainSubmits {
    lanes: Py<PyDict>,
    made_on: ThreadId,
    stopped: AtomicBool,
}

#[pymethods]
impl PlainSubmits {
    #[new]
    fn new(lanes: Py<PyDict>) -> Self {
        PlainSubmits {
            lanes,
            made_on: thread::current().id(),
            stopped: AtomicBool::new(false),
        }
    }

    /// Give a plain message a granted place, and return its future; `None` if there is none.
    fn add<'py>(
        &self,
        message: &Bound<'py, PyAny>,
        timeout: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = message.py();
        if self.stopped.load(Relaxed) || thread::current().id() == self.made_on {
            return Ok(None);
        }
        let find = || {
            let fields = fields_of(message)?;
            let topic = fields.get_borrowed_item(0).ok()?;
            let lane = self.lanes.bind(py).get_item(topic).ok()??;
            let places = lane.getattr(intern!(py, "places")).ok()?;
            Some((fields, places.cast_into_exact::<OpenPlaces>().ok()?))
        };
        match find() {
            None => Ok(None),
            Some((fields, places)) => places.get().take(message, &fields, timeout),
        }
    }

    /// Add nothing from now on.
    fn stop(&self) {
        self.stopped.store(true, Relaxed);
    }
}
