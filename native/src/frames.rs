//! Cutting a read into commands: frames, and the plain JSON headers in them.
//!
//! A header that is not plain (other types, odd strings, the binary layout) is handed to the pure
//! `read_command`, so that every header is read, or refused, as there.

use memchr::memchr2;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyType};

/// Bytes before a frame's header.
pub(crate) const PREFIX: usize = 8;
const WORD_LIMIT: u32 = 0x1FF_FFFF;
const HEADER_MASK: u32 = 0xFF_FFFF;
/// Larger headers are counted before they are read; that is left to the pure reader.
const HEADER_LIMIT: usize = 64 * 1024;

/// A JSON header's own fields; texts stand as they are written.
#[derive(Default)]
pub(crate) struct Head<'a> {
    pub(crate) code: i32,
    pub(crate) opaque: i32,
    pub(crate) flag: i32,
    version: i32,
    language: Option<&'a [u8]>,
    remark: Option<&'a [u8]>,
    pub(crate) ext: Option<&'a [u8]>,
}

/// A string as JSON writes it, and whether it has escapes.
#[derive(Clone, Copy)]
pub struct Text<'a> {
    /// The text between the quotes.
    pub raw: &'a [u8],
    /// Whether it has escapes.
    pub escaped: bool,
}

/// One frame of a read: its serialise type, its header and its body, and where it ends.
pub(crate) struct Cut<'a> {
    pub(crate) kind: u32,
    pub(crate) header: &'a [u8],
    pub(crate) body: &'a [u8],
    pub(crate) end: usize,
}

/// Return the frame at a position; None if it is not whole, or its prefix is broken.
pub(crate) fn frame_at(data: &[u8], at: usize, limit: u64) -> Option<Cut<'_>> {
    let rest = data.get(at..)?;
    let (prefix, _) = rest.split_first_chunk::<PREFIX>()?;
    let [a, b, c, d, e, f, g, h] = *prefix;
    let length = u32::from_be_bytes([a, b, c, d]);
    let word = u32::from_be_bytes([e, f, g, h]);
    let size = u64::from(length) + 4;
    if size > limit || word > WORD_LIMIT {
        return None;
    }
    let body_at = PREFIX + (word & HEADER_MASK) as usize;
    let frame = rest.get(..usize::try_from(size).ok()?)?;
    Some(Cut {
        kind: word >> 24,
        header: frame.get(PREFIX..body_at)?,
        body: frame.get(body_at..)?,
        end: at + frame.len(),
    })
}

/// Reads JSON without whitespace, as fastjson and all known clients write headers.
pub(crate) struct Scan<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Scan<'a> {
    pub(crate) fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0 }
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    pub(crate) fn take(&mut self, wanted: u8) -> Option<()> {
        (self.peek()? == wanted).then(|| self.at += 1)
    }

    pub(crate) fn is_done(&self) -> bool {
        self.at == self.text.len()
    }

    /// Read a string; escapes are checked and left as they are. None for half of a surrogate pair.
    pub(crate) fn string(&mut self) -> Option<Text<'a>> {
        self.take(b'"')?;
        let start = self.at;
        let mut escaped = false;
        loop {
            let rest = self.text.get(self.at..)?;
            let found = memchr2(b'"', b'\\', rest)?;
            self.at += found;
            if rest[found] == b'"' {
                let raw = self.text.get(start..self.at)?;
                self.at += 1;
                return Some(Text { raw, escaped });
            }
            escaped = true;
            match rest.get(found + 1)? {
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 2,
                b'u' => {
                    unit(rest.get(found + 2..found + 6)?)?;
                    self.at += 6;
                }
                _ => return None,
            }
        }
    }

    fn integer(&mut self) -> Option<i32> {
        let rest = self.text.get(self.at..)?;
        let size = rest
            .iter()
            .take_while(|byte| byte.is_ascii_digit() || **byte == b'-')
            .count();
        self.at += size;
        i32::try_from(decimal(&rest[..size])?).ok()
    }

    /// Read an object of strings and return its text.
    fn strings(&mut self) -> Option<&'a [u8]> {
        let start = self.at;
        self.take(b'{')?;
        if self.take(b'}').is_none() {
            loop {
                self.string()?;
                self.take(b':')?;
                self.string()?;
                if self.take(b',').is_none() {
                    self.take(b'}')?;
                    break;
                }
            }
        }
        self.text.get(start..self.at)
    }
}

/// Return the code unit of four hexadecimal digits; None for half of a surrogate pair.
pub(crate) fn unit(digits: &[u8]) -> Option<char> {
    let mut value = 0;
    for digit in digits {
        value = value * 16 + char::from(*digit).to_digit(16)?;
    }
    char::from_u32(value)
}

