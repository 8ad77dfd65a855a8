//! Bytes of the wire and of stored records: checked readers, checksums, digits. No Python types.
//!
//! Nothing here trusts a length: every reader returns `None` where the bytes end too early, and no
//! place is computed without a check.

/// The magic of a record with one byte for the length of its topic.
pub const MAGIC_V1: u32 = 0xDAA3_20A7;
/// The magic of a record with two bytes for it.
pub const MAGIC_V2: u32 = 0xDAA3_20AB;
/// Bytes before the body of a record with IPv4 hosts.
pub const BODY_AT: usize = 88;
/// Bytes that a disk writes as a whole, at least.
pub const SECTOR: usize = 512;
/// The length of properties and of long topics travels as a signed 16-bit number.
pub const LARGEST_TEXT: usize = 32_767;

const DIGITS: &[u8; 16] = b"0123456789ABCDEF";

/// Return the `N` bytes at a place.
#[inline]
pub fn bytes_at<const N: usize>(data: &[u8], at: usize) -> Option<[u8; N]> {
    data.get(at..at.checked_add(N)?)?.try_into().ok()
}

/// Return `size` bytes at a place.
#[inline]
pub fn slice_at(data: &[u8], at: usize, size: usize) -> Option<&[u8]> {
    data.get(at..at.checked_add(size)?)
}

/// Return the big-endian 16-bit number at a place.
#[inline]
pub fn be16(data: &[u8], at: usize) -> Option<u16> {
    bytes_at(data, at).map(u16::from_be_bytes)
}

/// Return the big-endian 32-bit number at a place.
#[inline]
pub fn be32(data: &[u8], at: usize) -> Option<u32> {
    bytes_at(data, at).map(u32::from_be_bytes)
}

/// Return the big-endian 64-bit number at a place.
#[inline]
pub fn be64(data: &[u8], at: usize) -> Option<u64> {
    bytes_at(data, at).map(u64::from_be_bytes)
}

/// Return the signed big-endian 32-bit number at a place.
#[inline]
pub fn be32s(data: &[u8], at: usize) -> Option<i32> {
    bytes_at(data, at).map(i32::from_be_bytes)
}

/// Return the signed big-endian 64-bit number at a place.
#[inline]
pub fn be64s(data: &[u8], at: usize) -> Option<i64> {
    bytes_at(data, at).map(i64::from_be_bytes)
}

/// Return RocketMQ's checksum of a body: CRC-32 without its highest bit.
#[inline]
pub fn checksum(body: &[u8]) -> u32 {
    crc32fast::hash(body) & 0x7FFF_FFFF
}

/// Append bytes as upper-case hexadecimal digits, two for each.
#[inline]
pub fn push_hex(out: &mut Vec<u8>, bytes: &[u8]) {
    for byte in bytes {
        out.extend_from_slice(&[
            DIGITS[usize::from(byte >> 4)],
            DIGITS[usize::from(byte & 15)],
        ]);
    }
}

/// Append a number in decimal digits.
#[inline]
pub fn push_decimal(out: &mut Vec<u8>, value: i64) {
    let mut digits = [0; 20];
    let mut left = value.unsigned_abs();
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    if value < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[at..]);
}

/// Return Java's `String.hashCode()` of a text; what is not UTF-8 counts as Python's `replace` has it.
pub fn java_hash(text: &[u8]) -> i32 {
    let step = |hash: i32, unit: i32| hash.wrapping_mul(31).wrapping_add(unit);
    if text.is_ascii() {
        return text
            .iter()
            .fold(0, |hash, unit| step(hash, i32::from(*unit)));
    }
    let text = String::from_utf8_lossy(text);
    text.encode_utf16()
        .fold(0, |hash, unit| step(hash, i32::from(unit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_return_nothing_beyond_the_end() {
        let data = [1, 2, 3, 4, 5, 6, 7, 8];
        assert_eq!(be16(&data, 6), Some(0x0708));
        assert_eq!(be32(&data, 4), Some(0x0506_0708));
        assert_eq!(be64(&data, 0), Some(0x0102_0304_0506_0708));
        for at in [1, 8, usize::MAX] {
            assert_eq!(be64(&data, at), None);
            assert_eq!(slice_at(&data, at, usize::MAX), None);
        }
        assert_eq!(be32s(&[255; 4], 0), Some(-1));
        assert_eq!(be64s(&[255; 8], 0), Some(-1));
    }

    #[test]
    fn digits_are_written_as_python_writes_them() {
        let mut out = Vec::new();
        push_hex(&mut out, &[0, 0xAB, 0x9F]);
        for value in [0, -7, i64::MAX, i64::MIN] {
            out.push(b' ');
            push_decimal(&mut out, value);
        }
        assert_eq!(out, b"00AB9F 0 -7 9223372036854775807 -9223372036854775808");
    }

    #[test]
    fn hashes_are_those_of_java() {
        assert_eq!(java_hash(b""), 0);
        assert_eq!(java_hash(b"TagA"), 2_598_919);
        assert_eq!(java_hash("\u{1F600}".as_bytes()), 1_772_899);
    }
}
