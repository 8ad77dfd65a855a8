//! Plain sends of an asyncio producer that follow another one in the same event-loop iteration.
//!
//! The first one is posted by Python, which decides whether it is plain and where its topic's
//! messages go. Those that follow differ from it in few things, and are posted here; whatever is
//! not as usual is left to Python.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Mutex;
use std::thread::{self, ThreadId};

use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

use crate::posts;
use crate::shared::fields_of;

/// Requests up to this size leave in large portions, others in small ones; see `net.open_requests`.
const SMALL: usize = 1024;

/// The requests of one connection: what is asked of them for each message.
struct Requests {
    all: Py<PyAny>,
    open: Py<PyDict>,
    drafts: Py<PyList>,
    take: Py<PyAny>,
}

/// A queue, the template of its requests, and the connection to its broker.
struct Aim {
    queue: Py<PyAny>,
    template: Py<PyAny>,
    connection: Py<PyAny>,
    requests: Requests,
}

/// Queue, template, connection and requests, as Python has them.
type GivenAim<'py> = (Py<PyAny>, Py<PyAny>, Py<PyAny>, Bound<'py, PyAny>);

/// Where the messages of a topic go one after another.
#[pyclass(module = "pocketmq_core", frozen)]
pub(crate) struct Turns {
    topic: Py<PyString>,
    publication: Py<PyAny>,
    robin: Py<PyAny>,
    tails: Py<PyDict>,
    aims: Vec<Aim>,
    last_turn: i64,
}

#[pymethods]
impl Turns {
    /// Take a topic's queues in the order of their turns, each with its template, its connection
    /// and the requests of that; `tails` are the ends of properties by tag.
    #[new]
    fn new(
        topic: Py<PyString>,
        publication: &Bound<'_, PyAny>,
        tails: Py<PyDict>,
        aims: Vec<GivenAim<'_>>,
        last_turn: i64,
    ) -> PyResult<Self> {
        let aims = aims.into_iter().map(|(queue, template, connection, all)| {
            let py = all.py();
            let requests = Requests {
                open: all.getattr(intern!(py, "open"))?.cast_into()?.unbind(),
                drafts: all.getattr(intern!(py, "drafts"))?.cast_into()?.unbind(),
                take: all.getattr(intern!(py, "take"))?.unbind(),
                all: all.unbind(),
            };
            Ok::<_, PyErr>(Aim {
                queue,
                template,
                connection,
                requests,
            })
        });
        Ok(Turns {
            topic,
            robin: publication.getattr("robin")?.unbind(),
            publication: publication.clone().unbind(),
            tails,
            aims: aims.collect::<PyResult<_>>()?,
            last_turn,
        })
    }
}

/// The burst of now: where its topic's messages go, the place and the turn of the last message, and
/// what its id begins with.
struct Burst {
    turns: Py<Turns>,
    at: usize,
    turn: i64,
    prefix: Py<PyAny>,
}

/// The sends of one producer that follow another one in the same event-loop iteration.
#[pyclass(module = "pocketmq_core", frozen)]
pub(crate) struct Followers {
    made_on: ThreadId,
    is_running: Py<PyAny>,
    new_future: Py<PyAny>,
    next_number: Py<PyAny>,
    window: Py<PyAny>,
    try_enter: Py<PyAny>,
    hooks: Py<PyList>,
    largest: usize,
    portion: usize,
    burst: Mutex<Option<Burst>>,
    stopped: AtomicBool,
}

fn broken<E>(_: E) -> PyErr {
    PyRuntimeError::new_err("an earlier error broke this producer")
}

impl Followers {
    /// Return the body and the tag of a message without anything else.
    fn plain<'py>(
        &self,
        fields: &Bound<'py, PyTuple>,
    ) -> Option<(Bound<'py, PyBytes>, Bound<'py, PyAny>)> {
        let field = |at| fields.get_borrowed_item(at).ok();
        for at in 3..6 {
            if field(at)?.is_truthy().ok()? {
                return None;
            }
        }
        let body = fields.get_item(1).ok()?.cast_into::<PyBytes>().ok()?;
        let size = body.as_bytes().len();
        let plain = field(6)?.is_none() && size > 0 && size <= self.largest;
        plain.then_some((body, fields.get_item(2).ok()?))
    }

    /// Return the message that was posted before to the same connection, if it has not left yet.
    fn before<'py>(
        &self,
        py: Python<'py>,
        aim: &Aim,
        size: usize,
        prefix: &Py<PyAny>,
    ) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let drafts = aim.requests.drafts.bind(py);
        let waiting = drafts.len();
        if waiting == 0 {
            return Ok(None);
        }
        let portion: usize = aim
            .requests
            .all
            .bind(py)
            .getattr(intern!(py, "portion"))?
            .extract()?;
        let most = match portion {
            0 => self.portion,
            many if size <= SMALL => many,
            _ => self.portion,
        };
        if waiting + 1 >= most {
            return Ok(None); // with this one they leave
        }
        let draft = drafts.get_item(waiting - 1)?.cast_into::<PyTuple>()?;
        if draft.len() <= posts::WINDOW || !draft.get_item(posts::PREFIX)?.is(prefix) {
            return Ok(None);
        }
        // While it is open, a timer runs for its deadline, which is that of those that follow.
        let opaque = draft.get_borrowed_item(posts::OPAQUE)?;
        if !aim.requests.open.bind(py).contains(opaque)? {
            return Ok(None);
        }
        Ok(Some(draft))
    }
}

