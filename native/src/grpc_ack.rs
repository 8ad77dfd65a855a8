//! A plain ack of a gRPC client, as the request to a broker. No Python types.

use crate::frames::decimal;
use crate::grpc_proto::{ascii, once, push_message, push_text, resource, Fields, Value};
use crate::grpc_send::with_entry;
use crate::wire::push_decimal;

/// Parts of a receipt handle: those of a pop handle, and the message's place in the log.
const PARTS: usize = 9;
const LONGEST: usize = 1024;

/// An ack of one message.
pub(crate) struct Ack<'a> {
    pub(crate) group: &'a str,
    pub(crate) topic: &'a str,
    pub(crate) message_id: &'a str,
    pub(crate) handle: &'a str,
    pub(crate) broker: &'a str,
    /// When another consumer may get the message.
    pub(crate) visible_at_ms: i64,
    pop_handle: &'a str,
    queue_id: i64,
    offset: i64,
}

/// Read a request with one plain ack: of a topic itself, not of a topic for retries.
pub(crate) fn read_ack(raw: &[u8]) -> Option<Ack<'_>> {
    let (mut group, mut topic, mut entry) = (None, None, None);
    let mut fields = Fields::new(raw);
    while let Some((number, value)) = fields.next()? {
        let Value::Bytes(value) = value else {
            return None;
        };
        match number {
            1 => once(&mut group, resource(value)?)?,
            2 => once(&mut topic, resource(value)?)?,
            3 => once(&mut entry, value)?,
            _ => return None,
        }
    }
    let (mut message_id, mut handle) = (None, None);
    let mut fields = Fields::new(entry?);
    while let Some((number, value)) = fields.next()? {
        match (number, value) {
            (1, Value::Bytes(text)) => once(&mut message_id, ascii(text)?)?,
            (2, Value::Bytes(text)) => once(&mut handle, ascii(text)?)?,
            _ => return None,
        }
    }
    let handle: &str = handle.filter(|handle: &&str| handle.len() <= LONGEST)?;
    let parts = <[&str; PARTS]>::try_from(handle.split(' ').collect::<Vec<_>>()).ok()?;
    let [start, pop_time, invisible, revive, mark, broker, queue_id, offset, log] = parts;
    let number = |text: &str| decimal(text.as_bytes()).filter(|value| *value >= 0);
    let small = |text: &str| number(text).filter(|value| *value <= i64::from(i32::MAX));
    number(start)?;
    number(log)?;
    small(revive)?;
    let usual = mark == "0" && !broker.is_empty();
    usual.then_some(Ack {
        group: group?,
        topic: topic?,
        message_id: message_id.unwrap_or(""),
        handle,
        broker,
        visible_at_ms: number(pop_time)?.checked_add(number(invisible)?)?,
        pop_handle: handle.get(..handle.len() - log.len() - 1)?,
        queue_id: small(queue_id)?,
        offset: number(offset)?,
    })
}

impl Ack<'_> {
    /// Append the request's header up to its number; `head` names group, topic and broker.
    pub(crate) fn push_header(&self, out: &mut Vec<u8>, head: &[u8]) -> Option<()> {
        if self.pop_handle.contains(['"', '\\']) {
            return None;
        }
        out.extend_from_slice(head);
        out.extend_from_slice(b",\"queueId\":\"");
        push_decimal(out, self.queue_id);
        out.extend_from_slice(b"\",\"extraInfo\":\"");
        out.extend_from_slice(self.pop_handle.as_bytes());
        out.extend_from_slice(b"\",\"offset\":\"");
        push_decimal(out, self.offset);
        out.extend_from_slice(b"\"},\"flag\":0,\"language\":\"PYTHON\",\"opaque\":");
        Some(())
    }
}

/// Return the response for a message that is acknowledged; `ok` is the status that says so.
pub(crate) fn acknowledged(ok: &[u8], message_id: &str, handle: &str) -> Vec<u8> {
    let mut entry = Vec::with_capacity(handle.len() + message_id.len() + ok.len() + 12);
    push_text(&mut entry, 1, message_id.as_bytes());
    push_text(&mut entry, 2, handle.as_bytes());
    push_message(&mut entry, 3, ok);
    with_entry(ok, &entry)
}
