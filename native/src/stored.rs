//! The header of a response that says a message is stored, as brokers write it.
//!
//! The responses of one broker differ in a few values only. So the first of a read is read key by
//! key, and the others are compared with it (`Shape`).

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// Decimal digits that always fit into 64 bits.
const MOST_DIGITS: usize = 18;
pub(crate) const RESPONSE_FLAG: i64 = 1;
/// Bytes of a header that are read without counting its fields first.
pub(crate) const LONGEST: usize = 64 * 1024;

/// A value that differs from response to response.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Field {
    MessageId,
    QueueId,
    QueueOffset,
    TransactionId,
    Opaque,
}

/// Where such a value stands in a header.
pub(crate) type Span = (Field, usize, usize);

/// Text of JSON in the form that brokers write it: no white space, no escapes, no other letters.
pub(crate) struct Text<'a> {
    data: &'a [u8],
    at: usize,
}

impl<'a> Text<'a> {
    pub(crate) fn new(data: &'a [u8]) -> Self {
        Text { data, at: 0 }
    }

    /// Return how much was read.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Step over one byte; `None` if there is another one.
    pub(crate) fn step(&mut self, byte: u8) -> Option<()> {
        if *self.data.get(self.at)? != byte {
            return None;
        }
        self.at += 1;
        Some(())
    }

    /// Read a string between quotes.
    pub(crate) fn string(&mut self) -> Option<&'a str> {
        self.step(b'"')?;
        let text = self.until_quote()?;
        self.at += 1;
        Some(text)
    }

    /// Read what stands before the next quote.
    fn until_quote(&mut self) -> Option<&'a str> {
        let rest = self.data.get(self.at..)?;
        let size = memchr::memchr2(b'"', b'\\', rest)?;
        let (text, quote) = (rest.get(..size)?, rest.get(size)?);
        // All bytes, not the first that differs: this way many are compared at once.
        let simple = text
            .iter()
            .fold(true, |so_far, byte| so_far & (0x20..0x7F).contains(byte));
        if *quote != b'"' || !simple {
            return None;
        }
        self.at += size;
        std::str::from_utf8(text).ok()
    }

    /// Read a number without a fraction.
    pub(crate) fn number(&mut self) -> Option<i64> {
        let rest = self.data.get(self.at..)?;
        let end = rest
            .iter()
            .position(|byte| !matches!(byte, b'0'..=b'9' | b'-'))?;
        self.at += end;
        number(rest.get(..end)?)
    }

    /// Step over a comma, or the end of an object; return whether there is more.
    pub(crate) fn more(&mut self) -> Option<bool> {
        if self.step(b',').is_some() {
            return Some(true);
        }
        self.step(b'}').map(|()| false)
    }
}

/// Return a number written as Java and Python write it.
pub(crate) fn number(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let leading_zero = digits.len() > 1 && digits.first() == Some(&b'0');
    let minus_zero = negative && digits == b"0";
    if digits.is_empty() || digits.len() > MOST_DIGITS || leading_zero || minus_zero {
        return None;
    }
    let mut value = 0_i64;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        value = value * 10 + i64::from(digit - b'0');
    }
    Some(if negative { -value } else { value })
}

pub(crate) fn int32(value: i64) -> Option<i64> {
    i32::try_from(value).is_ok().then_some(value)
}

/// What a receipt needs of a response.
#[derive(Clone, Copy, Default)]
pub(crate) struct Stored<'a> {
    pub(crate) message_id: Option<&'a str>,
    pub(crate) queue_id: Option<i64>,
    pub(crate) queue_offset: Option<i64>,
    pub(crate) transaction_id: Option<&'a str>,
    pub(crate) recall_handle: Option<&'a str>,
    pub(crate) region: Option<&'a str>,
    pub(crate) trace_on: Option<&'a str>,
    /// The id of a batch as a whole.
    pub(crate) batch_id: Option<&'a str>,
}

/// The broker's id of a message, its queue and its offset, and what else a response says.
pub(crate) type Whole<'a> = (&'a str, i64, i64, Stored<'a>);

impl<'a> Stored<'a> {
    /// Return what every receipt has, if it is there.
    fn whole(self) -> Option<Whole<'a>> {
        Some((self.message_id?, self.queue_id?, self.queue_offset?, self))
    }

    pub(crate) fn region<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        match self.region {
            None | Some("" | "DefaultRegion") => intern!(py, "DefaultRegion").clone(),
            Some(other) => PyString::new(py, other),
        }
    }
}

