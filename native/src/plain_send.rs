//! What the request of a plain send says: its header, and the properties in it. No Python types.
//!
//! Plain is what the general path would store without a second look. `None` stands for all else.

use std::ops::Range;

use crate::frames::{decimal, read_head, unit, Scan, Text};
use crate::wire::java_hash;

/// The code of a send with long names.
pub const SEND: i32 = 10;
/// The code of a send with short ones.
pub const SEND_V2: i32 = 310;
/// The code of a batch, with short ones, too.
pub const SEND_BATCH: i32 = 320;
const ONEWAY: i32 = 2;
const TRANSACTION: i32 = 0x0C;
const PREPARED: i32 = 4;
const INNER_BATCH: i32 = 0x80;

/// What a plain send's header says.
pub struct Send<'a> {
    /// `SEND`, `SEND_V2` or `SEND_BATCH`.
    pub code: i32,
    /// The number of the request.
    pub opaque: i32,
    /// Whether the client waits for an answer.
    pub answered: bool,
    /// The name of the topic, as it is written.
    pub topic: &'a [u8],
    /// The queue, as the client wants it.
    pub queue_id: i32,
    /// Flags of the system; those of transactions are in `prepared`.
    pub sys_flag: i32,
    /// Whether the flags say that it is a half message.
    pub prepared: bool,
    /// When the client made the message.
    pub born_ms: i64,
    /// The application's flag.
    pub flag: i32,
    /// How often it was delivered before.
    pub reconsume_times: i32,
    /// Properties, as JSON writes them.
    pub properties: Text<'a>,
}

