//! A burst of plain sends, from the bytes of a read to records, index entries and answers.
//!
//! Only what the general path would take without a second look is taken here: known queues, no
//! property that asks for more, nothing odd in the header. The first request that is not so ends the
//! burst; Python goes on with it, so that order stays what it was. Python keeps the state of the
//! store: this gets its numbers and returns bytes.

use std::collections::HashMap;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

use crate::frames::{decimal, frame_at, read_head, unit, Head, Scan, Text};

const MAGIC: i32 = -626_843_481;
const HEAD: usize = 88;
const HOST_BITS: i32 = 0x30;
const NOT_PLAIN: i32 = 0x0C | 0x80; // transactions, and a batch within a message
const SECTOR: usize = 512;
const PROPERTIES_LIMIT: usize = 32_767;
const TOPIC_LIMIT: usize = 127;
const QUEUES_LIMIT: i32 = 1 << 16;
const KEPT: usize = 65_536;
const SEND: i32 = 10;
const SEND_V2: i32 = 310;
const ONEWAY: i32 = 2;

/// What a plain send's header says.
struct Send<'a> {
    topic: &'a [u8],
    queue_id: i32,
    sys_flag: i32,
    born_ms: i64,
    flag: i32,
    reconsume_times: i32,
    properties: Text<'a>,
}

/// A queue that sends may go to.
struct Target {
    queue: Py<PyAny>,
    sys_flag: i32,
    burst: u64,
    run: usize,
}

#[derive(Default)]
struct Topic {
    /// The name with its length before it, as records have it.
    field: Vec<u8>,
    targets: Vec<Option<usize>>,
}

/// What a burst adds to one queue.
struct Run {
    target: usize,
    first: i64,
    size: u64,
    positions: Vec<u64>,
    tags: Vec<i64>,
    sizes: Vec<u32>,
}

/// Takes bursts of plain sends for one broker; it forgets its queues when topics change.
#[pyclass(module = "pocketmq_core")]
pub(crate) struct SendLane {
    stamp: Vec<u8>,
    store_host: [u8; 8],
    answer: [Vec<u8>; 6],
    max_body: usize,
    topics: HashMap<Box<[u8]>, Topic>,
    targets: Vec<Target>,
    burst: u64,
    text: Vec<u8>,
}

/// Where the log goes on, and what all records of a burst have in common.
struct Place {
    position: i64,
    end: i64,
    now_ms: i64,
    born_host: [u8; 8],
}

#[derive(Default)]
struct Burst {
    records: Vec<u8>,
    answers: Vec<u8>,
    runs: Vec<Run>,
    answered: u32,
    answered_v2: u32,
}

#[pymethods]
impl SendLane {
    /// Take what all messages get, and an answer's text around its five values.
    #[new]
    fn new(
        stamp: &[u8],
        store_host: &[u8],
        answer: Vec<Vec<u8>>,
        max_body: usize,
    ) -> PyResult<Self> {
        let store_host = store_host.try_into().map_err(refuse)?;
        let answer = answer
            .try_into()
            .map_err(|_| PyValueError::new_err("an answer has six parts"))?;
        Ok(Self {
            stamp: stamp.to_vec(),
            store_host,
            answer,
            max_body,
            topics: HashMap::new(),
            targets: Vec::new(),
            burst: 0,
            text: Vec::new(),
        })
    }

    /// Forget all queues: they are looked up again.
    fn clear(&mut self) {
        self.topics.clear();
        self.targets.clear();
    }

    /// Take the plain sends that stand at a position of a read, as long as `room` bytes allow.
    ///
    /// Returns None if there are none; else where they end, their records, their answers, for each
    /// queue what it gets, and how many answers are to requests of either code.
    #[pyo3(signature = (data, start, frame_limit, log, born_host, targets, version))]
    #[allow(clippy::too_many_arguments)] // the state of the store, which is Python's
    fn take<'py>(
        &mut self,
        data: &Bound<'py, PyBytes>,
        start: usize,
        frame_limit: u64,
        log: (i64, i64, i64),
        born_host: &[u8],
        targets: &Bound<'py, PyDict>,
        version: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let py = data.py();
        let (position, end, now_ms) = log;
        let born_host = born_host.try_into().map_err(refuse)?;
        let mut place = Place {
            position,
            end,
            now_ms,
            born_host,
        };
        let mut burst = Burst::default();
        self.burst += 1;
        if self.targets.len() >= KEPT {
            self.clear();
        }
        let bytes = data.as_bytes();
        let mut at = start;
        while let Some(cut) = frame_at(bytes, at, frame_limit) {
            if cut.kind != 0 || cut.body.is_empty() || cut.body.len() > self.max_body {
                break;
            }
            let Some(head) = read_head(cut.header) else {
                break;
            };
            let Some(send) = read_send(&head, cut.header) else {
                break;
            };
            let Some(index) = self.target(&send, targets, version)? else {
                break;
            };
            let run = self.run(py, index, &mut burst)?;
            if !self.add(run, &mut burst, &head, &send, cut.body, &mut place) {
                break;
            }
            at = cut.end;
        }
        if at == start {
            return Ok(None);
        }
        Ok(Some(self.finish(py, at, burst)?))
    }
}

