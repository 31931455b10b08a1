//! A gate in which the store's writer waits, so that a test decides when a transaction goes on.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Open until it is closed.
#[derive(Default)]
pub struct Gate {
    state: Mutex<State>,
    changed: Arc<Condvar>,
}

#[derive(Default)]
struct State {
    closed: bool,
    /// Whether the writer waits.
    waits: bool,
    /// How often it may go on.
    passes: usize,
    /// Goes up with everything that happens, here and to those who wait.
    events: u64,
}

impl Gate {
    /// The writer's side: waits while the gate is closed.
    pub fn pass(&self) {
        let mut state = self.state.lock().unwrap();
        if !state.closed {
            return;
        }
        state.waits = true;
        state.events += 1;
        self.changed.notify_all();
        while state.closed && state.passes == 0 {
            state = self.changed.wait(state).unwrap();
        }
        state.passes = state.passes.saturating_sub(1);
        state.waits = false;
    }

    pub fn close(&self) {
        self.state.lock().unwrap().closed = true;
    }

    pub fn open(&self) {
        let mut state = self.state.lock().unwrap();
        (state.closed, state.passes) = (false, 0);
        self.changed.notify_all();
    }

    /// Lets the writer, which waits, read the clock once.
    pub fn let_on(&self) {
        let mut state = self.state.lock().unwrap();
        state.passes += 1;
        state.waits = false;
        self.changed.notify_all();
    }

    /// Whether the writer waits.
    pub fn waits(&self) -> bool {
        self.state.lock().unwrap().waits
    }

    /// How much happened so far.
    pub fn events(&self) -> u64 {
        self.state.lock().unwrap().events
    }

    /// Says that something happened.
    pub fn happened(&self) {
        self.state.lock().unwrap().events += 1;
        self.changed.notify_all();
    }

    /// Waits until something happens after so many events; `false` when nothing does.
    pub fn wait(&self, events: u64, most: Duration) -> bool {
        let state = self.state.lock().unwrap();
        let (state, _) =
            self.changed.wait_timeout_while(state, most, |state| state.events == events).unwrap();
        state.events != events
    }
}
