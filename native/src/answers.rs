//! Responses that say a plain send is stored: one alone, or those of a read.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyInt, PyList, PyString, PyTuple};

use crate::frames::frame_at;
use crate::posts;
use crate::python::{pure, Imported};
use crate::stored::{answer, Shape, Whole, LONGEST};
use crate::wire::{be32, push_hex};

static RECEIPT: Imported = Imported::new("pocketmq.model", "SendReceipt");
static STORED: Imported = Imported::new("pocketmq.client.producer.plain_frames", "STORED");

/// Return the fields of the one frame in `data`, if it is a plain response to `opaque`.
fn plain_answer(data: &[u8], opaque: i64) -> Option<Whole<'_>> {
    let header = data.get(8..)?;
    let size = u32::try_from(header.len()).ok()?;
    let fits = be32(data, 0)?.checked_sub(4)? == size && be32(data, 4)? == size;
    if !fits || header.len() > LONGEST {
        return None;
    }
    let (number, stored) = answer(header, &mut Vec::new())?;
    (number == opaque).then_some(stored)
}

/// Return what a receipt needs, if `data` is one frame: a response that says "stored".
#[pyfunction]
pub fn stored_answer<'py>(
    data: &Bound<'py, PyBytes>,
    opaque: i64,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = data.py();
    let found = plain_answer(data.as_bytes(), opaque);
    if let Some(whole) = found.filter(|whole| whole.3.batch_id.is_none()) {
        return Ok(Some(receipt(py, whole)?.into_any()));
    }
    let made = pure(py, "stored_answer")?.call1((data, opaque))?;
    Ok((!made.is_none()).then_some(made))
}

/// Return what the receipt of a batch needs, and whether the broker has an id for the whole.
#[pyfunction]
pub fn stored_batch<'py>(
    data: &Bound<'py, PyBytes>,
    opaque: i64,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = data.py();
    if let Some(whole) = plain_answer(data.as_bytes(), opaque) {
        let made = (receipt(py, whole)?, whole.3.batch_id.is_some());
        return Ok(Some(made.into_pyobject(py)?.into_any()));
    }
    let made = pure(py, "stored_batch")?.call1((data, opaque))?;
    Ok((!made.is_none()).then_some(made))
}

fn receipt<'py>(
    py: Python<'py>,
    (message_id, queue_id, queue_offset, stored): Whole<'_>,
) -> PyResult<Bound<'py, PyTuple>> {
    (
        message_id,
        queue_id,
        queue_offset,
        stored.transaction_id,
        stored.recall_handle,
        stored.region(py),
        stored.trace_on != Some("false"),
    )
        .into_pyobject(py)
}

/// Messages that were answered together: their window, how many, their bytes, when they left.
struct Together<'py> {
    window: Bound<'py, PyAny>,
    count: usize,
    bytes: usize,
    asked: Bound<'py, PyAny>,
}

impl<'py> Together<'py> {
    /// Note them, for what frees the capacity: also if handing over ends with an error.
    fn note(self, freed: &Bound<'py, PyList>) -> PyResult<()> {
        freed.append((self.window, self.count, self.bytes, self.asked))
    }
}

/// Hand the receipts of a read over to those who wait for them; see the pure `take_receipts`.
#[pyfunction]
pub fn take_receipts<'py>(
    data: &Bound<'py, PyBytes>,
    start: usize,
    limit: i64,
    waiting: &Bound<'py, PyDict>,
    freed: &Bound<'py, PyList>,
) -> PyResult<(usize, usize)> {
    let mut latest = None;
    let ended = hand_over(data, start, limit, waiting, &mut latest, freed);
    if let Some(together) = latest {
        together.note(freed)?;
    }
    let (count, at, odd) = ended?;
    if !odd {
        return Ok((count, at));
    }
    // Only the pure function knows what this is; it goes on from here.
    let rest = pure(data.py(), "take_receipts")?.call1((data, at, limit, waiting, freed))?;
    let (more, end): (usize, usize) = rest.extract()?;
    Ok((count + more, end))
}

