//! How long a caller may take over each part of a request.

use std::time::Duration;

/// Time for the TLS handshake.
pub const HANDSHAKE: Duration = Duration::from_secs(5);
/// Time for the head of a request, and for which a connection without a request stays open.
pub const HEAD: Duration = Duration::from_secs(10);
/// Time for the body of a request. A body that takes longer is answered 408.
pub const BODY: Duration = Duration::from_secs(20);
/// Time for a whole request until its answer is made. One that takes longer is answered 504.
pub const REQUEST: Duration = Duration::from_secs(30);
/// Time for which a call under a grant waits for its turn at `/mcp`. One that waits longer is answered 503.
///
/// Its work has the rest of [`REQUEST`]: what waited for as long as may be is done in time for its answer all the same.
pub const TURN: Duration = Duration::from_secs(10);
/// Time in which the caller must take [`MIN_PROGRESS`] bytes of an answer that waits, or the rest of it.
pub const STALL: Duration = Duration::from_secs(10);
/// Bytes of a waiting answer that the caller must take in [`STALL`].
pub const MIN_PROGRESS: usize = 256 << 10;

/// The deadlines of a server. Tests shorten them.
#[derive(Debug, Clone, Copy)]
pub struct Deadlines {
    /// See [`HANDSHAKE`].
    pub handshake: Duration,
    /// See [`HEAD`].
    pub head: Duration,
    /// See [`BODY`].
    pub body: Duration,
    /// See [`REQUEST`].
    pub request: Duration,
    /// See [`TURN`].
    pub turn: Duration,
    /// See [`STALL`].
    pub stall: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self { handshake: HANDSHAKE, head: HEAD, body: BODY, request: REQUEST, turn: TURN, stall: STALL }
    }
}