impl SendLane {
    /// Find a queue: one that is known, or one among those that Python knows.
    fn target<'py>(
        &mut self,
        send: &Send<'_>,
        known: &Bound<'py, PyDict>,
        version: &Bound<'py, PyAny>,
    ) -> PyResult<Option<usize>> {
        if !(0..QUEUES_LIMIT).contains(&send.queue_id) {
            return Ok(None);
        }
        let slot = send.queue_id as usize;
        if let Some(topic) = self.topics.get(send.topic) {
            if let Some(Some(index)) = topic.targets.get(slot) {
                return Ok(Some(*index));
            }
        }
        let py = known.py();
        let Ok(name) = std::str::from_utf8(send.topic) else {
            return Ok(None);
        };
        let key = (PyString::new(py, name), send.queue_id);
        let Some(found) = known.get_item(key)? else {
            return Ok(None);
        };
        let retry: bool = found.getattr("retry")?.extract()?;
        if retry || send.topic.len() > TOPIC_LIMIT || !found.getattr("version")?.is(version) {
            return Ok(None);
        }
        if self.targets.len() >= KEPT {
            return Ok(None);
        }
        let index = self.targets.len();
        self.targets.push(Target {
            queue: found.getattr("queue")?.unbind(),
            sys_flag: found.getattr("sys_flag")?.extract()?,
            burst: 0,
            run: 0,
        });
        let topic = self.topics.entry(send.topic.into()).or_default();
        if topic.field.is_empty() {
            topic.field.push(send.topic.len() as u8);
            topic.field.extend_from_slice(send.topic);
        }
        if topic.targets.len() <= slot {
            topic.targets.resize(slot + 1, None);
        }
        topic.targets[slot] = Some(index);
        Ok(Some(index))
    }

    /// Return what this burst adds to a queue so far.
    fn run(&mut self, py: Python<'_>, index: usize, burst: &mut Burst) -> PyResult<usize> {
        let target = &mut self.targets[index];
        if target.burst != self.burst {
            let first = target
                .queue
                .bind(py)
                .getattr(pyo3::intern!(py, "next_offset"))?
                .extract()?;
            target.burst = self.burst;
            target.run = burst.runs.len();
            burst.runs.push(Run {
                target: index,
                first,
                size: 0,
                positions: Vec::new(),
                tags: Vec::new(),
                sizes: Vec::new(),
            });
        }
        Ok(target.run)
    }

    /// Add a message; false if it needs more care, and nothing has changed.
    fn add(
        &mut self,
        run: usize,
        burst: &mut Burst,
        head: &Head<'_>,
        send: &Send<'_>,
        body: &[u8],
        place: &mut Place,
    ) -> bool {
        let mut text = std::mem::take(&mut self.text);
        let done = self
            .packed(run, burst, head, send, body, place, &mut text)
            .is_some();
        self.text = text;
        done
    }

    #[allow(clippy::too_many_arguments)] // the parts of one message
    fn packed(
        &self,
        run: usize,
        burst: &mut Burst,
        head: &Head<'_>,
        send: &Send<'_>,
        body: &[u8],
        place: &mut Place,
        text: &mut Vec<u8>,
    ) -> Option<()> {
        unescape(send.properties, text)?;
        let (key, tag) = look_at(text)?;
        let key = key.0..key.1;
        text.extend_from_slice(&self.stamp);
        let torn = *text.last()? == 0 || (text.len() > SECTOR && text.contains(&0));
        if torn || text.len() > PROPERTIES_LIMIT {
            return None;
        }
        let run = &mut burst.runs[run];
        let topic = &self.topics.get(send.topic)?.field;
        let size = HEAD + body.len() + topic.len() + 2 + text.len();
        let stop = place.position.checked_add(i64::try_from(size).ok()?)?;
        if stop > place.end {
            return None;
        }
        let offset = run
            .first
            .checked_add(i64::try_from(run.positions.len()).ok()?)?;
        let sys_flag = (send.sys_flag | self.targets[run.target].sys_flag) & !HOST_BITS;
        let size32 = u32::try_from(size).ok()?;
        let position = u64::try_from(place.position).ok()?;

        let out = &mut burst.records;
        out.reserve(size);
        out.extend_from_slice(&size32.to_be_bytes());
        out.extend_from_slice(&MAGIC.to_be_bytes());
        out.extend_from_slice(&(crc32fast::hash(body) & 0x7FFF_FFFF).to_be_bytes());
        out.extend_from_slice(&send.queue_id.to_be_bytes());
        out.extend_from_slice(&send.flag.to_be_bytes());
        out.extend_from_slice(&offset.to_be_bytes());
        out.extend_from_slice(&position.to_be_bytes());
        out.extend_from_slice(&sys_flag.to_be_bytes());
        out.extend_from_slice(&send.born_ms.to_be_bytes());
        out.extend_from_slice(&place.born_host);
        out.extend_from_slice(&place.now_ms.to_be_bytes());
        out.extend_from_slice(&self.store_host);
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
        if head.flag & ONEWAY == 0 {
            self.answer(&mut burst.answers, head, send, &text[key], position, offset);
            if head.code == SEND {
                burst.answered += 1;
            } else {
                burst.answered_v2 += 1;
            }
        }
        Some(())
    }

    fn answer(
        &self,
        out: &mut Vec<u8>,
        head: &Head<'_>,
        send: &Send<'_>,
        key: &[u8],
        position: u64,
        offset: i64,
    ) {
        let [start, key_at, id_at, offset_at, opaque_at, end] = &self.answer;
        let begin = out.len();
        out.extend_from_slice(&[0; 8]);
        out.extend_from_slice(start);
        write_decimal(out, send.queue_id.into());
        out.extend_from_slice(key_at);
        out.extend_from_slice(key);
        out.extend_from_slice(id_at);
        for shift in (0..16).rev() {
            out.push(b"0123456789ABCDEF"[(position >> (shift * 4) & 15) as usize]);
        }
        out.extend_from_slice(offset_at);
        write_decimal(out, offset);
        out.extend_from_slice(opaque_at);
        write_decimal(out, head.opaque.into());
        out.extend_from_slice(end);
        let size = (out.len() - begin - 8) as u32; // the parts are this broker's own, and short
        out[begin..begin + 4].copy_from_slice(&(size + 4).to_be_bytes());
        out[begin + 4..begin + 8].copy_from_slice(&size.to_be_bytes());
    }

    fn finish<'py>(
        &self,
        py: Python<'py>,
        at: usize,
        burst: Burst,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let runs = PyList::empty(py);
        for run in burst.runs {
            let queue = self.targets[run.target].queue.bind(py);
            let count = run.positions.len();
            if let ([position], [tag], [size]) = (&run.positions[..], &run.tags[..], &run.sizes[..])
            {
                runs.append((queue, run.first, 1, run.size, *position, *tag, *size))?;
            } else if count > 0 {
                let positions = column(py, run.positions.iter().flat_map(|n| n.to_ne_bytes()));
                let tags = column(py, run.tags.iter().flat_map(|n| n.to_ne_bytes()));
                let sizes = column(py, run.sizes.iter().flat_map(|n| n.to_ne_bytes()));
                runs.append((queue, run.first, count, run.size, positions, tags, sizes))?;
            }
        }
        (
            at,
            PyBytes::new(py, &burst.records),
            PyBytes::new(py, &burst.answers),
            runs,
            burst.answered,
            burst.answered_v2,
        )
            .into_pyobject(py)
    }
}

