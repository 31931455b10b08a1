//! A stream whose writes must make progress: a caller that does not read its answer loses the connection.

use super::connections::State;
use super::deadlines::MIN_PROGRESS;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// Fails with [`io::ErrorKind::TimedOut`] once fewer than [`MIN_PROGRESS`] bytes were taken within `stall` while more
/// waited.
pub(super) struct Paced<T> {
    stream: T,
    stall: Duration,
    /// Runs while bytes wait.
    deadline: Option<Pin<Box<Sleep>>>,
    /// Bytes taken since the deadline began.
    taken: usize,
    state: Arc<State>,
}

impl<T> Paced<T> {
    pub(super) fn new(stream: T, stall: Duration, state: Arc<State>) -> Self {
        Self { stream, stall, deadline: None, taken: 0, state }
    }

    fn rest(&mut self) {
        self.deadline = None;
        self.taken = 0;
    }

    /// After a write that the stream did not take.
    fn wait<R>(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<R>> {
        let stall = self.stall;
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(tokio::time::sleep(stall)));
        ready!(deadline.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    /// After a write of so many bytes.
    fn took(&mut self, written: usize) {
        self.taken = self.taken.saturating_add(written);
        if self.taken >= MIN_PROGRESS {
            self.rest();
        }
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Paced<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match Pin::new(&mut self.stream).poll_write(cx, bytes) {
            Poll::Ready(Ok(written)) => {
                self.took(written);
                Poll::Ready(Ok(written))
            }
            Poll::Pending => self.wait(cx),
            failed => failed,
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match Pin::new(&mut self.stream).poll_write_vectored(cx, parts) {
            Poll::Ready(Ok(written)) => {
                self.took(written);
                Poll::Ready(Ok(written))
            }
            Poll::Pending => self.wait(cx),
            failed => failed,
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.stream).poll_flush(cx) {
            Poll::Ready(Ok(())) => {
                self.rest();
                self.state.flushed();
                Poll::Ready(Ok(()))
            }
            Poll::Pending => self.wait(cx),
            failed => failed,
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.stream).poll_shutdown(cx) {
            Poll::Pending => self.wait(cx),
            done => done,
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Paced<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    const STALL: Duration = Duration::from_millis(50);

    #[tokio::test]
    async fn a_reader_that_does_not_read_is_left() {
        let (ours, _theirs) = tokio::io::duplex(1024);
        let mut paced = Paced::new(ours, STALL, Arc::default());
        let error = paced.write_all(&[0; 4096]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    /// One byte at a time moves, and is not enough.
    #[tokio::test]
    async fn a_reader_that_reads_too_slowly_is_left() {
        let (ours, mut theirs) = tokio::io::duplex(1024);
        let mut paced = Paced::new(ours, STALL, Arc::default());
        let reader = tokio::spawn(async move {
            let mut ticks = tokio::time::interval(STALL / 10);
            while theirs.read_u8().await.is_ok() {
                ticks.tick().await;
            }
        });
        let error = paced.write_all(&[0; 1 << 20]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(paced);
        reader.await.unwrap();
    }

    #[tokio::test]
    async fn a_reader_that_reads_gets_all() {
        let (ours, mut theirs) = tokio::io::duplex(1024);
        let mut paced = Paced::new(ours, Duration::from_secs(60), Arc::default());
        let writer = tokio::spawn(async move { paced.write_all(&[7; 4 << 20]).await });
        let mut read = Vec::new();
        theirs.read_to_end(&mut read).await.unwrap();
        writer.await.unwrap().unwrap();
        assert!(read.len() == 4 << 20 && read.iter().all(|byte| *byte == 7));
    }
}
