//! A plain send of a gRPC client, as the request to a broker. No Python types.
//!
//! Plain is one usual message of printable ASCII around its body, which
//! `pocketmq.proxy.translation.outgoing` would accept; `None` stands for all else.

use std::collections::HashSet;

use crate::grpc_proto::{ascii, once, push_message, push_number, push_text, resource};
use crate::grpc_proto::{Fields, Value};
use crate::wire::{push_decimal, LARGEST_TEXT};

/// The first type that has a rule of its own; of others properties tell.
const TRANSACTION: u64 = 4;
const GZIP: u64 = 2;
const NAME_END: &[u8] = b"\\u0001";
const VALUE_END: &[u8] = b"\\u0002";
/// Seconds that protobuf's timestamps have at most; none before 1970 is usual.
const LAST_SECOND: u64 = 253_402_300_799;

/// Properties and keys of a plain message; names are compared one by one.
const MOST_PROPERTIES: usize = 16;
const MOST_KEYS: usize = 16;

/// What a proxy accepts of its clients.
pub(crate) struct Rules {
    pub(crate) body: usize,
    pub(crate) properties: usize,
    pub(crate) properties_size: usize,
    pub(crate) reserved: HashSet<String>,
}

/// A message, and how long each part of it is allowed to be was looked at.
pub(crate) struct Plain<'a> {
    pub(crate) topic: &'a str,
    pub(crate) message_id: &'a str,
    pub(crate) body: &'a [u8],
    user: Vec<(&'a str, &'a str)>,
    system: System<'a>,
}

#[derive(Default)]
struct System<'a> {
    tag: Option<&'a str>,
    keys: Vec<&'a str>,
    message_id: Option<&'a str>,
    encoding: Option<u64>,
    kind: Option<u64>,
    born: Option<i64>,
    born_host: Option<&'a str>,
    trace: Option<&'a str>,
    queue: Option<u64>,
}

/// Read a request with one plain message.
pub(crate) fn read_send<'a>(raw: &'a [u8], rules: &Rules) -> Option<Plain<'a>> {
    let mut fields = Fields::new(raw);
    let (1, Value::Bytes(message)) = fields.next()?? else {
        return None;
    };
    if fields.next()?.is_some() {
        return None;
    }
    let (mut topic, mut system, mut body, mut user) = (None, None, None, Vec::new());
    let mut fields = Fields::new(message);
    while let Some((number, value)) = fields.next()? {
        let Value::Bytes(value) = value else {
            return None;
        };
        match number {
            1 => once(&mut topic, resource(value)?)?,
            2 if user.len() < MOST_PROPERTIES => user.push(entry(value)?),
            3 => once(&mut system, read_system(value)?)?,
            4 => once(&mut body, value)?,
            _ => return None,
        }
    }
    let (system, body) = (system?, body?);
    check_properties(&user, &system, rules)?;
    let message_id = system.message_id?;
    let usual = !message_id.is_empty()
        && !message_id.contains(' ')
        && system.kind.unwrap_or(0) < TRANSACTION
        && system.encoding.unwrap_or(0) < GZIP
        && (1..=rules.body).contains(&body.len());
    usual.then_some(Plain {
        topic: topic?,
        message_id,
        body,
        user,
        system,
    })
}

fn read_system(raw: &[u8]) -> Option<System<'_>> {
    let mut found = System::default();
    let mut fields = Fields::new(raw);
    while let Some((number, value)) = fields.next()? {
        match (number, value) {
            (1, Value::Bytes(text)) => once(&mut found.tag, ascii(text)?)?,
            (2, Value::Bytes(text)) if found.keys.len() < MOST_KEYS => {
                found.keys.push(ascii(text)?);
            }
            (3, Value::Bytes(text)) => once(&mut found.message_id, ascii(text)?)?,
            (5, Value::Number(value)) => once(&mut found.encoding, value)?,
            (6, Value::Number(value)) => once(&mut found.kind, value)?,
            (7, Value::Bytes(time)) => once(&mut found.born, milliseconds(time)?)?,
            (8, Value::Bytes(text)) => once(&mut found.born_host, ascii(text)?)?,
            (13, Value::Number(value)) => once(&mut found.queue, value)?, // a broker's word alone
            (18, Value::Bytes(text)) => once(&mut found.trace, ascii(text)?)?,
            _ => return None,
        }
    }
    Some(found)
}

fn milliseconds(raw: &[u8]) -> Option<i64> {
    let (mut seconds, mut nanos) = (None, None);
    let mut fields = Fields::new(raw);
    while let Some((number, value)) = fields.next()? {
        match (number, value) {
            (1, Value::Number(value)) => once(&mut seconds, value)?,
            (2, Value::Number(value)) => once(&mut nanos, value)?,
            _ => return None,
        }
    }
    let (seconds, nanos) = (seconds.unwrap_or(0), nanos.unwrap_or(0));
    if seconds > LAST_SECOND || nanos >= 1_000_000_000 {
        return None;
    }
    i64::try_from(seconds * 1000 + nanos / 1_000_000).ok()
}

