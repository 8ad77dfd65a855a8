//! What a broker reads from a message's properties: the code of its tag, and whether they are whole.

use memchr::{memchr, memrchr};

use crate::wire::{java_hash, SECTOR};

const NAME: &[u8] = b"TAGS\x01";

/// Return the hash of the tag among these properties, 0 if there is none.
///
/// The last tag counts that is not empty.
pub fn tags_code(properties: &[u8]) -> i32 {
    let mut before = properties;
    while let Some(at) = memrchr(2, before) {
        if let Some(tag) = tag_at(properties, at + 1) {
            return java_hash(tag);
        }
        before = &before[..at];
    }
    tag_at(properties, 0).map_or(0, java_hash)
}

/// Return the tag whose name begins at a place, if it has a value.
fn tag_at(properties: &[u8], at: usize) -> Option<&[u8]> {
    let value = properties.get(at..)?.strip_prefix(NAME)?;
    let end = memchr(2, value).unwrap_or(value.len());
    Some(&value[..end]).filter(|tag| !tag.is_empty())
}

/// Return whether properties could be what a crash left of others: zeros at their end, or in the
/// middle of what takes more than one sector.
pub fn looks_torn(properties: &[u8]) -> bool {
    let Some(last) = properties.last() else {
        return false;
    };
    *last == 0 || (properties.len() > SECTOR && memchr(0, properties).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_tag_that_is_not_empty_counts() {
        let a = java_hash(b"a");
        for (text, code) in [
            (&b""[..], 0),
            (b"TAGS\x01a\x02", a),
            (b"TAGS\x01a", a),
            (b"TAGS\x01b\x02TAGS\x01a\x02k\x01v\x02", a),
            (b"TAGS\x01a\x02TAGS\x01\x02", a),
            (b"TAGS\x01\x02", 0),
            (b"xTAGS\x01a\x02", 0),
            (b"k\x01v\x02TAGS", 0),
        ] {
            assert_eq!(tags_code(text), code, "{text:?}");
        }
    }

    #[test]
    fn zeros_at_the_end_or_in_a_long_text_look_torn() {
        assert!(!looks_torn(b""));
        assert!(!looks_torn(b"a\x01\0b\x02"));
        assert!(looks_torn(b"a\x01b\0"));
        let mut long = [b'v'; SECTOR + 1];
        assert!(!looks_torn(&long));
        long[9] = 0;
        assert!(looks_torn(&long));
        assert!(!looks_torn(&long[1..]));
    }
}
