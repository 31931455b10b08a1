//! A gateway whose clock stands, and goes on by the setup program's command `wait` alone (docs/probes.md).

use super::Http;
use super::program::Program;
use oap_conformance::probe::wire::Pending;
use oap_conformance::probe::{Forbidden, Reply, Request, Wire, WireError};
use oap_identity::{Clock, Timestamp};
use serde_json::json;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// How long it is looked at whether a clock stands: one that shows whole seconds goes on within that.
const STANDS: Duration = Duration::from_millis(1_100);

/// The way to such a gateway. Its clock is the prober's, too.
pub(super) struct Standing<'a> {
    wire: &'a Http,
    program: &'a Program,
    /// What the clock shows, in milliseconds since 1970.
    now: AtomicI64,
}

impl<'a> Standing<'a> {
    /// Whether the program can set the clock: asked at the beginning of a run. One without the command, or whose clock goes on by itself, is
    /// probed as time goes by.
    pub(super) async fn of(wire: &'a Http, program: &'a Program) -> Option<Self> {
        let now = moved(program, 0).ok()?;
        tokio::time::sleep(STANDS).await;
        moved(program, 0).ok().filter(|again| *again == now)?;
        Some(Self { wire, program, now: AtomicI64::new(now.millis()) })
    }

    /// Has the clock go on. One that shows another time then does not stand, and nothing can be asked at a millisecond.
    fn go_on(&self, time: Duration) -> Result<(), WireError> {
        let millis = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        let shown = moved(self.program, millis).map_err(|why| match self.program.broke() {
            Some(why) => WireError::Ended(why),
            None => WireError::Time(why),
        })?;
        let must = self.now().millis().saturating_add(millis);
        self.now.store(shown.millis(), Ordering::SeqCst);
        if shown.millis() == must {
            return Ok(());
        }
        let must = Timestamp::from_millis(must);
        Err(WireError::Time(format!("the setup program's `wait` came to {shown} and not to {must}")))
    }
}

/// What the clock shows after so many milliseconds; or why it cannot be set.
fn moved(program: &Program, millis: i64) -> Result<Timestamp, String> {
    let done = program.done(&json!({"do": "wait", "millis": millis})).map_err(|e| e.to_string())?;
    let now = done["now"].as_str().and_then(|now| now.parse().ok());
    now.ok_or_else(|| format!("the setup program's `wait` answers {done}, without the time as now"))
}

impl Clock for Standing<'_> {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.now.load(Ordering::SeqCst))
    }
}

impl Wire for Standing<'_> {
    fn send(&self, request: Request) -> Pending<'_, Reply> {
        self.wire.send(request)
    }

    fn first_event(&self, request: Request) -> Pending<'_, Reply> {
        self.wire.first_event(request)
    }

    fn wait(&self, time: Duration) -> Pending<'_, ()> {
        Box::pin(std::future::ready(self.go_on(time)))
    }

    fn sets_clock(&self) -> bool {
        true
    }

    fn forbidden(&self, way: Forbidden, request: Request) -> Pending<'_, Option<Reply>> {
        self.wire.forbidden(way, request)
    }
}