#[pymethods]
impl Followers {
    #[new]
    #[allow(clippy::too_many_arguments)]
    fn new(
        is_running: Py<PyAny>,
        new_future: Py<PyAny>,
        next_number: Py<PyAny>,
        window: Bound<'_, PyAny>,
        hooks: Py<PyList>,
        largest: usize,
        portion: usize,
    ) -> PyResult<Self> {
        Ok(Followers {
            made_on: thread::current().id(),
            is_running,
            new_future,
            next_number,
            try_enter: window.getattr("try_enter")?.unbind(),
            window: window.unbind(),
            hooks,
            largest,
            portion,
            burst: Mutex::new(None),
            stopped: AtomicBool::new(false),
        })
    }

    /// Note the first message of a burst: its turns, its place among them, its turn's number and
    /// what its id begins with. None: the next message is again a first one.
    #[pyo3(signature = (turns=None, at=0, turn=0, prefix=None))]
    fn lead(
        &self,
        turns: Option<Py<Turns>>,
        at: usize,
        turn: i64,
        prefix: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let burst = match (turns, prefix) {
            (Some(turns), Some(prefix)) if at < turns.get().aims.len() => Some(Burst {
                turns,
                at,
                turn,
                prefix,
            }),
            _ => None,
        };
        let before = std::mem::replace(&mut *self.burst.lock().map_err(broken)?, burst);
        drop(before);
        Ok(())
    }

    /// Post a message that follows; `None` if Python has to. Then numbers may have been used up, and
    /// nothing else.
    fn post<'py>(
        &self,
        message: &Bound<'py, PyAny>,
        delay_level: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let py = message.py();
        if self.stopped.load(Relaxed)
            || !delay_level.is_none()
            || thread::current().id() != self.made_on
            || !self.hooks.bind(py).is_empty()
        {
            return Ok(None);
        }
        let Some(fields) = fields_of(message) else {
            return Ok(None);
        };
        let Some((body, tag)) = self.plain(&fields) else {
            return Ok(None);
        };
        let size = body.as_bytes().len();
        let (turns, at, turn, prefix) = {
            let burst = self.burst.lock().map_err(broken)?;
            let Some(burst) = burst.as_ref() else {
                return Ok(None);
            };
            let turns = burst.turns.bind(py).clone();
            let at = (burst.at + 1) % turns.get().aims.len();
            (turns, at, burst.turn, burst.prefix.clone_ref(py))
        };
        let route = turns.get();
        let aim = &route.aims[at];
        let topic = fields.get_borrowed_item(0)?;
        if turn >= route.last_turn || !(topic.is(&route.topic) || topic.eq(&route.topic)?) {
            return Ok(None);
        }
        let Some(before) = self.before(py, aim, size, &prefix)? else {
            return Ok(None);
        };
        let robin = route.robin.bind(py);
        let taken: i64 = robin.getattr(intern!(py, "index"))?.extract()?;
        let Some(tail) = route.tails.bind(py).get_item(&tag)? else {
            return Ok(None);
        };
        if taken != turn || !self.is_running.bind(py).call0()?.is_truthy()? {
            return Ok(None);
        }
        let opaque = aim.requests.take.bind(py).call0()?;
        let open = aim.requests.open.bind(py);
        if open.contains(&opaque)? {
            return Ok(None);
        }
        let (number, future) = (
            self.next_number.bind(py).call0()?,
            self.new_future.bind(py).call0()?,
        );
        let posted = PyTuple::new(
            py,
            [
                future,
                before.get_item(posts::DEADLINE)?,
                before.get_item(posts::CODE)?,
                before.get_item(posts::LIMIT)?,
                opaque.clone(),
                aim.template.bind(py).clone(),
                tail,
                prefix.bind(py).clone(),
                number,
                before.get_item(posts::BORN)?,
                message.clone(),
                aim.queue.bind(py).clone(),
                route.publication.bind(py).clone(),
                aim.connection.bind(py).clone(),
                before.get_item(posts::ASKED)?,
                self.window.bind(py).clone(),
            ],
        )?;
        if !self.try_enter.bind(py).call1((size,))?.is_truthy()? {
            return Ok(None);
        }
        // Nothing below runs Python code: either all of it is done or, without memory, the process
        // has other worries.
        robin.setattr(intern!(py, "index"), turn + 1)?;
        open.set_item(&opaque, &posted)?;
        aim.requests.drafts.bind(py).append(&posted)?;
        if let Some(burst) = self.burst.lock().map_err(broken)?.as_mut() {
            burst.at = at;
            burst.turn = turn + 1;
        }
        Ok(Some(posted))
    }

    /// Post nothing from now on.
    fn stop(&self) {
        self.stopped.store(true, Relaxed);
    }
}
