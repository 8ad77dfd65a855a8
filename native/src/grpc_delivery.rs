//! Popped messages as gRPC clients receive them: from records to responses, many at once.
//!
//! Only usual ones: with IPv4 hosts, an id of their own, a body that is not compressed, text that is
//! UTF-8, and no property that changes their type. `pocketmq.proxy.translation.incoming` has all.

use std::collections::HashSet;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};

use crate::frames::decimal;
use crate::grpc_pop::{Origin, Wanted};
use crate::grpc_proto::{duration, push_message, push_number, push_optional, push_text, time};
use crate::md5::digest;
use crate::pulled::{plain_record, Plain};
use crate::wire::{be32s, be64s, bytes_at, push_hex, slice_at};

const COMPRESSED: u32 = 1;
/// Numbers of protobuf: MD5, no encoding, a normal message.
const MD5: i64 = 2;
const IDENTITY: i64 = 1;
const NORMAL: i64 = 1;
/// Numbers of a pop handle's parts that are 64 bits long, and 32.
const LONGS: [usize; 4] = [0, 1, 2, 7];
const INTS: [usize; 2] = [3, 6];

/// Which properties users do not see, and which make a message unusual.
#[pyclass(module = "pocketmq_core", frozen)]
pub struct GrpcDeliveries {
    hidden: HashSet<String>,
    special: HashSet<String>,
}

/// What else a message says of itself.
#[derive(Default)]
pub(crate) struct Around {
    pub(crate) topic: Option<String>,
    pub(crate) queue_id: Option<i32>,
    pub(crate) queue_offset: i64,
    pub(crate) reconsume_times: Option<i32>,
    pub(crate) added: Vec<(String, String)>,
}

#[pymethods]
impl GrpcDeliveries {
    #[new]
    fn new(hidden: HashSet<String>, special: HashSet<String>) -> Self {
        GrpcDeliveries { hidden, special }
    }

    /// Return the responses with these messages, None in the place of one that is unusual.
    fn responses<'py>(
        &self,
        messages: &Bound<'py, PyList>,
        hidden_ms: i64,
    ) -> PyResult<Bound<'py, PyList>> {
        let py = messages.py();
        let made = PyList::empty(py);
        for message in messages {
            let buffer = message.getattr(intern!(py, "buffer"))?;
            let position: usize = message.getattr(intern!(py, "position"))?.extract()?;
            let found = match (buffer.cast::<PyBytes>(), around(&message)?) {
                (Ok(buffer), Some(around)) => {
                    self.response(buffer.as_bytes(), position, &around, hidden_ms)
                }
                _ => None,
            };
            made.append(found.map(|found| PyBytes::new(py, &found)))?;
        }
        Ok(made)
    }

    /// Return all responses to a call that received these messages, each framed as gRPC does; None
    /// if the pop or one of them is unusual.
    ///
    /// `origin` is what the broker says of the messages, `wanted` whom they are for, `first` the first
    /// response.
    fn popped<'py>(
        &self,
        body: &Bound<'py, PyBytes>,
        origin: Origin,
        wanted: Wanted,
        first: &[u8],
        now_ms: i64,
    ) -> Option<Bound<'py, PyBytes>> {
        let made = self.framed_pop(body.as_bytes(), &origin, wanted, first, now_ms)?;
        Some(PyBytes::new(body.py(), &made))
    }
}

