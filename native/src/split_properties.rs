//! The properties of many messages as columns.

use std::collections::HashMap;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

use crate::checksums::numbers;
use crate::python::{pure, Imported};

static SPLIT: Imported = Imported::new("pocketmq.protocol.split_properties", "SplitProperties");
static PAIRS: Imported = Imported::new("pocketmq.protocol.split_properties", "Pairs");
static TEXTS: Imported = Imported::new("pocketmq.protocol.split_properties", "Texts");

/// Properties of one message up to which each is compared with each.
const FEW: usize = 16;

/// Texts one after the other.
#[derive(Debug, PartialEq)]
pub struct Texts {
    /// Where each begins, and where the last ends: 32-bit numbers of this machine.
    pub offsets: Vec<u8>,
    /// All of them.
    pub text: Vec<u8>,
    /// A bit for each: whether there is one.
    pub present: Vec<u8>,
    count: usize,
    missing: bool,
}

impl Texts {
    fn new() -> Texts {
        Texts {
            offsets: vec![0; 4],
            text: Vec::new(),
            present: Vec::new(),
            count: 0,
            missing: false,
        }
    }

    fn push(&mut self, value: Option<&[u8]>) -> Option<()> {
        let at = self.count;
        self.count += 1;
        if at % 8 == 0 {
            self.present.push(0);
        }
        match value {
            Some(value) => {
                self.text.extend_from_slice(value);
                if let Some(bits) = self.present.last_mut() {
                    *bits |= 1 << (at % 8);
                }
            }
            None => self.missing = true,
        }
        push_number(&mut self.offsets, self.text.len())
    }

    fn into_python<'py>(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let present: &[u8] = if self.missing { &self.present } else { b"" };
        let arguments = (
            PyBytes::new(py, &self.offsets),
            PyBytes::new(py, &self.text),
            PyBytes::new(py, present),
        );
        TEXTS.get(py)?.call1(arguments)
    }
}

/// All properties but some, as pairs of a name and a value.
#[derive(Debug, PartialEq)]
pub struct Pairs {
    /// The number of pairs before each message, and after the last: 32-bit numbers.
    pub firsts: Vec<u8>,
    /// Their names.
    pub names: Texts,
    /// Their values.
    pub values: Texts,
}

/// What becomes of a property: by its name.
#[derive(Clone, Copy)]
struct Use {
    column: Option<usize>,
    pair: bool,
}

/// The names of the message before: most messages have the same ones, in the same order.
#[derive(Default)]
struct Before<'a> {
    names: Vec<(&'a [u8], Use)>,
    /// Whether no name is there twice.
    distinct: bool,
}

/// Return the columns and the pairs; None if a text is not ASCII, is not within `data`, if there is
/// too much text, or if a name is wanted twice.
pub fn split(
    data: &[u8],
    starts: &[u8],
    ends: &[u8],
    wanted: &[&[u8]],
    left_out: Option<&[&[u8]]>,
) -> Option<(Vec<Texts>, Option<Pairs>)> {
    let (starts, ends) = (numbers(starts)?, numbers(ends)?);
    let twice = (1..wanted.len()).any(|at| wanted[..at].contains(&wanted[at]));
    if starts.len() != ends.len() || twice {
        return None;
    }
    let mut columns: Vec<Texts> = wanted.iter().map(|_| Texts::new()).collect();
    let mut pairs = left_out.map(|_| Pairs {
        firsts: vec![0; 4],
        names: Texts::new(),
        values: Texts::new(),
    });
    let (mut found, mut row) = (Vec::new(), vec![None; wanted.len()]);
    let mut before = Before::default();
    let mut total = 0usize;
    for (start, end) in starts.zip(ends) {
        let text = data.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)?;
        total = total.checked_add(text.len())?;
        if !text.is_ascii() || i32::try_from(total).is_err() {
            return None;
        }
        pieces(text, &mut found);
        note(&found, &mut before, wanted, left_out);
        if !before.distinct {
            drop_repeated(&mut found, &mut before);
        }
        row.fill(None);
        for (&(name, value), (_, used)) in found.iter().zip(&before.names) {
            if let Some(column) = used.column {
                row[column] = Some(value);
            }
            if let (true, Some(pairs)) = (used.pair, &mut pairs) {
                pairs.names.push(Some(name))?;
                pairs.values.push(Some(value))?;
            }
        }
        for (column, value) in columns.iter_mut().zip(&row) {
            column.push(*value)?;
        }
        if let Some(pairs) = &mut pairs {
            push_number(&mut pairs.firsts, pairs.names.count)?;
        }
    }
    Some((columns, pairs))
}

/// Find the names and values of one message.
fn pieces<'a>(text: &'a [u8], found: &mut Vec<(&'a [u8], &'a [u8])>) {
    found.clear();
    for piece in text.split(|&byte| byte == 2) {
        if let Some(at) = piece.iter().position(|&byte| byte == 1) {
            let (name, value) = (&piece[..at], &piece[at + 1..]);
            if !name.is_empty() && !value.is_empty() {
                found.push((name, value));
            }
        }
    }
}

/// Look up what becomes of the names of a message, unless they are those of the one before.
fn note<'a>(
    found: &[(&'a [u8], &'a [u8])],
    before: &mut Before<'a>,
    wanted: &[&[u8]],
    left_out: Option<&[&[u8]]>,
) {
    let names = before.names.iter().map(|each| each.0);
    if found.iter().map(|each| each.0).eq(names) {
        return;
    }
    before.names.clear();
    before.names.extend(found.iter().map(|&(name, _)| {
        let column = wanted.iter().position(|each| *each == name);
        let pair = left_out.is_some_and(|names| !names.contains(&name));
        (name, Use { column, pair })
    }));
    before.distinct = is_distinct(&before.names);
}

