//! Intents that are over are forgotten, with their tasks and their logs, once the retention time has passed.

use crate::error::Error;
use crate::service::Entries;
use crate::state::commits::Writing;
use crate::state::events::streams;
use crate::state::gateway::blocking;
use crate::state::schema::{self, EVENTS, INTENTS, INTENTS_OF, STREAMS, TASKS, TASKS_IN};
use crate::state::tasks::StoredIntent;
use oap_identity::{IntentId, Timestamp};
use oap_store::Range;
use std::collections::BTreeSet;
use std::time::Duration;

/// How long an intent is kept at least, after its last task was over.
const LEAST: Duration = Duration::from_secs(86_400);

/// Whether nothing became of an intent for so long, and nothing is open.
fn is_over(intent: &StoredIntent, kept: Duration, now: Timestamp) -> bool {
    intent.open == 0 && intent.touched_at.plus(kept.max(LEAST)) <= now
}

impl Entries<'_> {
    /// Forgets what was over for so long. How many intents.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub(crate) async fn forget_intents(self, kept: Duration) -> Result<usize, Error> {
        let gateway = self.0.clone();
        let over = blocking(move || {
            let (now, mut over) = (gateway.clock.now(), Vec::new());
            for row in INTENTS.scan(&gateway.store) {
                match row {
                    Ok((id, intent)) if is_over(&intent, kept, now) => over.push(id),
                    Ok(_) => {}
                    Err(error) => tracing::error!(%error, "an intent cannot be read"),
                }
            }
            Ok(over)
        });
        let mut forgotten = 0;
        for id in over.await? {
            // One that cannot be forgotten keeps none of the others.
            match self.0.commit_own(move |w| w.forget_intent(id, kept)).await {
                Ok(forgot) => forgotten += usize::from(forgot),
                Err(error) => tracing::error!(%error, intent = %id, "an intent could not be forgotten"),
            }
        }
        Ok(forgotten)
    }
}

impl Writing<'_, '_> {
    /// Forgets an intent that is over for good; whether it is.
    fn forget_intent(&mut self, id: IntentId, kept: Duration) -> Result<bool, Error> {
        let Some(intent) = INTENTS.get(self.tx, &id)?.filter(|intent| is_over(intent, kept, self.now)) else {
            return Ok(false);
        };
        let (mut agents, mut tasks) = (BTreeSet::from([intent.coordinator.clone()]), Vec::new());
        for (of, task) in self.under(TASKS_IN, &id, |(of, _)| *of == id)? {
            agents.extend(TASKS.get(self.tx, &task)?.into_iter().flat_map(|task| task.agents));
            TASKS.delete(self.tx, &task);
            TASKS_IN.delete(self.tx, &(of, task));
            tasks.push((task, None));
        }
        for (stream, _) in streams(id, tasks.into_iter(), agents.iter(), None, |_, _| true) {
            let told: Vec<_> =
                EVENTS.keys(&self.gateway.store, Range::under(&stream)).collect::<Result<_, _>>()?;
            let written = EVENTS.written(self.tx).into_iter().filter(|(of, _)| *of == stream);
            for event in told.into_iter().chain(written) {
                EVENTS.delete(self.tx, &event);
            }
            STREAMS.delete(self.tx, &stream);
        }
        INTENTS.delete(self.tx, &id);
        INTENTS_OF.delete(self.tx, &(schema::agent(intent.coordinator.as_str()), id));
        Ok(true)
    }
}