/// Return what lies over a message's record; None if that is unusual.
fn around(message: &Bound<'_, PyAny>) -> PyResult<Option<Around>> {
    let py = message.py();
    let delivery = message.getattr(intern!(py, "delivery"))?;
    let Ok(queue_offset) = message.getattr(intern!(py, "queue_offset"))?.extract() else {
        return Ok(None);
    };
    let mut added = Vec::new();
    for (name, value) in delivery.getattr(intern!(py, "added"))?.cast::<PyDict>()? {
        let (name, value) = (
            name.cast_into::<PyString>()?,
            value.cast_into::<PyString>()?,
        );
        let (Ok(name), Ok(value)) = (name.to_cow(), value.to_cow()) else {
            return Ok(None);
        };
        added.push((name.into_owned(), value.into_owned()));
    }
    let topic = message.getattr(intern!(py, "_topic"))?;
    let topic = match topic.is_none() {
        true => delivery.getattr(intern!(py, "topic"))?,
        false => topic,
    };
    let (Ok(topic), Ok(queue_id), Ok(reconsume_times)) = (
        topic.extract(),
        delivery.getattr(intern!(py, "queue_id"))?.extract(),
        delivery.getattr(intern!(py, "reconsume_times"))?.extract(),
    ) else {
        return Ok(None);
    };
    Ok(Some(Around {
        topic,
        queue_id,
        queue_offset,
        reconsume_times,
        added,
    }))
}

/// The properties of a message that are fields of their own, and those of users.
#[derive(Default)]
struct Properties<'a> {
    id: Option<&'a str>,
    tag: Option<&'a str>,
    keys: Option<&'a str>,
    born_host: Option<&'a str>,
    trace: Option<&'a str>,
    pop_handle: Option<&'a str>,
    user: Vec<(&'a str, &'a str)>,
}

impl GrpcDeliveries {
    fn response(
        &self,
        data: &[u8],
        position: usize,
        around: &Around,
        hidden_ms: i64,
    ) -> Option<Vec<u8>> {
        let record = plain_record(data, position)?;
        let (response, _) = self.of_record(data, position, &record, around, hidden_ms)?;
        Some(response)
    }

    /// Return the response with a record, and its tag.
    pub(crate) fn of_record<'a>(
        &self,
        data: &'a [u8],
        position: usize,
        record: &Plain<'a>,
        around: &'a Around,
        hidden_ms: i64,
    ) -> Option<(Vec<u8>, Option<&'a str>)> {
        if record.sys_flag & COMPRESSED != 0 {
            return None;
        }
        let whole = slice_at(data, position, record.size)?;
        let text = std::str::from_utf8(data.get(record.text_at..position + record.size)?).ok()?;
        let properties = self.properties(text, &around.added)?;
        let topic = match &around.topic {
            Some(topic) => topic,
            None => std::str::from_utf8(topic_of(whole, record.body.len())?).ok()?,
        };
        if topic.contains('%') {
            return None; // of a namespace, or a topic for retries
        }
        let system = system(whole, record.body, &properties, around, hidden_ms)?;
        let mut named = Vec::with_capacity(topic.len() + 2);
        push_text(&mut named, 2, topic.as_bytes());
        let mut message = Vec::with_capacity(record.body.len() + system.len() + 256);
        push_message(&mut message, 1, &named);
        for (name, value) in &properties.user {
            let mut entry = Vec::with_capacity(name.len() + value.len() + 8);
            push_message(&mut entry, 1, name.as_bytes());
            push_message(&mut entry, 2, value.as_bytes());
            push_message(&mut message, 2, &entry);
        }
        push_message(&mut message, 3, &system);
        push_text(&mut message, 4, record.body);
        let mut response = Vec::with_capacity(message.len() + 8);
        push_message(&mut response, 2, &message);
        Some((response, properties.tag))
    }

    fn properties<'a>(
        &self,
        text: &'a str,
        added: &'a [(String, String)],
    ) -> Option<Properties<'a>> {
        let mut all: Vec<(&str, &str)> = Vec::with_capacity(16);
        let own = text
            .split('\x02')
            .filter_map(|piece| piece.split_once('\x01'));
        let own = own.filter(|(name, value)| !name.is_empty() && !value.is_empty());
        let over = added.iter().map(|(name, value)| (&name[..], &value[..]));
        for (name, value) in own.chain(over) {
            match all.iter_mut().find(|known| known.0 == name) {
                Some(known) => known.1 = value,
                None => all.push((name, value)),
            }
            if all.len() > 64 {
                return None; // looked up one after another
            }
        }
        let mut found = Properties::default();
        for (name, value) in all {
            if self.special.contains(name) {
                return None;
            }
            if !self.hidden.contains(name) {
                found.user.push((name, value));
            }
            match name {
                "UNIQ_KEY" => found.id = Some(value),
                "TAGS" => found.tag = Some(value),
                "KEYS" => found.keys = Some(value),
                "__BORNHOST" => found.born_host = Some(value),
                "TRACE_CONTEXT" => found.trace = Some(value),
                "POP_CK" => found.pop_handle = Some(value),
                _ => {}
            }
        }
        Some(found)
    }
}