fn entry(raw: &[u8]) -> Option<(&str, &str)> {
    let (mut name, mut text) = (None, None);
    let mut fields = Fields::new(raw);
    while let Some((number, value)) = fields.next()? {
        match (number, value) {
            (1, Value::Bytes(raw)) => once(&mut name, ascii(raw)?)?,
            (2, Value::Bytes(raw)) => once(&mut text, ascii(raw)?)?,
            _ => return None,
        }
    }
    Some((name?, text.unwrap_or("")))
}

fn check_properties(user: &[(&str, &str)], system: &System<'_>, rules: &Rules) -> Option<()> {
    let mut size = system.tag.unwrap_or("").len();
    size += system.keys.iter().map(|key| key.len()).sum::<usize>();
    for (at, (name, value)) in user.iter().enumerate() {
        if name.is_empty()
            || rules.reserved.contains(*name)
            || user[..at].iter().any(|other| other.0 == *name)
        {
            return None;
        }
        size += name.len() + value.len();
    }
    let blank = |text: &str| !text.is_empty() && text.trim().is_empty();
    let tag = system.tag.unwrap_or("");
    let usual = size <= rules.properties_size
        && user.len() <= rules.properties
        && !tag.contains('|')
        && !blank(tag)
        && !system.keys.iter().any(|key| blank(key));
    usual.then_some(())
}

impl Plain<'_> {
    /// Append the request's header up to its number; `None` if its properties are too long.
    ///
    /// `head` and `middle` are the parts that all sends to a queue have in common.
    pub(crate) fn push_header(
        &self,
        out: &mut Vec<u8>,
        head: &[u8],
        middle: &[u8],
        sender: &str,
        now_ms: i64,
    ) -> Option<()> {
        out.extend_from_slice(head);
        out.extend_from_slice(b"0\",\"g\":\"");
        push_decimal(out, self.system.born.unwrap_or(now_ms));
        out.extend_from_slice(b"\",\"h\":\"0\",\"i\":\"");
        let size = self.push_properties(out, sender);
        out.extend_from_slice(b"\",\"j\":\"0");
        out.extend_from_slice(middle);
        out.extend_from_slice(b"0,\"language\":\"PYTHON\",\"opaque\":");
        (size <= LARGEST_TEXT).then_some(())
    }

    /// Append the text of the properties, as JSON writes it; return how long the text itself is.
    fn push_properties(&self, out: &mut Vec<u8>, sender: &str) -> usize {
        let mut size = 0;
        let mut push = |name: &str, value: &[&str]| {
            size += name.len() + 2;
            push_json(out, name);
            out.extend_from_slice(NAME_END);
            for (at, part) in value.iter().enumerate() {
                if at > 0 {
                    out.push(b' ');
                    size += 1;
                }
                push_json(out, part);
                size += part.len();
            }
            out.extend_from_slice(VALUE_END);
        };
        for (name, value) in &self.user {
            push(name, &[value]);
        }
        let system = &self.system;
        if let Some(tag) = system.tag.filter(|tag| !tag.is_empty()) {
            push("TAGS", &[tag]);
        }
        if !system.keys.is_empty() {
            push("KEYS", &system.keys);
        }
        push("UNIQ_KEY", &[self.message_id]);
        push("PGROUP", &[self.topic]);
        if let Some(trace) = system.trace.filter(|trace| !trace.is_empty()) {
            push("TRACE_CONTEXT", &[trace]);
        }
        let host = system.born_host.filter(|host| !host.trim().is_empty());
        push("__BORNHOST", &[host.unwrap_or(sender)]);
        if let Some(born_ms) = system.born {
            push("BORN_TIMESTAMP", &[&born_ms.to_string()]);
        }
        size
    }
}

fn push_json(out: &mut Vec<u8>, text: &str) {
    for byte in text.bytes() {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(byte);
    }
}

/// Return the response for a message that is stored; `ok` is the status that says so.
pub(crate) fn sent(
    ok: &[u8],
    message_id: &str,
    transaction_id: &str,
    offset: i64,
    recall_handle: &str,
) -> Vec<u8> {
    let mut entry = Vec::with_capacity(96 + message_id.len());
    push_message(&mut entry, 1, ok);
    push_text(&mut entry, 2, message_id.as_bytes());
    push_text(&mut entry, 3, transaction_id.as_bytes());
    push_number(&mut entry, 4, offset);
    push_text(&mut entry, 5, recall_handle.as_bytes());
    with_entry(ok, &entry)
}

/// Return a response with one result.
pub(crate) fn with_entry(ok: &[u8], entry: &[u8]) -> Vec<u8> {
    let mut made = Vec::with_capacity(entry.len() + ok.len() + 8);
    push_message(&mut made, 1, ok);
    push_message(&mut made, 2, entry);
    made
}
