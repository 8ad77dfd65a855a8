//! One plain call of a gRPC client: its request to a broker, and the response to its client.

use bytes::Bytes;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::frames::read_head;
use crate::grpc_ack::acknowledged;
use crate::grpc_head::Head;
use crate::grpc_python::{called, GrpcConnection};
use crate::grpc_send::sent;
use crate::stored::answer;
use crate::wire::push_decimal;

/// What a response is made of.
pub(crate) enum Kind {
    Send { message_id: String },
    Ack { message_id: String, handle: String },
}

/// A call that needs no more than a broker's response.
pub(crate) struct Begun {
    pub(crate) kind: Kind,
    pub(crate) place: Py<PyAny>,
    pub(crate) header: Vec<u8>,
    pub(crate) tail: Bytes,
    pub(crate) ok: Bytes,
    pub(crate) body: Bytes,
}

/// One such call, where the response to its request goes.
#[pyclass(module = "pocketmq_core")]
pub struct GrpcCall {
    connection: Py<GrpcConnection>,
    stream: u32,
    head: Box<Head>,
    request: Bytes,
    begun: Begun,
    owner: Option<Py<PyAny>>,
}

impl GrpcCall {
    pub(crate) fn new(
        connection: Py<GrpcConnection>,
        stream: u32,
        head: Box<Head>,
        request: Bytes,
        begun: Begun,
    ) -> Self {
        GrpcCall {
            connection,
            stream,
            head,
            request,
            begun,
            owner: None,
        }
    }

    /// Return the response, if a broker's one says no more than that all is well.
    pub(crate) fn response(&self, header: &[u8]) -> Option<Vec<u8>> {
        let ok = &self.begun.ok;
        match &self.begun.kind {
            Kind::Send { message_id } => {
                let (_, (_, _, offset, stored)) = answer(header, &mut Vec::new())?;
                let transaction_id = stored.transaction_id.unwrap_or("");
                let recall_handle = stored.recall_handle.unwrap_or("");
                Some(sent(ok, message_id, transaction_id, offset, recall_handle))
            }
            Kind::Ack { message_id, handle } => {
                let head = read_head(header)?;
                (head.code == 0).then(|| acknowledged(ok, message_id, handle))
            }
        }
    }
}

#[pymethods]
impl GrpcCall {
    /// What Python knows the place by.
    #[getter]
    fn place(&self, py: Python<'_>) -> Py<PyAny> {
        self.begun.place.clone_ref(py)
    }

    /// Who acknowledges a message, and its receipt handle; None of a send.
    #[getter]
    fn receipt(&self, py: Python<'_>) -> Option<(String, String)> {
        let Kind::Ack { handle, .. } = &self.begun.kind else {
            return None;
        };
        let connection = self.connection.borrow(py);
        Some((connection.client_id()?.to_owned(), handle.clone()))
    }

    /// The call as the event that it is without a short way.
    fn event<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        called(py, self.stream, &self.head, Some(&self.request), true)
    }

    /// What sends the response, and gets what is unusual or fails.
    #[setter]
    fn set_owner(&mut self, owner: Py<PyAny>) {
        self.owner = Some(owner);
    }

    /// Return the request with its number, which is open from now on.
    fn frame<'py>(&self, py: Python<'py>, opaque: i64) -> Bound<'py, PyBytes> {
        let place = self.begun.place.clone_ref(py);
        let mut connection = self.connection.borrow_mut(py);
        connection.post(self.stream, place, opaque);
        let begun = &self.begun;
        let mut made = Vec::with_capacity(32 + begun.header.len() + begun.body.len());
        made.extend_from_slice(&[0; 8]);
        made.extend_from_slice(&begun.header);
        push_decimal(&mut made, opaque);
        made.extend_from_slice(&begun.tail);
        let size = (made.len() - 8) as u32;
        made.extend_from_slice(&begun.body);
        let length = (made.len() - 4) as u32;
        made[..4].copy_from_slice(&length.to_be_bytes());
        made[4..8].copy_from_slice(&size.to_be_bytes());
        PyBytes::new(py, &made)
    }

    /// Whether the client has ended the call.
    fn done(&self, py: Python<'_>) -> bool {
        !self.connection.borrow(py).has(self.stream)
    }

    /// Take a response that is unusual.
    fn set_result(&self, py: Python<'_>, answer: &Bound<'_, PyAny>) -> PyResult<()> {
        self.unusual(py, answer)
    }

    /// Take the reason why no response comes.
    fn set_exception(&self, py: Python<'_>, error: &Bound<'_, PyAny>) -> PyResult<()> {
        self.unusual(py, error)
    }
}

impl GrpcCall {
    /// Send the response; return who has to send more, if the client has not ended the call.
    pub(crate) fn answer(&self, py: Python<'_>, response: &[u8]) -> Option<Py<PyAny>> {
        let owner = self.owner.as_ref()?;
        let mut connection = self.connection.borrow_mut(py);
        if !connection.has(self.stream) {
            return None;
        }
        connection.finish(self.stream, response);
        Some(owner.clone_ref(py))
    }

    fn unusual(&self, py: Python<'_>, what: &Bound<'_, PyAny>) -> PyResult<()> {
        let Some(owner) = &self.owner else {
            return Ok(());
        };
        let arguments = (self.event(py)?, self.begun.place.bind(py), what);
        owner.call_method1(py, intern!(py, "unusual"), arguments)?;
        Ok(())
    }
}
