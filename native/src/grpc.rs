//! A gRPC server's side of one HTTP/2 connection, without a socket: bytes in, events out, bytes out.
//!
//! HTTP/2 itself is the crate `h2`, polled in memory. A client cannot make this hold more than its
//! windows, one unfinished message for each stream up to a limit for all of them, and one answer for
//! each stream; what else it does too often (resets, pings, tiny frames) `h2` ends.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use h2::server::{Builder, Connection, Handshake, SendResponse};
use h2::{Reason, RecvStream};
use http::header::CONTENT_TYPE;
use http::{Method, Request, Response, StatusCode};

use crate::grpc_call::{Call, Sent, RESOURCE_EXHAUSTED};
use crate::grpc_head::{self, Head, Names};
use crate::grpc_pipe::{Nudge, Pipe, Ready};

const STREAM_WINDOW: u32 = 1024 * 1024;
const CONNECTION_WINDOW: u32 = 4 * 1024 * 1024;
const SEND_BUFFER: usize = 64 * 1024;
const LONGEST_PATH: usize = 1024;

/// What one client may use.
#[derive(Clone)]
pub struct Limits {
    /// Calls that may be open.
    pub streams: u32,
    /// Bytes of a call's headers.
    pub headers: u32,
    /// Bytes of one message, and of all unfinished ones.
    pub message: usize,
}

/// What came from the client.
pub enum Event {
    /// A new call, with its first message if it is there.
    Called(u32, Box<Head>, Option<Bytes>, bool),
    /// A message that was wanted, or the end of the client's messages.
    Received(u32, Option<Bytes>, bool),
    /// What was written has left.
    Writable(u32),
    /// The client ended the call, or broke its rules.
    Reset(u32),
}

enum State {
    Greeting(Box<Handshake<Pipe, Bytes>>),
    Open(Box<Connection<Pipe, Bytes>>),
    Closed,
}

/// One connection.
pub struct Server {
    state: State,
    pipe: Pipe,
    ready: Ready,
    calls: HashMap<u32, Call>,
    names: Names,
    limits: Limits,
    events: Vec<Event>,
    held: usize,
}

impl Server {
    /// Begin one. `names` are the headers of calls that are handed over.
    pub fn new(names: &[String], limits: Limits) -> Self {
        let pipe = Pipe::default();
        let handshake = Builder::new()
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_concurrent_streams(limits.streams)
            .max_header_list_size(limits.headers)
            .max_send_buffer_size(SEND_BUFFER)
            .handshake(pipe.clone());
        Server {
            state: State::Greeting(Box::new(handshake)),
            pipe,
            ready: Ready::default(),
            calls: HashMap::new(),
            names: grpc_head::names(names),
            limits,
            events: Vec::new(),
            held: 0,
        }
    }

    /// Take in bytes of the client; `advance` handles them.
    pub fn put(&mut self, data: &[u8]) {
        if !self.is_closed() {
            self.pipe.put(data);
        }
    }

    /// Note that the client sends no more.
    pub fn end_of_input(&mut self) {
        self.pipe.end();
    }