/// Read the fields of a plain send; None for any other request.
pub fn read_send(header: &[u8]) -> Option<Send<'_>> {
    let head = read_head(header)?;
    if !matches!(head.code, SEND | SEND_V2 | SEND_BATCH) || head.flag & !ONEWAY != 0 {
        return None;
    }
    if !header.is_ascii() && std::str::from_utf8(header).is_err() {
        return None;
    }
    let mut fields: [Option<Text<'_>>; 13] = [None; 13];
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
    let batch = fields[12].map_or(&b"false"[..], |batch| batch.raw);
    let right = if head.code == SEND_BATCH {
        &b"true"[..]
    } else {
        b"false"
    };
    if batch != right {
        return None;
    }
    if fields[11].is_some() {
        number(11)?;
    }
    let topic = fields[1]?;
    let sys_flag = number(5)?;
    let transaction = sys_flag & TRANSACTION;
    if topic.escaped || sys_flag & INNER_BATCH != 0 || !matches!(transaction, 0 | PREPARED) {
        return None;
    }
    Some(Send {
        code: head.code,
        opaque: head.opaque,
        answered: head.flag & ONEWAY == 0,
        topic: topic.raw,
        queue_id: number(4)?,
        sys_flag: sys_flag & !TRANSACTION,
        prepared: transaction == PREPARED,
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
pub fn unescape(from: Text<'_>, out: &mut Vec<u8>) -> Option<()> {
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

/// What the properties of a plain send say.
pub struct Asked {
    /// Where the unique key stands.
    pub key: Range<usize>,
    /// The code of the tag.
    pub tag: i64,
    /// Where the message goes.
    pub way: Way,
}

/// Where a message goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// To its queue.
    Plain,
    /// To the half messages, until its transaction ends.
    Half,
    /// To the queue of a delay level, from 1 on.
    Delayed(usize),
}

/// Read what properties say; None if they ask for more than there are ways, or have no key that can
/// stand in an answer as it is.
pub fn look_at(text: &[u8]) -> Option<Asked> {
    let (mut key, mut tags, mut delay, mut half) = (None, None, None, None);
    let mut special = false; // for half messages
    for at in memchr::memchr_iter(b'D', text) {
        let rest = &text[at..];
        if rest.starts_with(b"DELAY\x01") && delay.is_none() {
            delay = Some((at, at + 6));
        } else if rest.starts_with(b"DEL") {
            return None;
        }
    }
    // A name ends before each of these bytes; whether it also begins there is for `value_at`.
    for end in memchr::memchr_iter(1, text) {
        let (name, value) = (&text[..end], &text[end + 1..]);
        match name.last() {
            Some(b'Y') if name.ends_with(b"UNIQ_KEY") => key = Some((end - 8, end + 1)),
            Some(b'S') if name.ends_with(b"TAGS") => tags = Some((end - 4, end + 1)),
            Some(b'S') => {
                special |= name.ends_with(b"CHECK_IMMUNITY_TIME_IN_SECONDS")
                    || name.ends_with(b"TRANSACTION_CHECK_TIMES");
            }
            Some(b'T') if name.ends_with(b"WAIT") && value.starts_with(b"false") => return None,
            Some(b'T') => special |= name.ends_with(b"TRAN_PREPARED_QUEUE_OFFSET"),
            Some(b'G') if name.ends_with(b"TRAN_MSG") => {
                if half.is_some() || !value.starts_with(b"true\x02") {
                    return None;
                }
                half = Some(end - 8);
            }
            Some(b'M') if name.ends_with(b"INNER_NUM") => return None,
            Some(b'K') if name.ends_with(b"POP_CK") => return None,
            Some(b'_') if name.ends_with(b"_SYS_MSG_PRIORITY_") => return None,
            Some(b'C') if name.ends_with(b"__LITE_TOPIC") => return None,
            Some(b'N') if name.ends_with(b"TRACE_ON") => return None,
            _ => {}
        }
    }
    let key = value_at(text, key?)?;
    if !text[key.clone()].iter().all(u8::is_ascii_alphanumeric) {
        return None;
    }
    let tag = match tags {
        None => 0,
        Some(found) => {
            let value = std::str::from_utf8(&text[value_at(text, found)?]).ok()?;
            java_hash(value.as_bytes()).into()
        }
    };
    let way = match (delay, half) {
        (None, None) => {
            return Some(Asked {
                key,
                tag,
                way: Way::Plain,
            })
        }
        (Some(found), None) => Way::Delayed(level_of(&text[value_at(text, found)?])?),
        (None, Some(at)) if !special && (at == 0 || text[at - 1] == 2) => Way::Half,
        _ => return None,
    };
    Some(Asked { key, tag, way })
}

/// Read a delay level as it is usually written: digits, and no zero before them.
fn level_of(value: &[u8]) -> Option<usize> {
    match value {
        [b'1'..=b'9'] => Some(usize::from(value[0] - b'0')),
        [b'1'..=b'9', b'0'..=b'9'] => {
            Some(usize::from(value[0] - b'0') * 10 + usize::from(value[1] - b'0'))
        }
        _ => None,
    }
}

/// Properties that are compared with each other; more are left to the general path.
const MOST_NAMES: usize = 32;

/// Return whether properties that are read and written again stay the same: each has a name and a
/// value, and no name comes twice. Neither must they have what a message gets that goes elsewhere
/// first.
pub fn comes_back(text: &[u8]) -> bool {
    let Some(text) = text.strip_suffix(b"\x02") else {
        return false;
    };
    let names = |text| {
        <[u8]>::split(text, |byte| *byte == 2).map(|piece| {
            let mut parts = piece.split(|byte| *byte == 1);
            match (parts.next(), parts.next(), parts.next()) {
                (Some(name), Some(value), None) if !value.is_empty() => name,
                _ => b"",
            }
        })
    };
    names(text).enumerate().all(|(at, name)| {
        at < MOST_NAMES
            && !name.is_empty()
            && !matches!(name, b"REAL_TOPIC" | b"REAL_QID" | b"__transactionId__")
            && !names(text).take(at).any(|before| before == name)
    })
}

/// Return where the value of a property stands; None if the name is the end of another one.
fn value_at(text: &[u8], (name, start): (usize, usize)) -> Option<Range<usize>> {
    if name > 0 && text[name - 1] != 2 {
        return None;
    }
    let size = memchr::memchr(2, &text[start..])?;
    (size > 0).then_some(start..start + size)
}
