//! What a burst of plain sends becomes: records of the log, entries of queues, answers. No Python.

use crate::batch_records::{pack_entries, Mould, Shared};
use crate::plain_send::{comes_back, look_at, unescape, Asked, Send, Way, SEND};
use crate::wire::{checksum, push_decimal, push_hex, BODY_AT, LARGEST_TEXT, MAGIC_V1, SECTOR};

const HOST_BITS: i32 = 0x30;

/// What all messages of a broker get, and an answer's text around its five values.
pub struct Forms {
    /// The properties that this broker adds.
    pub stamp: Vec<u8>,
    /// Its address, as records have it.
    pub store_host: [u8; 8],
    /// What stands before, between and after the values of an answer.
    pub answer: [Vec<u8>; 6],
    /// How long messages wait at each delay level, in milliseconds; empty if they are left.
    pub delays_ms: Vec<i64>,
    /// Whether half messages are taken.
    pub halves: bool,
}

/// The queue that a message goes to.
pub struct Queue<'a> {
    /// The name of its topic with its length before it.
    pub topic: &'a [u8],
    /// What its topic adds to a message's flags.
    pub flag: i32,
}

/// The topic in which messages wait for their delay, with the length before it.
const SCHEDULE: &[u8] = b"\x13SCHEDULE_TOPIC_XXXX";
/// The topic in which they wait for the end of their transaction.
const HALF: &[u8] = b"\x18RMQ_SYS_TRANS_HALF_TOPIC";

/// Where the log goes on, and what all records of a burst have in common.
pub struct Place {
    /// Where the next record begins.
    pub position: i64,
    /// Where the last one must end.
    pub end: i64,
    /// The time.
    pub now_ms: i64,
    /// The client's address.
    pub born_host: [u8; 8],
}

/// What a burst adds to one queue.
pub struct Run {
    /// The queue, by the caller's number for it.
    pub target: usize,
    /// The offset of the first message.
    pub first: i64,
    /// Bytes of all records.
    pub size: u64,
    /// Where records stand in the log.
    pub positions: Vec<u64>,
    /// Codes of their tags.
    pub tags: Vec<i64>,
    /// Their sizes.
    pub sizes: Vec<u32>,
}

impl Run {
    /// Begin with no message.
    pub fn new(target: usize, first: i64) -> Self {
        Run {
            target,
            first,
            size: 0,
            positions: Vec::new(),
            tags: Vec::new(),
            sizes: Vec::new(),
        }
    }
}

/// A burst so far.
#[derive(Default)]
pub struct Burst {
    /// The records, one after another.
    pub records: Vec<u8>,
    /// The answers, one after another.
    pub answers: Vec<u8>,
    /// What each queue gets; the caller adds one for each.
    pub runs: Vec<Run>,
    /// Answers to sends with long names.
    pub answered: u32,
    /// Answers to sends with short ones.
    pub answered_v2: u32,
    /// When the first of its delayed messages is due; 0 if it has none.
    pub due_ms: i64,
    text: Vec<u8>,
    asked: Option<Asked>,
}

impl Burst {
    /// Read the properties of the message that is added next; return where it goes. None if it needs
    /// more care.
    pub fn read(&mut self, forms: &Forms, send: &Send<'_>) -> Option<Way> {
        unescape(send.properties, &mut self.text)?;
        let asked = look_at(&self.text)?;
        let way = asked.way;
        let taken = match way {
            Way::Plain => !send.prepared,
            Way::Half => send.prepared && forms.halves,
            Way::Delayed(level) => !send.prepared && level <= forms.delays_ms.len(),
        };
        let size = self.text.len();
        if !taken || size > LARGEST_TEXT {
            return None;
        }
        self.asked = Some(asked);
        self.text.extend_from_slice(&forms.stamp);
        // What the broker adds must not be there yet: it would take the place of it.
        if way != Way::Plain && !comes_back(&self.text) {
            return None;
        }
        Some(way)
    }

    /// Add the message that was read to one of the runs, that of where it goes; None if it needs
    /// more care: then nothing has changed.
    pub fn add(
        &mut self,
        forms: &Forms,
        run: usize,
        queue: Queue<'_>,
        send: &Send<'_>,
        body: &[u8],
        place: &mut Place,
    ) -> Option<()> {
        let Asked { key, tag, way } = self.asked.take()?;
        let text = &mut self.text;
        let (topic, queue_id, tag) = match way {
            Way::Plain => (queue.topic, send.queue_id, tag),
            Way::Half => {
                text.extend_from_slice(b"__transactionId__\x01");
                text.extend_from_within(key.clone());
                text.push(2);
                add_origin(text, queue.topic.get(1..)?, send.queue_id);
                (HALF, 0, send.born_ms.min(place.now_ms).max(0))
            }
            Way::Delayed(level) => {
                add_origin(text, queue.topic.get(1..)?, send.queue_id);
                let index = level.checked_sub(1)?;
                let due_ms = place.now_ms.checked_add(*forms.delays_ms.get(index)?)?;
                (SCHEDULE, i32::try_from(index).ok()?, due_ms)
            }
        };
        let torn = *text.last()? == 0 || (text.len() > SECTOR && text.contains(&0));
        if torn || text.len() > LARGEST_TEXT {
            return None;
        }
        let run = self.runs.get_mut(run)?;
        let size = BODY_AT + body.len() + topic.len() + 2 + text.len();
        let stop = place.position.checked_add(i64::try_from(size).ok()?)?;
        if stop > place.end {
            return None;
        }
        let offset = run
            .first
            .checked_add(i64::try_from(run.positions.len()).ok()?)?;
        let size32 = u32::try_from(size).ok()?;
        let position = u64::try_from(place.position).ok()?;
        let sys_flag = (send.sys_flag | queue.flag) & !HOST_BITS;

        let out = &mut self.records;
        out.reserve(size);
        out.extend_from_slice(&size32.to_be_bytes());
        out.extend_from_slice(&MAGIC_V1.to_be_bytes());
        out.extend_from_slice(&checksum(body).to_be_bytes());
        out.extend_from_slice(&queue_id.to_be_bytes());
        out.extend_from_slice(&send.flag.to_be_bytes());
        out.extend_from_slice(&offset.to_be_bytes());
        out.extend_from_slice(&position.to_be_bytes());
        out.extend_from_slice(&sys_flag.to_be_bytes());
        out.extend_from_slice(&send.born_ms.to_be_bytes());
        out.extend_from_slice(&place.born_host);
        out.extend_from_slice(&place.now_ms.to_be_bytes());
        out.extend_from_slice(&forms.store_host);
        out.extend_from_slice(&send.reconsume_times.to_be_bytes());
        out.extend_from_slice(&0_i64.to_be_bytes());
        out.extend_from_slice(&(body.len() as u32).to_be_bytes());
        out.extend_from_slice(body);
        out.extend_from_slice(topic);
        out.extend_from_slice(&(text.len() as u16).to_be_bytes());
        out.extend_from_slice(text);

        run.positions.push(position);
        run.tags.push(tag);
        run.sizes.push(size32);
        run.size += size as u64;
        place.position = stop;
        if matches!(way, Way::Delayed(_)) && (self.due_ms == 0 || tag < self.due_ms) {
            self.due_ms = tag;
        }
        if send.answered {
            forms.answer(&mut self.answers, send, &text[key], &[position], offset);
            if send.code == SEND {
                self.answered += 1;
            } else {
                self.answered_v2 += 1;
            }
        }
        Some(())
    }

