//! A whole pop as the responses that a gRPC client gets: a status, the messages, and a time.
//!
//! Only usual ones: messages that were not popped before, that the client wants, and that are few
//! enough to be sent at once. `pocketmq.proxy.calls.receiving` has all others.

use std::collections::HashSet;
use std::str::Split;

use memchr::memmem;

use crate::grpc_call::push_framed;
use crate::grpc_delivery::{Around, GrpcDeliveries};
use crate::grpc_proto::{push_message, time};
use crate::popped::{digits, one_queue, Fields, OFFSET_DIGITS};
use crate::pulled::{plain_record, Plain};
use crate::wire::{be32s, push_decimal, BODY_AT};

/// Bytes of a pop, and queues that it takes messages from, at most.
const LARGEST: usize = 60 * 1024;
const MOST_QUEUES: usize = 64;
/// Places in a record.
const QUEUE_ID: usize = 12;
const RECONSUME_TIMES: usize = 72;

/// What a broker says of a pop: its time, for how long it hides messages, its revive queue, and the
/// first and all offsets of each queue.
pub(crate) type Origin = (i64, i64, i64, String, String);
/// Whom messages are for: the broker's name, the topic as the client knows it, for how long they are
/// invisible, how often they are delivered at most, and the tags that are wanted, all without one.
pub(crate) type Wanted = (String, String, i64, i32, HashSet<String>);

/// A queue that messages were taken from: how their handles begin, and their offsets.
struct Queue<'a> {
    mark: u8,
    id: i64,
    before: Vec<u8>,
    offsets: Split<'a, char>,
}

fn queues<'a>(origin: &'a Origin, broker: &str) -> Option<Vec<Queue<'a>>> {
    let (pop_time, invisible, revive, starts, offsets) = origin;
    let (mut starts, mut offsets) = (starts.split(';'), offsets.split(';'));
    let mut found: Vec<Queue<'a>> = Vec::new();
    loop {
        let (start, some) = match (starts.next(), offsets.next()) {
            (Some(start), Some(some)) if found.len() < MOST_QUEUES => (start, some),
            (None, None) => return Some(found),
            _ => return None,
        };
        let mut popped = one_queue(&Fields::of((*pop_time, *invisible, *revive), start, some))?;
        let known = |queue: &Queue<'_>| queue.mark == popped.mark && queue.id == popped.queue_id;
        if found.iter().any(known) {
            return None;
        }
        popped.name_queue(broker);
        found.push(Queue {
            mark: popped.mark,
            id: popped.queue_id,
            before: popped.before,
            offsets: popped.offsets.split(','),
        });
    }
}

/// Return the handle of the next message of a queue.
fn handle(queues: &mut [Queue<'_>], body: &[u8], at: usize, record: &Plain<'_>) -> Option<String> {
    let topic = body.get(at + BODY_AT + record.body.len() + 1..record.text_at - 2)?;
    let mark = match topic.starts_with(b"%RETRY%") {
        false => b'0',
        true if topic.contains(&b'+') => b'2',
        true => b'1',
    };
    let id = i64::from(be32s(body, at + QUEUE_ID)?);
    let queue = queues
        .iter_mut()
        .find(|queue| queue.mark == mark && queue.id == id)?;
    let offset = digits(queue.offsets.next()?, OFFSET_DIGITS)?;
    let mut made = Vec::with_capacity(queue.before.len() + OFFSET_DIGITS);
    made.extend_from_slice(&queue.before);
    push_decimal(&mut made, offset);
    String::from_utf8(made).ok()
}

impl GrpcDeliveries {
    /// See `popped`.
    pub(crate) fn framed_pop(
        &self,
        body: &[u8],
        origin: &Origin,
        wanted: Wanted,
        first: &[u8],
        now_ms: i64,
    ) -> Option<Vec<u8>> {
        let before = memmem::find(body, b"POP_CK").or_else(|| memmem::find(body, b"1ST_POP_TIME"));
        if body.is_empty() || body.len() > LARGEST || before.is_some() {
            return None;
        }
        let (broker, topic, hidden_ms, most, tags) = wanted;
        let mut queues = queues(origin, &broker)?;
        let mut around = Around {
            topic: Some(topic),
            added: vec![
                ("POP_CK".into(), String::new()),
                ("1ST_POP_TIME".into(), origin.0.to_string()),
            ],
            ..Around::default()
        };
        let mut out = Vec::with_capacity(2 * body.len() + 256);
        push_framed(&mut out, first);
        let mut at = 0;
        while at < body.len() {
            let record = plain_record(body, at)?;
            if be32s(body, at + RECONSUME_TIMES)? >= most {
                return None; // a dead letter
            }
            around.queue_offset = record.queue_offset;
            around.added[0].1 = handle(&mut queues, body, at, &record)?;
            let (response, tag) = self.of_record(body, at, &record, &around, hidden_ms)?;
            if !tags.is_empty() && !tag.is_some_and(|tag| tags.contains(tag)) {
                return None; // a tag with the same hash
            }
            push_framed(&mut out, &response);
            at += record.size;
        }
        if queues
            .iter_mut()
            .any(|queue| queue.offsets.next().is_some())
        {
            return None;
        }
        let mut last = Vec::with_capacity(16);
        push_message(&mut last, 3, &time(now_ms));
        push_framed(&mut out, &last);
        Some(out)
    }
}
