//! Intents that are over are forgotten, with their tasks and their logs, once the retention time has passed.

use super::tasks::tasks_of_intent;
use crate::error::Error;
use crate::service::Entries;
use crate::state::commits::Writing;
use crate::state::events::streams;
use crate::state::schema::{self, EVENTS, INTENTS, INTENTS_OF, STREAMS, TASKS, TASKS_IN};
use crate::state::tasks::StoredIntent;
use oap_identity::{IntentId, TaskId};
use oap_store::Range;
use std::time::Duration;

/// How long an intent is kept at least, after its last task was over.
const LEAST: Duration = Duration::from_secs(86_400);

impl Entries<'_> {
    /// Forgets what was over for so long. How many intents.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub(crate) async fn forget_intents(self, kept: Duration) -> Result<usize, Error> {
        let now = self.0.clock.now();
        let mut over = Vec::new();
        for row in INTENTS.scan(&self.0.store) {
            let (id, intent) = row?;
            let tasks = tasks_of_intent(&self.0.store, id)?;
            let last = tasks.iter().map(|(_, task)| task.updated_at).max().unwrap_or(intent.created_at);
            let is_open = tasks.iter().any(|(_, task)| task.is_open());
            if !is_open && last.plus(kept.max(LEAST)) <= now {
                over.push((id, intent, tasks.into_iter().map(|(id, _)| id).collect::<Vec<_>>()));
            }
        }
        let mut forgotten = 0;
        for (id, intent, tasks) in over {
            let forgot = self.0.commit(move |w| w.forget_intent(id, &intent, &tasks)).await?;
            forgotten += usize::from(forgot);
        }
        Ok(forgotten)
    }
}

impl Writing<'_, '_> {
    /// Forgets an intent that has these tasks and no others, all of them over for good; whether that is so.
    fn forget_intent(
        &mut self,
        id: IntentId,
        intent: &StoredIntent,
        tasks: &[TaskId],
    ) -> Result<bool, Error> {
        let now = self.under(TASKS_IN, &id, |(of, _)| *of == id)?;
        if now.len() != tasks.len() || !tasks.iter().all(|task| now.contains(&(id, *task))) {
            return Ok(false);
        }
        for task in tasks {
            TASKS.delete(self.tx, task);
            TASKS_IN.delete(self.tx, &(id, *task));
        }
        for stream in streams(id) {
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
