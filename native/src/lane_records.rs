//! What a burst of plain sends becomes: records of the log, entries of queues, answers. No Python.

use crate::batch_records::{pack_entries, Mould, Shared};
use crate::plain_send::{look_at, unescape, Send, SEND};
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
}

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
    text: Vec<u8>,
}

impl Burst {
    /// Add a message to one of the runs; None if it needs more care: then nothing has changed.
    ///
    /// `topic` is the name with its length before it, `queue_flag` what the queue's topic adds.
    pub fn add(
        &mut self,
        forms: &Forms,
        run: usize,
        (topic, queue_flag): (&[u8], i32),
        send: &Send<'_>,
        body: &[u8],
        place: &mut Place,
    ) -> Option<()> {
        let text = &mut self.text;
        unescape(send.properties, text)?;
        let (key, tag) = look_at(text)?;
        text.extend_from_slice(&forms.stamp);
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
        let sys_flag = (send.sys_flag | queue_flag) & !HOST_BITS;

        let out = &mut self.records;
        out.reserve(size);
        out.extend_from_slice(&size32.to_be_bytes());
        out.extend_from_slice(&MAGIC_V1.to_be_bytes());
        out.extend_from_slice(&checksum(body).to_be_bytes());
        out.extend_from_slice(&send.queue_id.to_be_bytes());
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

    /// Add the messages of a batch to one of the runs; None as for `add`. The rest is as there.
    pub fn add_batch(
        &mut self,
        forms: &Forms,
        run: usize,
        (topic, queue_flag): (&[u8], i32),
        send: &Send<'_>,
        body: &[u8],
        place: &mut Place,
    ) -> Option<()> {
        let text = &mut self.text;
        unescape(send.properties, text)?;
        let (key, _) = look_at(text)?;
        let run = self.runs.get_mut(run)?;
        u64::try_from(place.position).ok()?;
        let mould = Mould::new(&Shared {
            topic: topic.get(1..)?,
            queue_id: send.queue_id,
            sys_flag: send.sys_flag | queue_flag,
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
