//! Plain sends and acks of gRPC clients: requests to brokers straight from a read, and back.
//!
//! Which queue a message goes to, and by which connection, is decided in Python, some messages in
//! advance: such places are used in turn, for some messages and a short time. Python posts the
//! requests, has their timeouts, and gets what is unusual or fails.

use std::collections::HashMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyInt};

use crate::frames::{frame_at, read_head};
use crate::grpc_ack::read_ack;
use crate::grpc_plain::{Begun, GrpcCall, Kind};
use crate::grpc_send::{read_send, Rules};

/// Topics that have places, and groups, topics and brokers that have one for acks.
const MOST: usize = 2_000;
/// Bytes of a body at most.
const LARGEST: usize = 64 * 1024;
/// Bytes of a response's header that is read without counting its fields first.
const LONGEST: usize = 64 * 1024;
const RESPONSE_FLAG: i32 = 1;

/// A queue's place: what Python knows it by, and what its requests have in common.
struct Place {
    own: Py<PyAny>,
    head: Py<PyBytes>,
    middle: Option<Py<PyBytes>>,
}

/// Places that are used in turn, for a number of requests and a short time.
struct Window {
    places: Vec<Place>,
    used: usize,
    count: usize,
    until: Instant,
}

impl Window {
    /// The place of the next request, if there is one and it is not too late.
    fn next(&self) -> Option<&Place> {
        if self.used >= self.count || self.until < Instant::now() {
            return None;
        }
        self.places.get(self.used.checked_rem(self.places.len())?)
    }
}

/// What plain calls of all clients of a proxy need.
#[pyclass(module = "pocketmq_core")]
pub struct GrpcShortcuts {
    rules: Rules,
    ok: Bytes,
    tail: Bytes,
    send_path: String,
    ack_path: String,
    sends: HashMap<String, Window>,
    acks: HashMap<String, Window>,
}

#[pymethods]
impl GrpcShortcuts {
    /// `service` is how paths begin, `ok` the status of what succeeded, `tail` how headers end.
    #[new]
    fn new(
        service: &str,
        ok: Vec<u8>,
        tail: Vec<u8>,
        limits: (usize, usize, usize),
        reserved: Vec<String>,
    ) -> Self {
        let (body, properties, properties_size) = limits;
        GrpcShortcuts {
            rules: Rules {
                body: body.min(LARGEST),
                properties,
                properties_size,
                reserved: reserved.into_iter().collect(),
            },
            ok: ok.into(),
            tail: tail.into(),
            send_path: format!("{service}/SendMessage"),
            ack_path: format!("{service}/AckMessage"),
            sends: HashMap::new(),
            acks: HashMap::new(),
        }
    }

    /// Let the next plain sends to a topic, `count` of them, go to these places in turn.
    fn offer_sends(
        &mut self,
        topic: String,
        places: Vec<(Py<PyAny>, Py<PyBytes>, Py<PyBytes>)>,
        count: usize,
        seconds: f64,
    ) {
        let made = |(own, head, middle)| Place {
            own,
            head,
            middle: Some(middle),
        };
        let places = places.into_iter().map(made).collect();
        keep(&mut self.sends, topic, places, count, seconds);
    }

    /// Let plain acks of a group, topic and broker go to a place.
    fn offer_acks(
        &mut self,
        names: (String, String, String),
        own: Py<PyAny>,
        head: Py<PyBytes>,
        seconds: f64,
    ) {
        let middle = None;
        let places = vec![Place { own, head, middle }];
        keep(
            &mut self.acks,
            key_of(&names.0, &names.1, &names.2),
            places,
            1,
            seconds,
        );
    }

    /// The number of sends to a topic that did not use their places; None while these are good.
    fn left(&self, topic: &str) -> Option<usize> {
        let Some(window) = self.sends.get(topic) else {
            return Some(0);
        };
        let left = window.count - window.used;
        (left == 0 || window.until < Instant::now()).then_some(left)
    }