/// Hand them over; return how many, where they end, and whether what comes there is odd.
fn hand_over<'py>(
    data: &Bound<'py, PyBytes>,
    start: usize,
    limit: i64,
    waiting: &Bound<'py, PyDict>,
    latest: &mut Option<Together<'py>>,
    freed: &Bound<'py, PyList>,
) -> PyResult<(usize, usize, bool)> {
    let py = data.py();
    let most = u64::try_from(limit).unwrap_or(0);
    let (mut count, mut at) = (0, start);
    let mut spans = Vec::new();
    let mut shape: Option<Shape<'_>> = None;
    while let Some(cut) = frame_at(data.as_bytes(), at, most) {
        if cut.kind != 0 || !cut.body.is_empty() || cut.header.len() > LONGEST {
            break;
        }
        let mut usual = shape.as_ref().and_then(|shape| shape.read(cut.header));
        if usual.is_none() {
            spans.clear();
            usual = answer(cut.header, &mut spans).filter(|(_, whole)| whole.3.batch_id.is_none());
            shape = usual.and_then(|(_, whole)| Shape::new(cut.header, whole.3, &spans));
        }
        let Some((opaque, stored)) = usual else {
            return Ok((count, at, true));
        };
        let opaque = PyInt::new(py, opaque);
        let Some(posted) = waiting.get_item(&opaque)? else {
            break;
        };
        let Ok(posted) = posted.cast_into::<PyTuple>() else {
            break;
        };
        if posted.len() <= posts::WINDOW {
            break;
        }
        let Some(receipt) = of_posted(&posted, stored)? else {
            break;
        };
        waiting.del_item(&opaque)?;
        count += 1;
        at = cut.end;
        settle(&posted, receipt, latest, freed)?;
    }
    Ok((count, at, false))
}

/// Give a send its receipt, unless it was cancelled, and note what capacity that frees.
fn settle<'py>(
    posted: &Bound<'py, PyTuple>,
    receipt: Bound<'py, PyAny>,
    latest: &mut Option<Together<'py>>,
    freed: &Bound<'py, PyList>,
) -> PyResult<()> {
    let py = posted.py();
    let sink = posted.get_borrowed_item(0)?;
    if sink.call_method0(intern!(py, "done"))?.is_truthy()? {
        return Ok(());
    }
    let (window, asked) = (
        posted.get_item(posts::WINDOW)?,
        posted.get_item(posts::ASKED)?,
    );
    let body = posted
        .get_borrowed_item(posts::MESSAGE)?
        .getattr(intern!(py, "body"))?;
    let bytes = body.cast::<PyBytes>()?.as_bytes().len();
    // Before the receipt is there: whatever comes of waking its task, the send has ended.
    match latest {
        Some(them) if them.window.is(&window) && them.asked.is(&asked) => {
            them.count += 1;
            them.bytes += bytes;
        }
        _ => {
            let new = Together {
                window,
                count: 1,
                bytes,
                asked,
            };
            if let Some(before) = latest.replace(new) {
                before.note(freed)?;
            }
        }
    }
    sink.call_method1(intern!(py, "set_result"), (receipt,))?;
    Ok(())
}

/// Return the receipt of a posted send; None if the response is not as it should be.
fn of_posted<'py>(
    posted: &Bound<'py, PyTuple>,
    (message_id, queue_id, queue_offset, stored): Whole<'_>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = posted.py();
    let queue = posted.get_item(posts::QUEUE)?;
    if queue
        .getattr(intern!(py, "queue_id"))?
        .extract::<i64>()
        .ok()
        != Some(queue_id)
    {
        return Ok(None);
    }
    let prefix = posted.get_item(posts::PREFIX)?;
    let number: i64 = posted.get_item(posts::NUMBER)?.extract()?;
    let prefix = prefix.cast::<PyString>()?.to_cow()?;
    let mut digits = Vec::with_capacity(4);
    push_hex(&mut digits, &((number & 0xFFFF) as u16).to_be_bytes());
    let named = |text: &str| {
        text.as_bytes()
            .strip_prefix(prefix.as_bytes())
            .is_some_and(|end| end == digits)
    };
    // Brokers repeat the id there.
    let (unique_id, transaction_id) = match stored.transaction_id {
        Some(text) if named(text) => {
            let id = PyString::new(py, text);
            (id.clone(), Some(id))
        }
        other => {
            let id = format!("{prefix}{}", String::from_utf8_lossy(&digits));
            (
                PyString::new(py, &id),
                other.map(|text| PyString::new(py, text)),
            )
        }
    };
    let made = RECEIPT.get(py)?.call1((
        STORED.get(py)?,
        unique_id,
        message_id,
        queue,
        queue_offset,
        transaction_id,
        stored.recall_handle,
        stored.region(py),
        stored.trace_on != Some("false"),
    ))?;
    Ok(Some(made))
}
