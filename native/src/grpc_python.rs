//! `GrpcConnection`: a gRPC connection as Python uses it, one call into the core per read.

use std::collections::HashMap;
use std::panic::{catch_unwind, AssertUnwindSafe};

use bytes::Bytes;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

use crate::grpc::{Event, Limits, Server};
use crate::grpc_head::Head;
use crate::grpc_plain::GrpcCall;
use crate::grpc_proto::ascii;
use crate::grpc_short::GrpcShortcuts;

const CALLED: u8 = 0;
const RECEIVED: u8 = 1;
const WRITABLE: u8 = 2;
const RESET: u8 = 3;

/// The bytes for the client alone; or the plain calls alone; or all of it: the bytes, what came,
/// whether there is more to send than fitted, and the plain calls.
type Outcome<'py> = Bound<'py, PyAny>;

/// A gRPC server's side of one HTTP/2 connection, without a socket.
#[pyclass(module = "pocketmq_core")]
pub struct GrpcConnection {
    server: Server,
    /// Requests of plain calls that brokers have not answered yet: where they went, and their numbers.
    posted: HashMap<u32, (Py<PyAny>, i64)>,
    shortcuts: Option<Py<GrpcShortcuts>>,
    client: Option<Client>,
}

/// A client that has named itself: the value of the first header, and its address.
struct Client {
    id: String,
    address: String,
}

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
        GrpcConnection {
            server: Server::new(&names, limits),
            posted: HashMap::new(),
            shortcuts: None,
            client: None,
        }
    }

    /// Let plain calls of a client take a short way.
    fn shorten(&mut self, shortcuts: Py<GrpcShortcuts>, id: String, address: String) {
        let plain = |text: &str| ascii(text.as_bytes()).is_some_and(|text| !text.trim().is_empty());
        if plain(&id) && plain(&address) {
            self.shortcuts = Some(shortcuts);
            self.client = Some(Client { id, address });
        }
    }

    /// Take in bytes, and return what is to be sent and what came.
    fn feed<'py>(slf: &Bound<'py, Self>, data: &[u8]) -> PyResult<Outcome<'py>> {
        slf.borrow_mut().server.put(data);
        Self::flush(slf)
    }

    /// Return what is to be sent and what came of it.
    fn flush<'py>(slf: &Bound<'py, Self>) -> PyResult<Outcome<'py>> {
        let py = slf.py();
        let mut this = slf.borrow_mut();
        let server = &mut this.server;
        // A panic must cost this connection alone: as an exception of its own kind it would end all.
        let done = catch_unwind(AssertUnwindSafe(|| {
            let events = server.advance();
            let (output, more) = server.output();
            (output, events, more)
        }));
        let (output, events, more) =
            done.map_err(|_| PyRuntimeError::new_err("HTTP/2 failed in the native core"))?;
        let closed = server.is_closed();
        let output = PyBytes::new(py, &output);
        if events.is_empty() && !more && !closed {
            return Ok(output.into_any());
        }
        let (found, plain) = (PyList::empty(py), PyList::empty(py));
        for event in events {
            let taken = catch_unwind(AssertUnwindSafe(|| this.plain_call(slf, event)));
            match taken.map_err(|_| PyRuntimeError::new_err("a call failed in the native core"))? {
                Ok(call) => plain.append(Bound::new(py, call)?)?,
                Err(event) => found.append(this.as_tuple(py, event)?)?,
            }
        }
        if found.is_empty() && output.as_bytes().is_empty() && !more && !closed {
            return Ok(plain.into_any());
        }
        Ok((output, found, more, plain).into_pyobject(py)?.into_any())
    }

    /// Ask for the next message of a call.
    fn want(&mut self, stream: u32) {
        self.server.want(stream);
    }

    /// Send a message; false if it has not left yet, and its end comes as an event.
    fn write(&mut self, stream: u32, message: &[u8]) -> bool {
        self.server.write(stream, message)
    }

    /// Send the only message of a call, and its end.
    fn answer(&mut self, stream: u32, message: &[u8]) {
        self.finish(stream, message);
    }

    /// Send all messages of a call, framed, and its end; false if the client does not take all now.
    fn answer_framed(&mut self, stream: u32, framed: &[u8]) -> bool {
        self.server.answer_framed(stream, framed)
    }

    /// End a call with a status of gRPC.
    fn end(&mut self, stream: u32, code: u32, text: &str) {
        self.posted.remove(&stream);
        self.server.end(stream, None, code, text);
    }

    /// End all calls that are open with a status of gRPC.
    fn end_all(&mut self, code: u32, text: &str) {
        self.server.end_all(code, text);
    }

    /// Take all requests of plain calls that brokers have not answered: where they went, and their
    /// numbers. For a connection that is gone.
    fn take_posted(&mut self) -> Vec<(Py<PyAny>, i64)> {
        self.posted.drain().map(|(_, request)| request).collect()
    }

    /// Accept no more calls.
    fn leave(&mut self) {
        self.server.leave();
    }

    /// Close the connection, whatever is open.
    fn close(&mut self) {
        self.server.close();
    }

    /// Whether it is over once its output has left.
    #[getter]
    fn closed(&self) -> bool {
        self.server.is_closed()
    }

    /// The number of calls that are not over.
    #[getter]
    fn open_calls(&self) -> usize {
        self.server.open_calls()
    }

    /// Whether the client has greeted.
    #[getter]
    fn greeted(&self) -> bool {
        self.server.is_open()
    }
}

