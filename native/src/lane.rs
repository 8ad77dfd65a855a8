//! A burst of plain sends, or a batch, from the bytes of a read to records, index entries, answers.
//!
//! Only what the general path would take without a second look is taken here: known queues, no
//! property that asks for more, nothing odd in the header. The first request that is not so ends the
//! burst; Python goes on with it, so that order stays what it was. Python keeps the state of the
//! store: this gets its numbers and returns bytes.

use std::collections::HashMap;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

use crate::frames::frame_at;
use crate::lane_records::{Burst, Forms, Place, Queue, Run};
use crate::plain_send::{comes_back, read_send, Send, Way, SEND_BATCH};

const TOPIC_LIMIT: usize = 127;
const QUEUES_LIMIT: i32 = 1 << 16;
const KEPT: usize = 65_536;

/// A queue that sends may go to.
struct Target {
    queue: Py<PyAny>,
    sys_flag: i32,
    burst: u64,
    run: usize,
}

#[derive(Default)]
struct Topic {
    /// The name with its length before it, as records have it.
    field: Vec<u8>,
    targets: Vec<Option<usize>>,
}

/// Where messages may go first: how long each delay level is, whether to the half messages, and what
/// returns the queue of a level, or that of the half messages for 0.
type Elsewhere = (Vec<i64>, bool, Py<PyAny>);

/// Takes bursts of plain sends for one broker; it forgets its queues when topics change.
#[pyclass(module = "pocketmq_core")]
pub(crate) struct SendLane {
    forms: Forms,
    max_body: usize,
    topics: HashMap<Box<[u8]>, Topic>,
    targets: Vec<Target>,
    /// The queue of half messages, and those of delay levels from the first on, as they are used.
    elsewhere: Vec<Option<usize>>,
    find_elsewhere: Option<Py<PyAny>>,
    burst: u64,
}

#[pymethods]
impl SendLane {
    /// Take what all messages get, an answer's text around its five values, and where messages may
    /// go first. Without that, or if what all messages get is unusual, such messages are not taken.
    #[new]
    #[pyo3(signature = (stamp, store_host, answer, max_body, elsewhere=None))]
    fn new(
        stamp: &[u8],
        store_host: &[u8],
        answer: Vec<Vec<u8>>,
        max_body: usize,
        elsewhere: Option<Elsewhere>,
    ) -> PyResult<Self> {
        let store_host = store_host.try_into().map_err(refuse)?;
        let answer = answer
            .try_into()
            .map_err(|_| PyValueError::new_err("an answer has six parts"))?;
        let (delays_ms, halves, find_elsewhere) = match elsewhere {
            Some((delays_ms, halves, find)) if comes_back(stamp) => (delays_ms, halves, Some(find)),
            _ => (Vec::new(), false, None),
        };
        Ok(Self {
            forms: Forms {
                stamp: stamp.to_vec(),
                store_host,
                answer,
                delays_ms,
                halves,
            },
            max_body,
            topics: HashMap::new(),
            targets: Vec::new(),
            elsewhere: Vec::new(),
            find_elsewhere,
            burst: 0,
        })
    }

    /// Forget all queues: they are looked up again.
    fn clear(&mut self) {
        self.topics.clear();
        self.targets.clear();
        self.elsewhere.clear();
    }

    /// Take the plain sends, or the batch, at a position of a read, as long as the log has room.
    ///
    /// Returns None if there are none; else where they end, their records, their answers, for each
    /// queue what it gets, how many answers are to requests of either code, and when the first
    /// delayed message is due, 0 without one.
    #[pyo3(signature = (data, start, frame_limit, log, born_host, targets, version))]
    #[allow(clippy::too_many_arguments)] // the state of the store, which is Python's
    fn take<'py>(
        &mut self,
        data: &Bound<'py, PyBytes>,
        start: usize,
        frame_limit: u64,
        log: (i64, i64, i64),
        born_host: &[u8],
        targets: &Bound<'py, PyDict>,
        version: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let py = data.py();
        let (position, end, now_ms) = log;
        let born_host = born_host.try_into().map_err(refuse)?;
        let mut place = Place {
            position,
            end,
            now_ms,
            born_host,
        };
        let mut burst = Burst::default();
        self.burst += 1;
        if self.targets.len() >= KEPT {
            self.clear();
        }
        let bytes = data.as_bytes();
        let mut at = start;
        while let Some(cut) = frame_at(bytes, at, frame_limit) {
            if cut.kind != 0 || cut.body.is_empty() || cut.body.len() > self.max_body {
                break;
            }
            let Some(send) = read_send(cut.header) else {
                break;
            };
            let batch = send.code == SEND_BATCH;
            if batch && at != start {
                break; // a batch is a burst of its own
            }
            let Some(index) = self.target(&send, targets, version)? else {
                break;
            };
            let goes_to = match burst.read(&self.forms, &send) {
                None => None,
                Some(Way::Plain) => Some(index),
                Some(Way::Half) => self.elsewhere(py, 0)?,
                Some(Way::Delayed(level)) => self.elsewhere(py, level)?,
            };
            let Some(goes_to) = goes_to else {
                break;
            };
            let run = self.run(py, goes_to, &mut burst)?;
            let Some(topic) = self.topics.get(send.topic) else {
                break;
            };
            let queue = Queue {
                topic: &topic.field,
                flag: self.targets[index].sys_flag,
            };
            let add = if batch { Burst::add_batch } else { Burst::add };
            let added = add(
                &mut burst,
                &self.forms,
                run,
                queue,
                &send,
                cut.body,
                &mut place,
            );
            if added.is_none() {
                break;
            }
            at = cut.end;
            if batch {
                break;
            }
        }
        if at == start {
            return Ok(None);
        }
        Ok(Some(self.finish(py, at, burst)?))
    }
}