fn column(py: Python<'_>, bytes: impl Iterator<Item = u8>) -> Bound<'_, PyBytes> {
    PyBytes::new(py, &bytes.collect::<Vec<u8>>())
}

fn refuse(_: std::array::TryFromSliceError) -> PyErr {
    PyValueError::new_err("a host has 8 bytes here")
}

fn write_decimal(out: &mut Vec<u8>, value: i64) {
    let mut digits = [0_u8; 20];
    let mut at = digits.len();
    let mut rest = value.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[at..]);
}

/// Read the fields of a plain send; None for any other request.
fn read_send<'a>(head: &Head<'a>, header: &[u8]) -> Option<Send<'a>> {
    if head.code != SEND && head.code != SEND_V2 || head.flag & !ONEWAY != 0 {
        return None;
    }
    if !header.is_ascii() && std::str::from_utf8(header).is_err() {
        return None;
    }
    let mut fields: [Option<Text<'a>>; 13] = [None; 13];
    let mut scan = Scan::new(head.ext?);
    scan.take(b'{')?;
    loop {
        let key = scan.string()?;
        scan.take(b':')?;
        let value = scan.string()?;
        if key.escaped {
            return None;
        }
        let field = if head.code == SEND {
            long_name(key.raw)
        } else {
            short_name(key.raw)
        };
        if let Some(field) = field {
            if fields[field].replace(value).is_some() {
                return None; // which of two counts is for the general path
            }
        }
        if scan.take(b',').is_none() {
            break;
        }
    }
    let number = |field: usize| -> Option<i32> { i32::try_from(decimal(fields[field]?.raw)?).ok() };
    fields[0]?; // the producer's group
    fields[2]?; // the topic to make a new one like
    number(3)?;
    if fields[12].is_some_and(|batch| batch.raw != b"false") {
        return None;
    }
    if fields[11].is_some() {
        number(11)?;
    }
    let topic = fields[1]?;
    let sys_flag = number(5)?;
    if topic.escaped || sys_flag & NOT_PLAIN != 0 {
        return None;
    }
    Some(Send {
        topic: topic.raw,
        queue_id: number(4)?,
        sys_flag,
        born_ms: decimal(fields[6]?.raw)?,
        flag: number(7)?,
        reconsume_times: match fields[9] {
            None => 0,
            Some(_) => number(9)?,
        },
        properties: fields[8]?,
    })
}

