//! The checksums of the bodies of stored records.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::python::pure;

/// Return 64-bit numbers of this machine.
pub(crate) fn numbers(raw: &[u8]) -> Option<impl ExactSizeIterator<Item = i64> + '_> {
    (raw.len() % 8 == 0).then(|| {
        raw.chunks_exact(8)
            .map(|each| i64::from_ne_bytes(each.try_into().unwrap_or_default()))
    })
}

/// Return the number of the first body that does not match its checksum, -1 if all match; None if
/// the bounds are odd.
pub fn first_wrong(data: &[u8], starts: &[u8], ends: &[u8], stored: &[u8]) -> Option<i64> {
    let (starts, ends, stored) = (numbers(starts)?, numbers(ends)?, numbers(stored)?);
    if starts.len() != ends.len() || starts.len() != stored.len() {
        return None;
    }
    for (number, ((start, end), expected)) in (0i64..).zip(starts.zip(ends).zip(stored)) {
        let body = data.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)?;
        if expected != 0 && i64::from(crc32fast::hash(body) & 0x7fff_ffff) != expected {
            return Some(number);
        }
    }
    Some(-1)
}

/// Return the number of the first body that does not match its checksum.
#[pyfunction]
pub fn wrong_body<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    starts: &Bound<'py, PyAny>,
    ends: &Bound<'py, PyAny>,
    stored: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let found = || {
        first_wrong(
            data.cast_exact::<PyBytes>().ok()?.as_bytes(),
            starts.cast_exact::<PyBytes>().ok()?.as_bytes(),
            ends.cast_exact::<PyBytes>().ok()?.as_bytes(),
            stored.cast_exact::<PyBytes>().ok()?.as_bytes(),
        )
    };
    match found() {
        Some(number) => Ok(number.into_pyobject(py)?.into_any()),
        None => pure(py, "wrong_body")?.call1((data, starts, ends, stored)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(numbers: &[i64]) -> Vec<u8> {
        numbers.iter().flat_map(|each| each.to_ne_bytes()).collect()
    }

    #[test]
    fn the_first_wrong_body_is_found_and_odd_bounds_are_left() {
        let right = i64::from(crc32fast::hash(b"ab") & 0x7fff_ffff);
        let (starts, ends) = (raw(&[0, 2, 0]), raw(&[2, 3, 2]));
        for (stored, found) in [
            ([right, 0, right], -1),
            ([right, 5, 6], 1),
            ([right, 0, 6], 2),
        ] {
            assert_eq!(
                first_wrong(b"abc", &starts, &ends, &raw(&stored)),
                Some(found)
            );
        }
        let one = raw(&[1]);
        for (starts, ends, stored) in [
            (raw(&[-1]), raw(&[2]), one.clone()),
            (raw(&[2]), raw(&[1]), one.clone()),
            (raw(&[0]), raw(&[4]), one.clone()),
            (raw(&[0]), raw(&[1, 2]), one.clone()),
            (vec![0; 7], vec![0; 7], vec![0; 7]),
        ] {
            assert_eq!(first_wrong(b"abc", &starts, &ends, &stored), None);
        }
    }
}