    /// Whether the connection is over once its output has left.
    pub fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed)
    }

    /// Whether the client has greeted.
    pub fn is_open(&self) -> bool {
        matches!(self.state, State::Open(_))
    }

    /// Whether a call is not over.
    pub fn has(&self, stream: u32) -> bool {
        self.calls.contains_key(&stream)
    }

    /// The number of calls that are not over.
    pub fn open_calls(&self) -> usize {
        self.calls.len()
    }

    /// Do all that can be done, and return what came of it.
    pub fn advance(&mut self) -> Vec<Event> {
        loop {
            self.poll();
            let ready = self.ready.take();
            if ready.is_empty() {
                return std::mem::take(&mut self.events);
            }
            for stream in ready {
                self.receive(stream, None);
                self.transmit(stream);
            }
        }
    }

    /// Take the bytes for the client, and whether there are more.
    pub fn output(&mut self) -> (Vec<u8>, bool) {
        self.pipe.take()
    }

    /// Ask for the next message of a call.
    pub fn want(&mut self, stream: u32) {
        if let Some(call) = self.calls.get_mut(&stream) {
            call.wanted = true;
            self.receive(stream, None);
        }
    }

    /// Send a message; false if it has not left yet: wait for `Writable`.
    pub fn write(&mut self, stream: u32, message: &[u8]) -> bool {
        let Some(call) = self.calls.get_mut(&stream) else {
            return true;
        };
        call.add(message);
        self.transmit(stream)
    }

    /// End a call with a status, after a last message if there is one.
    pub fn end(&mut self, stream: u32, message: Option<&[u8]>, code: u32, text: &str) {
        if let Some(call) = self.calls.get_mut(&stream) {
            if let Some(message) = message {
                call.add(message);
            }
            call.finish(code, text);
            self.transmit(stream);
        }
    }

    /// Send all messages of a call, framed, and its end; false if the client does not take all now.
    pub fn answer_framed(&mut self, stream: u32, framed: &[u8]) -> bool {
        let fits = match self.calls.get_mut(&stream) {
            Some(call) => call.answer_framed(framed),
            None => false,
        };
        if fits {
            self.transmit(stream);
        }
        fits
    }

    /// End all calls with a status.
    pub fn end_all(&mut self, code: u32, text: &str) {
        let streams: Vec<u32> = self.calls.keys().copied().collect();
        for stream in streams {
            self.end(stream, None, code, text);
        }
    }

    /// Accept no more calls; the connection closes after the last one.
    pub fn leave(&mut self) {
        if let State::Open(connection) = &mut self.state {
            connection.graceful_shutdown();
        }
    }

    /// Close the connection, whatever is open.
    pub fn close(&mut self) {
        match &mut self.state {
            State::Open(connection) => connection.abrupt_shutdown(Reason::NO_ERROR),
            _ => self.state = State::Closed,
        }
    }

    fn poll(&mut self) {
        let mut context = Context::from_waker(Waker::noop());
        loop {
            match &mut self.state {
                State::Greeting(handshake) => match Pin::new(handshake.as_mut()).poll(&mut context)
                {
                    Poll::Ready(Ok(connection)) => self.state = State::Open(Box::new(connection)),
                    Poll::Ready(Err(_)) => return self.closed(),
                    Poll::Pending => return,
                },
                State::Open(connection) => match connection.poll_accept(&mut context) {
                    Poll::Ready(Some(Ok((request, respond)))) => self.accept(request, respond),
                    Poll::Ready(_) => return self.closed(),
                    Poll::Pending => return,
                },
                State::Closed => return,
            }
        }
    }

    fn closed(&mut self) {
        self.state = State::Closed;
        let streams: Vec<u32> = self.calls.keys().copied().collect();
        for stream in streams {
            self.forget(stream);
            self.events.push(Event::Reset(stream));
        }
    }

    fn accept(&mut self, request: Request<RecvStream>, mut respond: SendResponse<Bytes>) {
        let (head, recv) = request.into_parts();
        let kind = head.headers.get(CONTENT_TYPE).map(|kind| kind.as_bytes());
        let status = if head.method != Method::POST || head.uri.path().len() > LONGEST_PATH {
            StatusCode::METHOD_NOT_ALLOWED
        } else if !kind.is_some_and(|kind| kind.starts_with(b"application/grpc")) {
            StatusCode::UNSUPPORTED_MEDIA_TYPE
        } else {
            StatusCode::OK
        };
        if status != StatusCode::OK {
            let mut response = Response::new(());
            *response.status_mut() = status;
            let _ = respond.send_response(response, true);
            return;
        }
        let stream = respond.stream_id().as_u32();
        let ready = self.ready.clone();
        let waker = Waker::from(Arc::new(Nudge { stream, ready }));
        self.calls.insert(stream, Call::new(recv, respond, waker));
        self.receive(stream, Some(Head::new(head, self.names.clone())));
    }

    fn receive(&mut self, stream: u32, head: Option<Head>) {
        let Some(call) = self.calls.get_mut(&stream) else {
            return;
        };
        let before = call.held();
        let mut outcome = call.receive(self.limits.message);
        self.held = self.held + call.held() - before;
        if outcome.is_ok() && self.held > self.limits.message {
            outcome = Err(Some((RESOURCE_EXHAUSTED, "too many unfinished messages")));
        }
        match outcome {
            Ok(arrived) => match head {
                Some(head) => {
                    let event =
                        Event::Called(stream, Box::new(head), arrived.message, arrived.ended);
                    self.events.push(event);
                }
                None if arrived.message.is_some() || arrived.ended => {
                    let event = Event::Received(stream, arrived.message, arrived.ended);
                    self.events.push(event);
                }
                None => {}
            },
            Err(broken) => {
                if let Some((code, text)) = broken {
                    call.finish(code, text);
                    call.transmit();
                }
                self.forget(stream);
                if head.is_none() {
                    self.events.push(Event::Reset(stream));
                }
            }
        }
    }

    /// Return whether all has left.
    fn transmit(&mut self, stream: u32) -> bool {
        let Some(call) = self.calls.get_mut(&stream) else {
            return true;
        };
        let sent = call.transmit();
        let blocked = std::mem::replace(&mut call.blocked, sent == Sent::Waiting);
        if blocked && sent != Sent::Waiting {
            self.events.push(Event::Writable(stream));
        }
        if sent == Sent::Over {
            self.forget(stream);
        }
        sent != Sent::Waiting
    }

    fn forget(&mut self, stream: u32) {
        if let Some(call) = self.calls.remove(&stream) {
            self.held -= call.held();
        }
    }
}
