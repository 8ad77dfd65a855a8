//! The memory that HTTP/2 reads from and writes to in the place of a socket, and its wake-ups.
//!
//! Nothing here waits: what would block returns "pending", and the connection is polled again when
//! bytes came or left. Belongs to one connection; the lock is never contended.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Unsent bytes above which HTTP/2 may write no more.
pub const MOST_UNSENT: usize = 256 * 1024;

#[derive(Default)]
struct Buffers {
    input: BytesMut,
    output: Vec<u8>,
    ended: bool,
    refused: bool,
}

/// Both directions of one connection.
#[derive(Clone, Default)]
pub struct Pipe(Arc<Mutex<Buffers>>);

impl Pipe {
    /// Add bytes of the client.
    pub fn put(&self, data: &[u8]) {
        self.lock().input.extend_from_slice(data);
    }

    /// Note that the client sends no more.
    pub fn end(&self) {
        self.lock().ended = true;
    }

    /// Take the bytes for the client, and whether more were refused for want of space.
    pub fn take(&self) -> (Vec<u8>, bool) {
        let mut buffers = self.lock();
        let refused = std::mem::take(&mut buffers.refused);
        (std::mem::take(&mut buffers.output), refused)
    }

    fn lock(&self) -> MutexGuard<'_, Buffers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsyncRead for Pipe {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut buffers = self.lock();
        let size = buffers.input.len().min(into.remaining());
        if size == 0 && !buffers.ended {
            return Poll::Pending;
        }
        into.put_slice(&buffers.input[..size]);
        buffers.input.advance(size);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut buffers = self.lock();
        if buffers.output.len() >= MOST_UNSENT {
            buffers.refused = true;
            return Poll::Pending;
        }
        buffers.output.extend_from_slice(data);
        Poll::Ready(Ok(data.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// The calls that HTTP/2 has something for, by their streams.
#[derive(Clone, Default)]
pub struct Ready(Arc<Mutex<Vec<u32>>>);

impl Ready {
    /// Take all of them.
    pub fn take(&self) -> Vec<u32> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Notes one call as ready.
pub struct Nudge {
    /// The call's stream.
    pub stream: u32,
    /// Where it is noted.
    pub ready: Ready,
}

impl Wake for Nudge {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut ready = self.ready.lock();
        if ready.last() != Some(&self.stream) {
            ready.push(self.stream);
        }
    }
}