/// Fill what is empty; a key that comes twice is not for here.
pub(crate) fn once<T>(place: &mut Option<T>, value: T) -> Option<()> {
    place.replace(value).is_none().then_some(())
}

/// Read the fields of a response; `None` for any that are not as usual.
fn fields<'a>(text: &mut Text<'a>, spans: &mut Vec<Span>) -> Option<Stored<'a>> {
    let mut stored = Stored::default();
    text.step(b'{')?;
    loop {
        let key = text.string()?;
        text.step(b':')?;
        let value = text.string()?;
        let mut varies = |field| spans.push((field, text.at - 1 - value.len(), text.at - 1));
        match key {
            "msgId" => {
                varies(Field::MessageId);
                once(&mut stored.message_id, value)?;
            }
            "queueId" => {
                varies(Field::QueueId);
                once(&mut stored.queue_id, int32(number(value.as_bytes())?)?)?;
            }
            "queueOffset" => {
                varies(Field::QueueOffset);
                once(&mut stored.queue_offset, number(value.as_bytes())?)?;
            }
            "transactionId" => {
                varies(Field::TransactionId);
                once(&mut stored.transaction_id, value)?;
            }
            "recallHandle" => once(&mut stored.recall_handle, value)?,
            "MSG_REGION" => once(&mut stored.region, value)?,
            "TRACE_ON" => once(&mut stored.trace_on, value)?,
            "batchUniqId" => once(&mut stored.batch_id, value)?,
            _ => return None, // only the pure path knows it
        }
        if !text.more()? {
            return Some(stored);
        }
    }
}

/// Read a whole header that says "stored", as brokers usually write it; return whose answer it is.
pub(crate) fn answer<'a>(header: &'a [u8], spans: &mut Vec<Span>) -> Option<(i64, Whole<'a>)> {
    let mut text = Text::new(header);
    let (mut code, mut flag, mut opaque, mut version) = (None, None, None, None);
    let (mut stored, mut language, mut serialize) = (None, None, None);
    text.step(b'{')?;
    loop {
        let key = text.string()?;
        text.step(b':')?;
        match key {
            "code" => once(&mut code, text.number()?)?,
            "extFields" => once(&mut stored, fields(&mut text, spans)?)?,
            "flag" => once(&mut flag, int32(text.number()?)?)?,
            "opaque" => {
                let start = text.at;
                once(&mut opaque, int32(text.number()?)?)?;
                spans.push((Field::Opaque, start, text.at));
            }
            "version" => once(&mut version, int32(text.number()?)?)?,
            "language" => once(&mut language, text.string()?)?,
            "serializeTypeCurrentRPC" => once(&mut serialize, text.string()?)?,
            _ => return None,
        }
        if !text.more()? {
            break;
        }
    }
    let whole = text.at == header.len() && code? == 0;
    let found = (opaque?, stored?.whole()?);
    (whole && flag? & RESPONSE_FLAG != 0).then_some(found)
}

/// A header that was read key by key: others with the same text around their values are like it.
pub(crate) struct Shape<'a> {
    first: Stored<'a>,
    values: Vec<(&'a [u8], Field)>,
    last: &'a [u8],
}

impl<'a> Shape<'a> {
    /// Keep what was read, and where its values stand.
    pub(crate) fn new(header: &'a [u8], first: Stored<'a>, spans: &[Span]) -> Option<Self> {
        let mut at = 0;
        let mut values = Vec::with_capacity(spans.len());
        for (field, start, end) in spans {
            values.push((header.get(at..*start)?, *field));
            at = *end;
        }
        let last = header.get(at..)?;
        Some(Shape {
            first,
            values,
            last,
        })
    }

    /// Read a header as `answer` does, if it is like this one.
    pub(crate) fn read(&self, header: &'a [u8]) -> Option<(i64, Whole<'a>)> {
        let mut stored = self.first;
        let mut opaque = None;
        let mut rest = header;
        for (before, field) in &self.values {
            let mut text = Text::new(rest.strip_prefix(*before)?);
            if *field == Field::Opaque {
                opaque = Some(int32(text.number()?)?);
            } else {
                let value = text.until_quote()?;
                match field {
                    Field::MessageId => stored.message_id = Some(value),
                    Field::QueueId => stored.queue_id = Some(int32(number(value.as_bytes())?)?),
                    Field::QueueOffset => stored.queue_offset = Some(number(value.as_bytes())?),
                    _ => stored.transaction_id = Some(value),
                }
            }
            rest = text.data.get(text.at..)?;
        }
        (rest == self.last).then_some((opaque?, stored.whole()?))
    }
}