/// Read a whole number in its plain form, of at most 18 digits.
pub(crate) fn decimal(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text.split_first()? {
        (b'-', digits) => (true, digits),
        _ => (false, text),
    };
    if digits.is_empty() || digits.len() > 18 || (digits[0] == b'0' && text.len() > 1) {
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

/// Read a plain JSON header; None for one that the pure reader has to look at.
pub(crate) fn read_head(header: &[u8]) -> Option<Head<'_>> {
    if header.len() > HEADER_LIMIT || header.iter().any(|byte| *byte < b' ') {
        return None;
    }
    let mut scan = Scan::new(header);
    let mut head = Head::default();
    let mut seen = 0_u32;
    scan.take(b'{')?;
    loop {
        let key = scan.string()?;
        scan.take(b':')?;
        let bit = match key.raw {
            b"code" => {
                head.code = scan.integer()?;
                1
            }
            b"extFields" => {
                head.ext = Some(scan.strings()?);
                2
            }
            b"flag" => {
                head.flag = scan.integer()?;
                4
            }
            b"language" => {
                head.language = Some(plain(scan.string()?)?);
                8
            }
            b"opaque" => {
                head.opaque = scan.integer()?;
                16
            }
            b"remark" => {
                head.remark = Some(plain(scan.string()?)?);
                32
            }
            b"serializeTypeCurrentRPC" => {
                scan.string()?;
                64
            }
            b"version" => {
                head.version = scan.integer()?;
                128
            }
            _ => return None,
        };
        if seen & bit != 0 {
            return None; // which of two counts is for the pure reader
        }
        seen |= bit;
        if scan.take(b',').is_none() {
            scan.take(b'}')?;
            return scan.is_done().then_some(head);
        }
    }
}

fn plain(text: Text<'_>) -> Option<&[u8]> {
    (!text.escaped).then_some(text.raw)
}

/// What of `pocketmq` and `msgspec` commands are made with; loaded at the first call.
struct Parts {
    command: Py<PyType>,
    raw: Py<PyType>,
    no_ext: Py<PyAny>,
    frame: Py<PyType>,
    read_command: Py<PyAny>,
    malformed: Py<PyType>,
    languages: Vec<(Vec<u8>, Py<PyAny>)>,
    json: Py<PyAny>,
}

static PARTS: PyOnceLock<Parts> = PyOnceLock::new();

impl Parts {
    fn get(py: Python<'_>) -> PyResult<&Parts> {
        PARTS.get_or_try_init(py, || {
            let commands = py.import("pocketmq.protocol.command")?;
            let headers = py.import("pocketmq.protocol.header_json")?;
            let names = headers.getattr("LANGUAGE_NAMES")?.cast_into::<PyDict>()?;
            let mut languages = Vec::new();
            for (name, language) in names {
                languages.push((name.extract::<String>()?.into_bytes(), language.unbind()));
            }
            Ok(Parts {
                command: commands.getattr("Command")?.cast_into::<PyType>()?.unbind(),
                raw: commands.getattr("Raw")?.cast_into::<PyType>()?.unbind(),
                no_ext: headers.getattr("_NO_EXT")?.unbind(),
                frame: commands.getattr("Frame")?.cast_into::<PyType>()?.unbind(),
                read_command: commands.getattr("read_command")?.unbind(),
                malformed: py
                    .import("pocketmq.errors")?
                    .getattr("HeaderMalformed")?
                    .cast_into::<PyType>()?
                    .unbind(),
                languages,
                json: 0_i32.into_pyobject(py)?.into_any().unbind(),
            })
        })
    }

    /// Make the command of a plain header; None if only the pure reader knows its language.
    fn command<'py>(
        &self,
        py: Python<'py>,
        head: &Head<'_>,
        body: &[u8],
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let named = head.language.unwrap_or(b"JAVA");
        let Some((_, language)) = self.languages.iter().find(|(name, _)| name == named) else {
            return Ok(None);
        };
        let remark = match head.remark.map(std::str::from_utf8) {
            None => py.None().into_bound(py),
            Some(Ok(text)) => PyString::new(py, text).into_any(),
            Some(Err(_)) => return Ok(None),
        };
        let ext = match head.ext {
            None => self.no_ext.bind(py).clone(),
            Some(text) => self.raw.bind(py).call1((PyBytes::new(py, text),))?,
        };
        let fields = (
            head.code,
            head.opaque,
            head.flag,
            language.bind(py),
            head.version,
            remark,
            ext,
            PyBytes::new(py, body),
            self.json.bind(py),
        );
        self.command.bind(py).call1(fields).map(Some)
    }
}

/// The commands of a read, where the first frame begins that is not among them, and what is wrong
/// with its header, if anything is.
type Commands<'py> = (Bound<'py, PyList>, usize, Option<Py<PyAny>>);

/// Return the commands of the whole frames from a position on; see the pure `cut_commands`.
#[pyfunction]
pub(crate) fn cut_commands<'py>(
    data: &Bound<'py, PyBytes>,
    start: usize,
    limit: i64,
) -> PyResult<Commands<'py>> {
    let py = data.py();
    let parts = Parts::get(py)?;
    let commands = PyList::empty(py);
    let limit = u64::try_from(limit).unwrap_or(0);
    let mut at = start;
    while let Some(cut) = frame_at(data.as_bytes(), at, limit) {
        let mut command = None;
        if cut.kind == 0 {
            if let Some(head) = read_head(cut.header) {
                command = parts.command(py, &head, cut.body)?;
            }
        }
        let command = match command {
            Some(command) => command,
            None => {
                let header = PyBytes::new(py, cut.header);
                let body = PyBytes::new(py, cut.body);
                let frame = parts.frame.bind(py).call1((cut.kind, header, body))?;
                match parts.read_command.bind(py).call1((frame,)) {
                    Ok(command) => command,
                    Err(error) if error.is_instance(py, parts.malformed.bind(py)) => {
                        error.set_traceback(py, None);
                        return Ok((commands, at, Some(error.into_value(py).into_any())));
                    }
                    Err(error) => return Err(error),
                }
            }
        };
        commands.append(command)?;
        at = cut.end;
    }
    Ok((commands, at, None))
}
