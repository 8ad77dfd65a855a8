//! The words of the key index: a hash of topic and key above, half of a record's position below.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

const SMALLEST: usize = 91;
const MAGIC: i32 = -626_843_481;
const ROLLED_BACK: i32 = 12;
const HASH_LIMIT: u64 = 1 << 29;
const NEVER: i64 = i64::MAX;

/// What was read: bytes, records, words, and the times of the records.
type Words = (usize, usize, Vec<f64>, (i64, i64, i64, bool));

/// The parts of a record that the index needs.
struct Record<'a> {
    flag: i32,
    time: i64,
    topic: &'a [u8],
    text: &'a [u8],
    end: usize,
}

/// Return the words of the records at the start of some bytes of the log; see the pure function.
#[pyfunction]
pub(crate) fn words_of_records(
    data: &Bound<'_, PyBytes>,
    position: u64,
    modulus: u64,
    last_ms: i64,
) -> PyResult<Words> {
    if modulus == 0 || modulus > HASH_LIMIT {
        return Err(PyValueError::new_err("a modulus has at most 29 bits"));
    }
    let bytes = data.as_bytes();
    let mut words = Vec::with_capacity(bytes.len() / 128);
    let (mut at, mut records) = (0, 0);
    let (mut last, mut oldest, mut newest, mut ordered) = (last_ms, NEVER, -NEVER, true);
    let (mut topic, mut seed): (&[u8], u64) = (&[], HASH_LIMIT);
    while let Some(record) = record_at(bytes, at, position) {
        if record.flag & ROLLED_BACK != ROLLED_BACK {
            if record.topic != topic {
                topic = record.topic;
                seed = remainder(topic, modulus) | HASH_LIMIT;
            }
            if record.time != last {
                ordered = ordered && record.time > last;
                oldest = oldest.min(record.time);
                newest = newest.max(record.time);
                last = record.time;
            }
            let low = (position + at as u64) & 0xFFFF_FFFF;
            for_each_key(record.text, |key| {
                let high = remainder(key, modulus) ^ seed;
                words.push(high << 32 | low);
            });
            records += 1;
        }
        at = record.end;
    }
    words.sort_unstable(); // as doubles they have the same order
    let words = words.into_iter().map(f64::from_bits).collect();
    Ok((at, records, words, (last, oldest, newest, ordered)))
}

/// Return the record at a place, if it is whole, stands where it says, and has the common form.
fn record_at(data: &[u8], at: usize, position: u64) -> Option<Record<'_>> {
    let rest = data.get(at..)?;
    let head = rest.first_chunk::<SMALLEST>()?;
    let size = usize::try_from(int(head, 0)?).ok()?;
    let body = usize::try_from(int(head, 84)?).ok()?;
    let place = u64::from_be_bytes(*head.get(28..)?.first_chunk()?);
    let flag = int(head, 36)?;
    if int(head, 4)? != MAGIC
        || place != position.checked_add(at as u64)?
        || flag & 0x30 != 0
        || body > size.checked_sub(SMALLEST)?
    {
        return None;
    }
    let record = rest.get(..size)?;
    let topic_at = 88 + body + 1;
    let text_at = topic_at + usize::from(*record.get(topic_at - 1)?);
    let (length, text) = record.get(text_at..)?.split_first_chunk::<2>()?;
    if usize::from(u16::from_be_bytes(*length)) != text.len() {
        return None;
    }
    Some(Record {
        flag,
        time: i64::from_be_bytes(*head.get(56..)?.first_chunk()?),
        topic: record.get(topic_at..text_at)?,
        text,
        end: at + size,
    })
}

fn int(head: &[u8; SMALLEST], at: usize) -> Option<i32> {
    Some(i32::from_be_bytes(*head.get(at..)?.first_chunk()?))
}

/// Call with each key that properties name: the message's own id, and those it was given.
fn for_each_key(text: &[u8], mut found: impl FnMut(&[u8])) {
    for property in text.split(|byte| *byte == 2) {
        let (value, given) = if let Some(value) = property.strip_prefix(b"UNIQ_KEY\x01") {
            (value, false)
        } else if let Some(value) = property.strip_prefix(b"KEYS\x01") {
            (value, true)
        } else {
            continue;
        };
        if value.is_empty() || value == b"\0" {
            continue;
        }
        if !given || !value.contains(&b' ') {
            found(value);
            continue;
        }
        let mut keys: Vec<&[u8]> = value.split(|byte| *byte == b' ').collect();
        keys.sort_unstable();
        keys.dedup();
        for key in keys.into_iter().filter(|key| !key.is_empty()) {
            found(key);
        }
    }
}

/// Return the remainder of bytes that are one large number.
fn remainder(bytes: &[u8], modulus: u64) -> u64 {
    let (first, rest) = bytes.split_at(bytes.len() % 4);
    let mut value = first
        .iter()
        .fold(0, |value, byte| value << 8 | u64::from(*byte))
        % modulus;
    for four in rest.chunks_exact(4) {
        let four = four
            .iter()
            .fold(0, |value, byte| value << 8 | u64::from(*byte));
        value = (value << 32 | four) % modulus;
    }
    value
}