impl GrpcConnection {
    /// Return an event as the plain call that it is, or as it was.
    fn plain_call(&self, slf: &Bound<'_, Self>, event: Event) -> Result<GrpcCall, Event> {
        let (Some(shortcuts), Some(client)) = (&self.shortcuts, &self.client) else {
            return Err(event);
        };
        let Event::Called(stream, head, Some(request), true) = event else {
            return Err(event);
        };
        let py = slf.py();
        let known = head.first() == Some(&client.id);
        let begun = known
            .then(|| {
                let mut shortcuts = shortcuts.borrow_mut(py);
                shortcuts.begin(py, head.path(), &request, &client.address)
            })
            .flatten();
        match begun {
            Some(begun) => Ok(GrpcCall::new(
                slf.clone().unbind(),
                stream,
                head,
                request,
                begun,
            )),
            None => Err(Event::Called(stream, head, Some(request), true)),
        }
    }

    fn as_tuple<'py>(&mut self, py: Python<'py>, event: Event) -> PyResult<Bound<'py, PyTuple>> {
        match event {
            Event::Called(stream, head, message, ended) => {
                called(py, stream, &head, message.as_ref(), ended)
            }
            Event::Received(stream, message, ended) => {
                let message = message.map(|raw| PyBytes::new(py, &raw));
                (RECEIVED, stream, message, ended).into_pyobject(py)
            }
            Event::Writable(stream) => (WRITABLE, stream).into_pyobject(py),
            Event::Reset(stream) => {
                let posted = self.posted.remove(&stream);
                (RESET, stream, posted).into_pyobject(py)
            }
        }
    }

    /// Note the request of a plain call, until it is answered or its client ends the call.
    pub(crate) fn post(&mut self, stream: u32, place: Py<PyAny>, opaque: i64) {
        if self.server.has(stream) {
            self.posted.insert(stream, (place, opaque));
        }
    }

    /// The client whose plain calls take a short way.
    pub(crate) fn client_id(&self) -> Option<&str> {
        self.client.as_ref().map(|client| &client.id[..])
    }

    /// Whether a call is not over.
    pub(crate) fn has(&self, stream: u32) -> bool {
        self.server.has(stream)
    }

    /// Send the only message of a call, and its end.
    pub(crate) fn finish(&mut self, stream: u32, message: &[u8]) {
        self.posted.remove(&stream);
        self.server.end(stream, Some(message), 0, "");
    }
}

/// Return the event of a call that begins.
pub(crate) fn called<'py>(
    py: Python<'py>,
    stream: u32,
    head: &Head,
    message: Option<&Bytes>,
    ended: bool,
) -> PyResult<Bound<'py, PyTuple>> {
    let fields = PyTuple::new(py, head.fields())?;
    let message = message.map(|raw| PyBytes::new(py, raw));
    (
        CALLED,
        stream,
        head.path(),
        fields,
        head.timeout(),
        message,
        ended,
    )
        .into_pyobject(py)
}
