//! `GrpcConnection`: a gRPC connection as Python uses it, one call into the core per read.

use std::panic::{catch_unwind, AssertUnwindSafe};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

use crate::grpc::{Event, Limits, Server};

const CALLED: u8 = 0;
const RECEIVED: u8 = 1;
const WRITABLE: u8 = 2;
const RESET: u8 = 3;

/// The bytes for the client, what came from it, and whether there is more to send than fitted.
type Outcome<'py> = (Bound<'py, PyBytes>, Bound<'py, PyList>, bool);

/// A gRPC server's side of one HTTP/2 connection, without a socket.
#[pyclass(module = "pocketmq_core")]
pub struct GrpcConnection(Server);

#[pymethods]
impl GrpcConnection {
    /// `names` are the headers of calls that are handed over.
    #[new]
    fn new(names: Vec<String>, streams: u32, headers: u32, message: usize) -> Self {
        let limits = Limits {
            streams,
            headers,
            message,
        };
        GrpcConnection(Server::new(names, limits))
    }

    /// Take in bytes, and return what is to be sent and what came.
    fn feed<'py>(&mut self, py: Python<'py>, data: &[u8]) -> PyResult<Outcome<'py>> {
        self.0.put(data);
        self.flush(py)
    }

    /// Return what is to be sent and what came of it.
    fn flush<'py>(&mut self, py: Python<'py>) -> PyResult<Outcome<'py>> {
        let server = &mut self.0;
        // A panic must cost this connection alone: as an exception of its own kind it would end all.
        let done = catch_unwind(AssertUnwindSafe(|| {
            let events = server.advance();
            let (output, more) = server.output();
            (output, events, more)
        }));
        let (output, events, more) =
            done.map_err(|_| PyRuntimeError::new_err("HTTP/2 failed in the native core"))?;
        let found = PyList::empty(py);
        for event in events {
            found.append(as_tuple(py, event)?)?;
        }
        Ok((PyBytes::new(py, &output), found, more))
    }

    /// Ask for the next message of a call.
    fn want(&mut self, stream: u32) {
        self.0.want(stream);
    }

    /// Send a message; false if it has not left yet, and its end comes as an event.
    fn write(&mut self, stream: u32, message: &[u8]) -> bool {
        self.0.write(stream, message)
    }

    /// Send the only message of a call, and its end.
    fn answer(&mut self, stream: u32, message: &[u8]) {
        self.0.end(stream, Some(message), 0, "");
    }

    /// End a call with a status of gRPC.
    fn end(&mut self, stream: u32, code: u32, text: &str) {
        self.0.end(stream, None, code, text);
    }

    /// Accept no more calls.
    fn leave(&mut self) {
        self.0.leave();
    }

    /// Close the connection, whatever is open.
    fn close(&mut self) {
        self.0.close();
    }

    /// Whether it is over once its output has left.
    #[getter]
    fn closed(&self) -> bool {
        self.0.is_closed()
    }

    /// Whether the client has greeted.
    #[getter]
    fn greeted(&self) -> bool {
        self.0.is_open()
    }
}

fn as_tuple(py: Python<'_>, event: Event) -> PyResult<Bound<'_, PyTuple>> {
    let bytes = |message: Option<bytes::Bytes>| message.map(|raw| PyBytes::new(py, &raw));
    match event {
        Event::Called(stream, head, message, ended) => {
            let fields = PyTuple::new(py, head.fields)?;
            let path = head.path;
            (
                CALLED,
                stream,
                path,
                fields,
                head.timeout,
                bytes(message),
                ended,
            )
                .into_pyobject(py)
        }
        Event::Received(stream, message, ended) => {
            (RECEIVED, stream, bytes(message), ended).into_pyobject(py)
        }
        Event::Writable(stream) => (WRITABLE, stream).into_pyobject(py),
        Event::Reset(stream) => (RESET, stream).into_pyobject(py),
    }
}