    /// Add the messages of the batch that was read to one of the runs; None as for `add`.
    pub fn add_batch(
        &mut self,
        forms: &Forms,
        run: usize,
        queue: Queue<'_>,
        send: &Send<'_>,
        body: &[u8],
        place: &mut Place,
    ) -> Option<()> {
        let Asked { key, way, .. } = self.asked.take()?;
        if way != Way::Plain {
            return None; // is refused
        }
        let text = &self.text;
        let run = self.runs.get_mut(run)?;
        u64::try_from(place.position).ok()?;
        let mould = Mould::new(&Shared {
            topic: queue.topic.get(1..)?,
            queue_id: send.queue_id,
            sys_flag: send.sys_flag | queue.flag,
            born_timestamp_ms: send.born_ms,
            born_host: &place.born_host,
            store_timestamp_ms: place.now_ms,
            store_host: &forms.store_host,
            reconsume_times: send.reconsume_times,
            prepared_transaction_offset: 0,
        })?;
        let before = run.positions.len();
        let offset = run.first.checked_add(i64::try_from(before).ok()?)?;
        let packed = pack_entries(body, &mould, offset, place.position)?;
        let stop = place
            .position
            .checked_add(i64::try_from(packed.data.len()).ok()?)?;
        if packed.looks_torn || packed.sizes.is_empty() || stop > place.end {
            return None;
        }
        run.positions
            .extend(numbers(&packed.positions, u64::from_ne_bytes));
        run.tags.extend(numbers(&packed.tags, i64::from_ne_bytes));
        run.sizes.extend(numbers(&packed.sizes, u32::from_ne_bytes));
        run.size += packed.data.len() as u64;
        place.position = stop;
        if self.records.is_empty() {
            self.records = packed.data;
        } else {
            self.records.extend_from_slice(&packed.data);
        }
        if send.answered {
            let positions = &run.positions[before..];
            forms.answer(&mut self.answers, send, &text[key], positions, offset);
        }
        Some(())
    }
}

/// Add where a message belongs that goes elsewhere first.
fn add_origin(text: &mut Vec<u8>, topic: &[u8], queue_id: i32) {
    text.extend_from_slice(b"REAL_TOPIC\x01");
    text.extend_from_slice(topic);
    text.extend_from_slice(b"\x02REAL_QID\x01");
    push_decimal(text, queue_id.into());
    text.push(2);
}

/// Read a column of numbers.
fn numbers<const SIZE: usize, N>(
    column: &[u8],
    read: fn([u8; SIZE]) -> N,
) -> impl Iterator<Item = N> + '_
where
    N: 'static,
{
    column
        .chunks_exact(SIZE)
        .filter_map(move |bytes| bytes.try_into().ok().map(read))
}

impl Forms {
    fn answer(
        &self,
        out: &mut Vec<u8>,
        send: &Send<'_>,
        key: &[u8],
        positions: &[u64],
        offset: i64,
    ) {
        let [start, key_at, id_at, offset_at, opaque_at, end] = &self.answer;
        let begin = out.len();
        out.extend_from_slice(&[0; 8]);
        out.extend_from_slice(start);
        push_decimal(out, send.queue_id.into());
        out.extend_from_slice(key_at);
        out.extend_from_slice(key);
        out.extend_from_slice(id_at); // with the host of the first id
        for (number, position) in positions.iter().enumerate() {
            if number > 0 {
                out.push(b',');
                push_hex(out, &self.store_host);
            }
            push_hex(out, &position.to_be_bytes());
        }
        out.extend_from_slice(offset_at);
        push_decimal(out, offset);
        out.extend_from_slice(opaque_at);
        push_decimal(out, send.opaque.into());
        out.extend_from_slice(end);
        // The parts are this broker's own and short, the ids fewer than bytes of the request.
        let size = (out.len() - begin - 8) as u32;
        out[begin..begin + 4].copy_from_slice(&(size + 4).to_be_bytes());
        out[begin + 4..begin + 8].copy_from_slice(&size.to_be_bytes());
    }
}