    /// Answer plain calls by the responses at a position of a read, and let their connections send
    /// that; return where they end, behind 0: no caller in Python asks again.
    #[staticmethod]
    fn read_answers(
        data: &Bound<'_, PyBytes>,
        start: usize,
        limit: i64,
        waiting: &Bound<'_, PyDict>,
    ) -> PyResult<(usize, usize)> {
        let py = data.py();
        let mut owners: Vec<Py<PyAny>> = Vec::new();
        let limit = u64::try_from(limit).unwrap_or(0);
        let mut at = start;
        while let Some(cut) = frame_at(data.as_bytes(), at, limit) {
            if cut.kind != 0 || !cut.body.is_empty() || cut.header.len() > LONGEST {
                break;
            }
            let Some(head) = read_head(cut.header).filter(|head| head.flag & RESPONSE_FLAG != 0)
            else {
                break;
            };
            let opaque = PyInt::new(py, head.opaque);
            let Some(waiter) = waiting.get_item(&opaque)? else {
                break;
            };
            let sink = waiter.get_item(0)?;
            let Ok(call) = sink.cast::<GrpcCall>() else {
                break;
            };
            let call = call.borrow();
            let Some(response) = call.response(cut.header) else {
                break;
            };
            waiting.del_item(&opaque)?;
            at = cut.end;
            if let Some(owner) = call.answer(py, &response) {
                if !owners.iter().any(|known| known.is(&owner)) {
                    owners.push(owner);
                }
            }
        }
        for owner in owners {
            if let Err(error) = owner.call_method0(py, intern!(py, "flush")) {
                error.write_unraisable(py, None); // it must not cost the broker's connection
            }
        }
        Ok((0, at))
    }
}

fn keep(
    windows: &mut HashMap<String, Window>,
    key: String,
    places: Vec<Place>,
    count: usize,
    seconds: f64,
) {
    if windows.len() >= MOST {
        windows.clear();
    }
    let until = Instant::now() + Duration::from_secs_f64(seconds.clamp(0.0, 60.0));
    let window = Window {
        places,
        used: 0,
        count,
        until,
    };
    windows.insert(key, window);
}

fn key_of(group: &str, topic: &str, broker: &str) -> String {
    format!("{group} {topic} {broker}")
}

impl GrpcShortcuts {
    /// Read a call that may be plain; `None` if it is not, or there is no place for it.
    pub(crate) fn begin(
        &mut self,
        py: Python<'_>,
        path: &str,
        request: &Bytes,
        sender: &str,
    ) -> Option<Begun> {
        let mut header = Vec::with_capacity(640);
        if path == self.send_path {
            let send = read_send(request, &self.rules)?;
            let window = self.sends.get_mut(send.topic)?;
            let place = window.next()?;
            let middle = place.middle.as_ref()?.as_bytes(py);
            let head = place.head.as_bytes(py);
            send.push_header(&mut header, head, middle, sender, now_ms())?;
            let message_id = send.message_id.to_owned();
            let body = request.slice_ref(send.body);
            let place = place.own.clone_ref(py);
            window.used += 1;
            return Some(self.begun(Kind::Send { message_id }, place, header, body));
        }
        if path != self.ack_path {
            return None;
        }
        let ack = read_ack(request)?;
        let window = self.acks.get(&key_of(ack.group, ack.topic, ack.broker))?;
        let place = window.next()?;
        if ack.visible_at_ms <= now_ms() {
            return None;
        }
        ack.push_header(&mut header, place.head.as_bytes(py))?;
        let kind = Kind::Ack {
            message_id: ack.message_id.to_owned(),
            handle: ack.handle.to_owned(),
        };
        let place = place.own.clone_ref(py);
        Some(self.begun(kind, place, header, Bytes::new()))
    }

    fn begun(&self, kind: Kind, place: Py<PyAny>, header: Vec<u8>, body: Bytes) -> Begun {
        Begun {
            kind,
            place,
            header,
            tail: self.tail.clone(),
            ok: self.ok.clone(),
            body,
        }
    }
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(i64::MAX, |since| since.as_millis() as i64)
}
