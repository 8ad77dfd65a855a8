//! Waiting for bytes without giving up the processor: for microseconds, and only where that pays.
//!
//! A process that sleeps in the kernel until bytes come loses more time on waking up than the peer
//! on the same machine needs to answer. So the first microseconds of such a wait are spent looking
//! again and again. How often that was in vain decides whether it is done: a peer that is far away or
//! busy costs one look in hundreds of waits.

use std::cell::RefCell;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// The most bytes that are received at once.
const LARGEST: usize = 64 * 1024;
/// What a wait in vain costs, in waits that were not, and how many of those count at most.
const COST: u32 = 4;
const FULL: u32 = 16;
/// Waits between two tries while it does not pay.
const FIRST_PAUSE: u32 = 32;
const LAST_PAUSE: u32 = 1024;

/// The process that has a thread which waits this way: one at most, as several would keep the peer
/// from the processors it needs. A child that was forked meanwhile has no such thread.
static BUSY: AtomicU32 = AtomicU32::new(NOBODY);
const NOBODY: u32 = 0;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Whether it has paid lately to wait this way.
struct Worth {
    credit: u32,
    pause: u32,
    skipped: u32,
}

impl Worth {
    fn new() -> Self {
        Worth {
            credit: COST,
            pause: FIRST_PAUSE,
            skipped: 0,
        }
    }

    /// Whether to try the next wait.
    fn tries(&mut self) -> bool {
        if self.credit > 0 {
            return true;
        }
        self.skipped += 1;
        if self.skipped < self.pause {
            return false;
        }
        self.skipped = 0;
        self.pause = (self.pause * 2).min(LAST_PAUSE);
        true
    }

    fn note(&mut self, came: bool) {
        if came {
            self.credit = (self.credit + 1).min(FULL);
            self.pause = FIRST_PAUSE;
        } else {
            self.credit = self.credit.saturating_sub(COST);
        }
    }
}

/// The first microseconds of the waits on one socket.
#[pyclass(module = "pocketmq_core")]
pub(crate) struct Spin {
    descriptor: i32,
    limit: Duration,
    worth: Worth,
}

#[pymethods]
impl Spin {
    #[new]
    fn new(descriptor: i32, microseconds: u64) -> Self {
        Spin {
            descriptor,
            limit: Duration::from_micros(microseconds),
            worth: Worth::new(),
        }
    }

    /// Return bytes that are there or come within the limit, `size` at most; else None.
    ///
    /// None as well at the end of the stream and for errors, after which the next read finds the end,
    /// and where it does not pay.
    fn receive<'py>(&mut self, py: Python<'py>, size: usize) -> Option<Bound<'py, PyBytes>> {
        if !several_processors() || !begin() {
            return None;
        }
        if !self.worth.tries() {
            BUSY.store(NOBODY, Ordering::Relaxed);
            return None;
        }
        let (descriptor, limit, size) = (self.descriptor, self.limit, size.min(LARGEST));
        let received = BUFFER.with_borrow_mut(|buffer| {
            if buffer.len() < size {
                buffer.resize(size, 0);
            }
            let part = &mut buffer[..size];
            let count = py.detach(|| receive_within(descriptor, part, limit));
            BUSY.store(NOBODY, Ordering::Relaxed);
            count.map(|count| PyBytes::new(py, &part[..count]))
        });
        self.worth.note(received.is_some());
        received
    }
}

/// Let the caller's thread wait this way, unless another one of the process does.
fn begin() -> bool {
    let (process, before) = (process::id(), BUSY.load(Ordering::Relaxed));
    let free = before != process;
    free && BUSY
        .compare_exchange(before, process, Ordering::Relaxed, Ordering::Relaxed)
        .is_ok()
}

fn several_processors() -> bool {
    static SEVERAL: OnceLock<bool> = OnceLock::new();
    *SEVERAL.get_or_init(|| thread::available_parallelism().is_ok_and(|count| count.get() > 1))
}

/// Return how many bytes came, None for none.
#[cfg(unix)]
fn receive_within(descriptor: i32, buffer: &mut [u8], limit: Duration) -> Option<usize> {
    use nix::errno::Errno;
    use nix::sys::socket::{recv, MsgFlags};

    let until = Instant::now() + limit;
    loop {
        match recv(descriptor, buffer, MsgFlags::MSG_DONTWAIT) {
            Ok(0) => return None,
            Ok(count) => return Some(count),
            Err(Errno::EAGAIN | Errno::EINTR) if Instant::now() < until => std::hint::spin_loop(),
            Err(_) => return None,
        }
    }
}

#[cfg(not(unix))]
fn receive_within(_: i32, _: &mut [u8], _: Duration) -> Option<usize> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_in_vain_make_tries_rare() {
        let mut worth = Worth::new();
        let mut tries = 0;
        for _ in 0..100_000 {
            if worth.tries() {
                tries += 1;
                worth.note(false);
            }
        }
        assert!(tries < 120, "{tries} tries");
    }

    #[test]
    fn one_wait_in_vain_among_many_good_ones_changes_nothing() {
        let mut worth = Worth::new();
        for wait in 0..1000 {
            assert!(worth.tries(), "wait {wait}");
            worth.note(wait % 6 != 5);
        }
    }

    #[test]
    fn a_try_that_pays_brings_the_next_ones_back() {
        let mut worth = Worth::new();
        for _ in 0..10_000 {
            if worth.tries() {
                worth.note(false);
            }
        }
        while !worth.tries() {}
        worth.note(true);
        assert!(worth.tries());
    }
}
