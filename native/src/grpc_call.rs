//! One gRPC call on a stream: messages cut from its bytes, and messages and a status sent back.
//!
//! A message is handed over when it is wanted; bytes of the next one stay within the stream's window
//! meanwhile. An answer leaves as fast as the client's windows allow.

use std::task::{Context, Poll, Waker};

use bytes::{Buf, Bytes, BytesMut};
use h2::server::SendResponse;
use h2::{RecvStream, SendStream};
use http::header::{HeaderMap, HeaderName, HeaderValue, CONTENT_TYPE};
use http::{Response, StatusCode};

/// Bytes before a message: whether it is compressed, and its length.
const PREFIX: usize = 5;
/// Codes of gRPC.
pub(crate) const RESOURCE_EXHAUSTED: u32 = 8;
pub(crate) const UNIMPLEMENTED: u32 = 12;
pub(crate) const INTERNAL: u32 = 13;

const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
const IDENTITY: HeaderValue = HeaderValue::from_static("identity");
const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");

/// Why a call cannot be read on: gRPC's code and a text; None if the client reset it.
pub(crate) type Broken = Option<(u32, &'static str)>;

/// What came for a call.
#[derive(Default)]
pub(crate) struct Arrived {
    pub(crate) message: Option<Bytes>,
    pub(crate) ended: bool,
}

/// Whether a call goes on.
#[derive(PartialEq, Eq, Clone, Copy)]
pub(crate) enum Sent {
    /// All that was to be sent has left; there may be more.
    All,
    /// The client's window is used up.
    Waiting,
    /// The status has left, or the stream is gone.
    Over,
}

/// A call that is not over.
pub(crate) struct Call {
    recv: RecvStream,
    respond: SendResponse<Bytes>,
    send: Option<SendStream<Bytes>>,
    pub(crate) waker: Waker,
    partial: BytesMut,
    unreleased: usize,
    pub(crate) wanted: bool,
    ended: bool,
    unsent: Bytes,
    status: Option<(u32, String)>,
    /// Whether the sender waits until what it wrote has left.
    pub(crate) blocked: bool,
}

impl Call {
    pub(crate) fn new(recv: RecvStream, respond: SendResponse<Bytes>, waker: Waker) -> Self {
        Call {
            recv,
            respond,
            send: None,
            waker,
            partial: BytesMut::new(),
            unreleased: 0,
            wanted: true,
            ended: false,
            unsent: Bytes::new(),
            status: None,
            blocked: false,
        }
    }

    /// Bytes of unfinished messages.
    pub(crate) fn held(&self) -> usize {
        self.partial.len()
    }

    /// Take what came. Bytes beyond a message that is not wanted stay where they are.
    pub(crate) fn receive(&mut self, largest: usize) -> Result<Arrived, Broken> {
        let mut arrived = Arrived::default();
        let waker = self.waker.clone();
        let mut context = Context::from_waker(&waker);
        if self.wanted {
            let unreleased = std::mem::take(&mut self.unreleased);
            let _ = self.recv.flow_control().release_capacity(unreleased);
        }
        loop {
            if self.wanted {
                arrived.message = self.cut(largest)?;
                self.wanted = arrived.message.is_none();
            }
            if self.ended || !(self.wanted || self.partial.is_empty()) {
                break;
            }
            match self.recv.poll_data(&mut context) {
                Poll::Ready(Some(Ok(chunk))) => {
                    if self.wanted {
                        let _ = self.recv.flow_control().release_capacity(chunk.len());
                    } else {
                        self.unreleased += chunk.len();
                    }
                    self.partial.extend_from_slice(&chunk);
                }
                Poll::Ready(Some(Err(_))) => return Err(None),
                Poll::Ready(None) => {
                    self.ended = true;
                    if self.wanted && !self.partial.is_empty() {
                        return Err(Some((INTERNAL, "the last message is cut short")));
                    }
                    arrived.ended = true;
                    break;
                }
                Poll::Pending => break,
            }
        }
        if self.is_reset(&mut context) {
            return Err(None);
        }
        Ok(arrived)
    }

    fn is_reset(&mut self, context: &mut Context<'_>) -> bool {
        match &mut self.send {
            Some(send) => send.poll_reset(context).is_ready(),
            None => self.respond.poll_reset(context).is_ready(),
        }
    }

    /// Cut a message off, if it is whole.
    fn cut(&mut self, largest: usize) -> Result<Option<Bytes>, Broken> {
        let Some((prefix, _)) = self.partial.split_first_chunk::<PREFIX>() else {
            return Ok(None);
        };
        let [compressed, a, b, c, d] = *prefix;
        let size = u32::from_be_bytes([a, b, c, d]) as usize;
        if compressed != 0 {
            return Err(Some((UNIMPLEMENTED, "compressed messages are not read")));
        }
        if size > largest {
            return Err(Some((RESOURCE_EXHAUSTED, "the message is too large")));
        }
        if self.partial.len() < PREFIX + size {
            return Ok(None);
        }
        self.partial.advance(PREFIX);
        Ok(Some(self.partial.split_to(size).freeze()))
    }

    /// Add a message to what is to be sent.
    pub(crate) fn add(&mut self, message: &[u8]) {
        let mut framed = Vec::with_capacity(self.unsent.len() + PREFIX + message.len());
        framed.extend_from_slice(&self.unsent);
        push_framed(&mut framed, message);
        self.unsent = framed.into();
    }

    /// Send messages that are framed already and a status, if the client takes all of it now.
    pub(crate) fn answer_framed(&mut self, framed: &[u8]) -> bool {
        self.fits(framed.len()).unwrap_or(false) && {
            self.unsent = Bytes::copy_from_slice(framed);
            self.finish(0, "");
            true
        }
    }

    fn fits(&mut self, size: usize) -> Result<bool, h2::Error> {
        let idle = self.unsent.is_empty() && self.status.is_none();
        let send = match &mut self.send {
            Some(send) => send,
            None => {
                let made = self.respond.send_response(head(), false)?;
                self.send.insert(made)
            }
        };
        send.reserve_capacity(size);
        Ok(idle && send.capacity() >= size)
    }

    /// Let the call end with a status, after what is to be sent.
    pub(crate) fn finish(&mut self, code: u32, text: &str) {
        self.status.get_or_insert_with(|| (code, text.to_owned()));
    }

    /// Send what the client's windows allow.
    pub(crate) fn transmit(&mut self) -> Sent {
        self.try_transmit().unwrap_or(Sent::Over)
    }

    fn try_transmit(&mut self) -> Result<Sent, h2::Error> {
        if self.unsent.is_empty() && self.status.is_none() {
            return Ok(Sent::All);
        }
        if self.send.is_none() {
            let mut response = head();
            if let (true, Some((code, text))) = (self.unsent.is_empty(), &self.status) {
                add_status(response.headers_mut(), *code, text);
                self.respond.send_response(response, true)?;
                return Ok(Sent::Over);
            }
            self.send = Some(self.respond.send_response(response, false)?);
        }
        let Some(send) = &mut self.send else {
            return Ok(Sent::Over);
        };
        let mut context = Context::from_waker(&self.waker);
        while !self.unsent.is_empty() {
            send.reserve_capacity(self.unsent.len());
            let mut size = send.capacity();
            if size == 0 {
                size = match send.poll_capacity(&mut context) {
                    Poll::Ready(Some(found)) => found?,
                    Poll::Ready(None) => return Ok(Sent::Over),
                    Poll::Pending => return Ok(Sent::Waiting),
                };
            }
            let part = self.unsent.split_to(size.min(self.unsent.len()));
            send.send_data(part, false)?;
        }
        let Some((code, text)) = &self.status else {
            return Ok(Sent::All);
        };
        let mut trailers = HeaderMap::with_capacity(2);
        add_status(&mut trailers, *code, text);
        send.send_trailers(trailers)?;
        Ok(Sent::Over)
    }
}

/// Append a message as it travels.
pub(crate) fn push_framed(out: &mut Vec<u8>, message: &[u8]) {
    out.push(0);
    let size = u32::try_from(message.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&size.to_be_bytes());
    out.extend_from_slice(message);
}

/// Return how each response begins.
fn head() -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::OK;
    response.headers_mut().insert(CONTENT_TYPE, GRPC);
    response
}

fn add_status(headers: &mut HeaderMap, code: u32, text: &str) {
    headers.insert(STATUS, HeaderValue::from(code));
    if let Ok(value) = HeaderValue::from_str(&percent_encoded(text)) {
        if !text.is_empty() {
            headers.insert(MESSAGE, value);
        }
    }
    if code == UNIMPLEMENTED {
        headers.insert(ACCEPT_ENCODING, IDENTITY);
    }
}

/// Return a text as gRPC writes it: what is not printable ASCII as `%` and two digits.
fn percent_encoded(text: &str) -> String {
    let mut made = String::with_capacity(text.len());
    for byte in text.bytes() {
        if (b' '..=b'~').contains(&byte) && byte != b'%' {
            made.push(char::from(byte));
        } else {
            made.push_str(&format!("%{byte:02X}"));
        }
    }
    made
}
