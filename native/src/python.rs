//! What the core takes from Python: classes of `pocketmq`, found when first needed.
//!
//! `pocketmq` imports this module while it is being imported itself, so nothing of it can be
//! looked up before a function is called.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// Something of a Python module, looked up once.
pub struct Imported {
    module: &'static str,
    name: &'static str,
    found: PyOnceLock<Py<PyAny>>,
}

impl Imported {
    /// Name a thing; nothing is imported yet.
    pub const fn new(module: &'static str, name: &'static str) -> Self {
        Imported {
            module,
            name,
            found: PyOnceLock::new(),
        }
    }

    /// Return it.
    pub fn get<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyAny>> {
        self.found
            .get_or_try_init(py, || {
                Ok(py.import(self.module)?.getattr(self.name)?.unbind())
            })
            .map(|found| found.bind(py))
    }
}

static PURE: Imported = Imported::new("pocketmq.native", "pure");

/// Return the pure function of a name: it gets what a function of the core does not handle itself,
/// so that odd input has the same result and the same error on both paths.
pub fn pure<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    PURE.get(py)?.get_item(name)
}
