//! Protobuf as plain calls use it: fields read one by one, messages written piece by piece.
//!
//! `None` stands for all that the general path has to look at, malformed bytes among it.

/// Bytes of a number at most: of a field's number or its length, as in protobuf, and of a value.
const SHORT: usize = 5;
const LONG: usize = 9;
/// The last time that protobuf can write.
const LATEST_MS: i64 = 253_402_300_799_999;

/// A field's value; groups and fixed-size numbers, which no plain call has, are not read.
pub(crate) enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message, in the order of the wire.
pub(crate) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn new(message: &'a [u8]) -> Self {
        Fields(message)
    }

    /// Return the next field's number and value; `Some(None)` at the end.
    pub(crate) fn next(&mut self) -> Option<Option<(u64, Value<'a>)>> {
        if self.0.is_empty() {
            return Some(None);
        }
        let key = self.varint(SHORT)?;
        let value = match key & 7 {
            0 => Value::Number(self.varint(LONG)?),
            2 => {
                let size = usize::try_from(self.varint(SHORT)?).ok()?;
                let (value, rest) = self.0.split_at_checked(size)?;
                self.0 = rest;
                Value::Bytes(value)
            }
            _ => return None,
        };
        let number = key >> 3;
        (1..=0x1FFF_FFFF)
            .contains(&number)
            .then_some(Some((number, value)))
    }

    /// Read a number in its shortest form, nearly always; `None` for more bytes than `most`.
    fn varint(&mut self, most: usize) -> Option<u64> {
        let mut value = 0;
        for (at, byte) in self.0.iter().take(most).enumerate() {
            value |= u64::from(byte & 0x7F) << (7 * at);
            if byte & 0x80 == 0 {
                self.0 = &self.0[at + 1..];
                return Some(value);
            }
        }
        None
    }
}

/// Fill what is empty: of a field that comes twice, the general path knows what counts.
pub(crate) fn once<T>(place: &mut Option<T>, value: T) -> Option<()> {
    place.replace(value).is_none().then_some(())
}

/// Return a text of printable ASCII.
pub(crate) fn ascii(raw: &[u8]) -> Option<&str> {
    let simple = raw
        .iter()
        .fold(true, |so_far, byte| so_far & (0x20..0x7F).contains(byte));
    std::str::from_utf8(raw).ok().filter(|_| simple)
}

/// Return the name of a resource, and nothing if it has a namespace.
pub(crate) fn resource(raw: &[u8]) -> Option<&str> {
    let (mut fields, mut name) = (Fields::new(raw), None);
    while let Some((number, value)) = fields.next()? {
        match (number, value) {
            (2, Value::Bytes(raw)) => once(&mut name, ascii(raw)?)?,
            (1, Value::Bytes([])) => {}
            _ => return None,
        }
    }
    name
}

fn push_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Append a field with a number; zero is left out, as of all fields that are not optional.
pub(crate) fn push_number(out: &mut Vec<u8>, field: u8, value: i64) {
    if value != 0 {
        push_optional(out, field, value);
    }
}

/// Append an optional field with a number.
pub(crate) fn push_optional(out: &mut Vec<u8>, field: u8, value: i64) {
    push_varint(out, u64::from(field) << 3);
    push_varint(out, value as u64);
}

/// Append a field with bytes; empty ones are left out.
pub(crate) fn push_text(out: &mut Vec<u8>, field: u8, value: &[u8]) {
    if !value.is_empty() {
        push_message(out, field, value);
    }
}

/// Append a field with a message, or with optional bytes.
pub(crate) fn push_message(out: &mut Vec<u8>, field: u8, value: &[u8]) {
    push_varint(out, u64::from(field) << 3 | 2);
    push_varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

/// Return a time since 1970 as protobuf writes it, the nearest one that it can write.
pub(crate) fn time(milliseconds: i64) -> Vec<u8> {
    duration(milliseconds.clamp(0, LATEST_MS))
}

/// Return a duration as protobuf writes it.
pub(crate) fn duration(milliseconds: i64) -> Vec<u8> {
    let mut out = Vec::with_capacity(12);
    push_number(&mut out, 1, milliseconds / 1000);
    push_number(&mut out, 2, milliseconds % 1000 * 1_000_000);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(message: &[u8]) -> Option<Vec<u64>> {
        let (mut fields, mut found) = (Fields::new(message), Vec::new());
        while let Some((number, _)) = fields.next()? {
            found.push(number);
        }
        Some(found)
    }

    #[test]
    fn what_is_written_is_read() {
        let mut out = Vec::new();
        push_number(&mut out, 4, i64::MAX);
        push_number(&mut out, 5, 0);
        push_text(&mut out, 3, &[7; 300]);
        push_text(&mut out, 2, b"");
        assert_eq!(numbers(&out), Some(vec![4, 3]));
        for size in 1..out.len() {
            let whole = size == 10;
            assert_eq!(numbers(&out[..size]).is_some(), whole, "{size}");
        }
    }

    #[test]
    fn numbers_longer_than_those_of_protobuf_are_not_read() {
        assert_eq!(numbers(b"\x8a\x80\x80\x80\x00\x01x"), Some(vec![1]));
        assert_eq!(numbers(b"\x8a\x80\x80\x80\x80\x00\x01x"), None);
        assert_eq!(numbers(b"\x0a\x81\x80\x80\x80\x00x"), Some(vec![1]));
        assert_eq!(numbers(b"\x0a\x81\x80\x80\x80\x80\x00x"), None);
    }

    #[test]
    fn names_are_plain() {
        assert_eq!(resource(b"\x12\x02ab"), Some("ab"));
        assert_eq!(resource(b"\x0a\x00\x12\x02ab"), Some("ab"));
        for odd in [
            &b"\x0a\x01n\x12\x02ab"[..],
            b"\x12\x02a\x7f",
            b"\x12\x01a\x12\x01b",
            b"",
        ] {
            assert_eq!(resource(odd), None);
        }
    }
}