/// The place of a field of `SendRequestV2`, by its name.
fn short_name(key: &[u8]) -> Option<usize> {
    match key {
        [letter @ b'a'..=b'm'] => Some(usize::from(letter - b'a')),
        _ => None,
    }
}

/// The place of the same field of `SendRequest`.
fn long_name(key: &[u8]) -> Option<usize> {
    Some(match key {
        b"producerGroup" => 0,
        b"topic" => 1,
        b"defaultTopic" => 2,
        b"defaultTopicQueueNums" => 3,
        b"queueId" => 4,
        b"sysFlag" => 5,
        b"bornTimestamp" => 6,
        b"flag" => 7,
        b"properties" => 8,
        b"reconsumeTimes" => 9,
        b"unitMode" => 10,
        b"maxReconsumeTimes" => 11,
        b"batch" => 12,
        _ => return None,
    })
}

/// Write a JSON string's text, with a separator at its end; None if it is empty.
fn unescape(from: Text<'_>, out: &mut Vec<u8>) -> Option<()> {
    out.clear();
    let mut rest = from.raw;
    while let Some(found) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..found]);
        let plain = match rest.get(found + 1)? {
            b'u' => {
                let letter = unit(rest.get(found + 2..found + 6)?)?;
                let mut buffer = [0; 4];
                out.extend_from_slice(letter.encode_utf8(&mut buffer).as_bytes());
                rest = &rest[found + 6..];
                continue;
            }
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            other => *other,
        };
        out.push(plain);
        rest = &rest[found + 2..];
    }
    out.extend_from_slice(rest);
    if *out.last()? != 2 {
        out.push(2);
    }
    Some(())
}

/// Return where the unique key stands in properties, and the code of the tag; None if they ask for
/// more than to be stored, or have no key that can stand in an answer as it is.
fn look_at(text: &[u8]) -> Option<((usize, usize), i64)> {
    let (mut key, mut tags) = (None, None);
    for (at, byte) in text.iter().enumerate() {
        let rest = &text[at..];
        match byte {
            b'D' if rest.starts_with(b"DEL") => return None,
            b'I' if rest.starts_with(b"INNER_NUM\x01") => return None,
            b'P' if rest.starts_with(b"POP_CK\x01") => return None,
            b'_' if rest.starts_with(b"_SYS_MSG_PRIORITY_\x01") => return None,
            b'_' if rest.starts_with(b"__LITE_TOPIC\x01") => return None,
            b'T' if rest.starts_with(b"TRAN_MSG\x01") => return None,
            b'T' if rest.starts_with(b"TRACE_ON\x01") => return None,
            b'W' if rest.starts_with(b"WAIT\x01false") => return None,
            b'T' if rest.starts_with(b"TAGS\x01") => tags = Some((at, at + 5)),
            b'U' if rest.starts_with(b"UNIQ_KEY\x01") => key = Some((at, at + 9)),
            _ => {}
        }
    }
    let key = value_at(text, key?)?;
    if !text[key.0..key.1].iter().all(u8::is_ascii_alphanumeric) {
        return None;
    }
    let tag = match tags {
        None => 0,
        Some(found) => {
            let (from, to) = value_at(text, found)?;
            java_hash(&text[from..to])?
        }
    };
    Some((key, tag))
}

/// Return where the value of a property stands; None if the name is the end of another one.
fn value_at(text: &[u8], (name, start): (usize, usize)) -> Option<(usize, usize)> {
    if name > 0 && text[name - 1] != 2 {
        return None;
    }
    let size = memchr::memchr(2, &text[start..])?;
    (size > 0).then_some((start, start + size))
}

/// Return the hash that Java has for a text.
fn java_hash(text: &[u8]) -> Option<i64> {
    let mut hash = 0_i32;
    for unit in std::str::from_utf8(text).ok()?.encode_utf16() {
        hash = hash.wrapping_mul(31).wrapping_add(i32::from(unit));
    }
    Some(hash.into())
}