impl SendLane {
    /// Find a queue: one that is known, or one among those that Python knows.
    fn target<'py>(
        &mut self,
        send: &Send<'_>,
        known: &Bound<'py, PyDict>,
        version: &Bound<'py, PyAny>,
    ) -> PyResult<Option<usize>> {
        if !(0..QUEUES_LIMIT).contains(&send.queue_id) {
            return Ok(None);
        }
        let slot = send.queue_id as usize;
        if let Some(topic) = self.topics.get(send.topic) {
            if let Some(Some(index)) = topic.targets.get(slot) {
                return Ok(Some(*index));
            }
        }
        let py = known.py();
        let Ok(name) = std::str::from_utf8(send.topic) else {
            return Ok(None);
        };
        let key = (PyString::new(py, name), send.queue_id);
        let Some(found) = known.get_item(key)? else {
            return Ok(None);
        };
        let retry: bool = found.getattr("retry")?.extract()?;
        if retry || send.topic.len() > TOPIC_LIMIT || !found.getattr("version")?.is(version) {
            return Ok(None);
        }
        if self.targets.len() >= KEPT {
            return Ok(None);
        }
        let index = self.targets.len();
        self.targets.push(Target {
            queue: found.getattr("queue")?.unbind(),
            sys_flag: found.getattr("sys_flag")?.extract()?,
            burst: 0,
            run: 0,
        });
        let topic = self.topics.entry(send.topic.into()).or_default();
        if topic.field.is_empty() {
            topic.field.push(send.topic.len() as u8);
            topic.field.extend_from_slice(send.topic);
        }
        if topic.targets.len() <= slot {
            topic.targets.resize(slot + 1, None);
        }
        topic.targets[slot] = Some(index);
        Ok(Some(index))
    }

    /// Return the queue of a delay level, or of half messages for 0, if there is one; it is looked up
    /// again in each burst.
    fn elsewhere(&mut self, py: Python<'_>, level: usize) -> PyResult<Option<usize>> {
        if self.elsewhere.len() <= level {
            self.elsewhere.resize(level + 1, None);
        }
        let known = self.elsewhere[level];
        if let Some(index) = known {
            if self.targets[index].burst == self.burst {
                return Ok(Some(index));
            }
        }
        let Some(find) = &self.find_elsewhere else {
            return Ok(None);
        };
        let queue = find.call1(py, (level,))?;
        if queue.is_none(py) {
            return Ok(None);
        }
        if let Some(index) = known {
            self.targets[index].queue = queue;
            return Ok(Some(index));
        }
        let index = self.targets.len();
        self.targets.push(Target {
            queue,
            sys_flag: 0,
            burst: 0,
            run: 0,
        });
        self.elsewhere[level] = Some(index);
        Ok(Some(index))
    }

    /// Return what this burst adds to a queue so far.
    fn run(&mut self, py: Python<'_>, index: usize, burst: &mut Burst) -> PyResult<usize> {
        let target = &mut self.targets[index];
        if target.burst != self.burst {
            let first = target
                .queue
                .bind(py)
                .getattr(pyo3::intern!(py, "next_offset"))?
                .extract()?;
            target.burst = self.burst;
            target.run = burst.runs.len();
            burst.runs.push(Run::new(index, first));
        }
        Ok(target.run)
    }

    fn finish<'py>(
        &self,
        py: Python<'py>,
        at: usize,
        burst: Burst,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let runs = PyList::empty(py);
        for run in burst.runs {
            let queue = self.targets[run.target].queue.bind(py);
            let count = run.positions.len();
            if let ([position], [tag], [size]) = (&run.positions[..], &run.tags[..], &run.sizes[..])
            {
                runs.append((queue, run.first, 1, run.size, *position, *tag, *size))?;
            } else if count > 0 {
                let positions = column(py, run.positions.iter().flat_map(|n| n.to_ne_bytes()));
                let tags = column(py, run.tags.iter().flat_map(|n| n.to_ne_bytes()));
                let sizes = column(py, run.sizes.iter().flat_map(|n| n.to_ne_bytes()));
                runs.append((queue, run.first, count, run.size, positions, tags, sizes))?;
            }
        }
        (
            at,
            PyBytes::new(py, &burst.records),
            PyBytes::new(py, &burst.answers),
            runs,
            burst.answered,
            burst.answered_v2,
            burst.due_ms,
        )
            .into_pyobject(py)
    }
}

fn column(py: Python<'_>, bytes: impl Iterator<Item = u8>) -> Bound<'_, PyBytes> {
    PyBytes::new(py, &bytes.collect::<Vec<u8>>())
}

fn refuse(_: std::array::TryFromSliceError) -> PyErr {
    PyValueError::new_err("a host has 8 bytes here")
}