fn topic_of(record: &[u8], body_size: usize) -> Option<&[u8]> {
    let at = 88 + body_size;
    slice_at(record, at + 1, usize::from(*record.get(at)?))
}

/// Return the system properties of a message.
fn system(
    record: &[u8],
    body: &[u8],
    properties: &Properties<'_>,
    around: &Around,
    hidden_ms: i64,
) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(512);
    if let Some(tag) = properties.tag {
        push_message(&mut out, 1, tag.as_bytes());
    }
    for key in properties.keys.unwrap_or("").split(' ') {
        push_text(&mut out, 2, key.as_bytes());
    }
    push_text(
        &mut out,
        3,
        properties.id.filter(|id| !id.is_empty())?.as_bytes(),
    );
    let mut checksum = Vec::with_capacity(32);
    push_hex(&mut checksum, &digest(body));
    let mut digested = Vec::with_capacity(40);
    push_number(&mut digested, 1, MD5);
    push_text(&mut digested, 2, &checksum);
    push_message(&mut out, 4, &digested);
    push_number(&mut out, 5, IDENTITY);
    push_number(&mut out, 6, NORMAL);
    push_message(&mut out, 7, &time(be64s(record, 40)?));
    let (born_host, _) = host(record, 48)?;
    let born_host = match properties.born_host {
        Some(text) if !text.is_empty() => text,
        _ => &born_host,
    };
    push_text(&mut out, 8, born_host.as_bytes());
    push_message(&mut out, 9, &time(be64s(record, 56)?));
    let (store_host, port) = host(record, 64)?;
    push_text(&mut out, 10, format!("{store_host}:{port}").as_bytes());
    if let Some(handle) = properties.pop_handle {
        let place = be64s(record, 28)?;
        push_text(
            &mut out,
            12,
            format!("{} {place}", usual(handle)?).as_bytes(),
        );
    }
    let queue_id = around.queue_id.map_or_else(|| be32s(record, 12), Some)?;
    push_number(&mut out, 13, queue_id.into());
    push_optional(&mut out, 14, around.queue_offset);
    push_message(&mut out, 15, &duration(hidden_ms));
    let times = around
        .reconsume_times
        .map_or_else(|| be32s(record, 72), Some)?;
    push_optional(&mut out, 16, i64::from(times.checked_add(1)?));
    if let Some(trace) = properties.trace {
        push_message(&mut out, 18, trace.as_bytes());
    }
    Some(out)
}

fn host(record: &[u8], at: usize) -> Option<(String, i32)> {
    let [a, b, c, d] = bytes_at(record, at)?;
    let port = be32s(record, at + 4).filter(|port| (0..=0xFFFF).contains(port))?;
    Some((format!("{a}.{b}.{c}.{d}"), port))
}

/// Return a pop handle that is written as it would be again.
fn usual(handle: &str) -> Option<&str> {
    let parts = <[&str; 8]>::try_from(handle.split(' ').collect::<Vec<_>>()).ok()?;
    let number = |at: &usize| decimal(parts[*at].as_bytes()).filter(|value| *value >= 0);
    let small = |at: &usize| number(at).is_some_and(|value| value <= i64::from(i32::MAX));
    let usual = LONGS.iter().all(|at| number(at).is_some())
        && INTS.iter().all(small)
        && matches!(parts[4], "0" | "1" | "2")
        && !parts[5].is_empty()
        && handle.is_ascii();
    usual.then_some(handle)
}