fn is_distinct(names: &[(&[u8], Use)]) -> bool {
    if names.len() > FEW {
        return false; // `drop_repeated` finds out
    }
    (1..names.len()).all(|at| names[..at].iter().all(|each| each.0 != names[at].0))
}

/// Of several values of one name keep the last.
fn drop_repeated<'a>(found: &mut Vec<(&'a [u8], &'a [u8])>, before: &mut Before<'a>) {
    let last: HashMap<&[u8], usize> = (0..)
        .zip(found.iter())
        .map(|(at, each)| (each.0, at))
        .collect();
    let kept = |at: usize, name: &[u8]| last.get(name) == Some(&at);
    let (mut at, mut other) = (0, 0);
    before.names.retain(|each| {
        at += 1;
        kept(at - 1, each.0)
    });
    found.retain(|each| {
        other += 1;
        kept(other - 1, each.0)
    });
}

/// Return the properties of messages as columns.
#[pyfunction]
pub fn split_properties<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    starts: &Bound<'py, PyAny>,
    ends: &Bound<'py, PyAny>,
    wanted: &Bound<'py, PyAny>,
    left_out: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let left = (!left_out.is_none()).then_some(left_out);
    let found = || {
        let names = all_bytes(wanted)?;
        let names: Vec<&[u8]> = names.iter().map(|each| each.as_bytes()).collect();
        let left = match left {
            Some(given) => Some(all_bytes(given)?),
            None => None,
        };
        let left: Option<Vec<&[u8]>> = left
            .as_ref()
            .map(|given| given.iter().map(|each| each.as_bytes()).collect());
        split(
            data.cast_exact::<PyBytes>().ok()?.as_bytes(),
            starts.cast_exact::<PyBytes>().ok()?.as_bytes(),
            ends.cast_exact::<PyBytes>().ok()?.as_bytes(),
            &names,
            left.as_deref(),
        )
    };
    let Some((columns, pairs)) = found() else {
        return pure(py, "split_properties")?.call1((data, starts, ends, wanted, left_out));
    };
    let made = PyList::empty(py);
    for column in columns {
        made.append(column.into_python(py)?)?;
    }
    let others = match pairs {
        None => py.None().into_bound(py),
        Some(pairs) => PAIRS.get(py)?.call1((
            PyBytes::new(py, &pairs.firsts),
            pairs.names.into_python(py)?,
            pairs.values.into_python(py)?,
        ))?,
    };
    SPLIT.get(py)?.call1((made, others))
}

fn all_bytes<'py>(names: &Bound<'py, PyAny>) -> Option<Vec<Bound<'py, PyBytes>>> {
    let names = names.cast_exact::<PyTuple>().ok()?;
    names
        .iter()
        .map(|each| each.cast_into_exact::<PyBytes>().ok())
        .collect()
}

fn push_number(numbers: &mut Vec<u8>, number: usize) -> Option<()> {
    numbers.extend_from_slice(&i32::try_from(number).ok()?.to_ne_bytes());
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers_of(raw: &[u8]) -> Vec<i32> {
        raw.chunks_exact(4)
            .map(|each| i32::from_ne_bytes(each.try_into().unwrap()))
            .collect()
    }

    fn bounds(numbers: &[i64]) -> Vec<u8> {
        numbers.iter().flat_map(|each| each.to_ne_bytes()).collect()
    }

    #[test]
    fn columns_and_pairs_are_split_and_odd_input_is_left() {
        let data = b"k\x01a\x02t\x01x\x02k\x01bc\x02\x01n\x02e\x01\x02none\x02t\x01y\x01z";
        let (starts, ends) = (bounds(&[0, 4, 8]), bounds(&[4, 8, data.len() as i64]));
        let wanted: [&[u8]; 1] = [b"k"];
        let (columns, pairs) = split(data, &starts, &ends, &wanted, Some(&[b"k"])).unwrap();
        assert_eq!(numbers_of(&columns[0].offsets), [0, 1, 1, 3]);
        assert_eq!(columns[0].text, b"abc");
        assert_eq!(columns[0].present, [0b101]);
        let pairs = pairs.unwrap();
        assert_eq!(numbers_of(&pairs.firsts), [0, 0, 1, 2]);
        assert_eq!(
            (pairs.names.text, pairs.values.text),
            (b"tt".to_vec(), b"xy\x01z".to_vec())
        );
        for (starts, ends) in [([-1], [2]), ([2], [1]), ([0], [99])] {
            assert_eq!(
                split(data, &bounds(&starts), &bounds(&ends), &wanted, None),
                None
            );
        }
        assert_eq!(split(data, &starts, &ends[8..], &wanted, None), None);
        assert_eq!(
            split(b"k\x01\xff", &bounds(&[0]), &bounds(&[3]), &wanted, None),
            None
        );
    }

    #[test]
    fn of_several_values_the_last_counts_also_among_many() {
        let mut data = b"k\x01first\x02".to_vec();
        for number in 0..40 {
            data.extend_from_slice(format!("n{}\x01{number}\x02", number % 20).as_bytes());
        }
        data.extend_from_slice(b"k\x01last");
        let (starts, ends) = (bounds(&[0, 0]), bounds(&[data.len() as i64, 8]));
        let (columns, pairs) = split(&data, &starts, &ends, &[b"k"], Some(&[b"k"])).unwrap();
        assert_eq!(columns[0].text, b"lastfirst");
        assert_eq!(numbers_of(&pairs.unwrap().firsts), [0, 20, 20]);
    }
}
