//! Chunks on their way to the gateway, a few at once.

use super::report::Report;
use crate::api::Endpoint;
use crate::api::transfer::ImportOutcomes;
use crate::cli::CliError;
use crate::client::HomeClient;
use crate::system::tasks::joined;
use indicatif::{ProgressBar, ProgressStyle};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

/// Chunks on their way at once: one is written while the next ones are prepared.
const IN_FLIGHT: usize = 3;

type Answering = JoinHandle<Result<ImportOutcomes, CliError>>;

/// Chunks on their way to the gateway.
pub(super) struct Sending {
    owner: Arc<HomeClient>,
    ahead: VecDeque<(Vec<String>, Answering)>,
    progress: ProgressBar,
}

impl Sending {
    pub(super) fn new(owner: Arc<HomeClient>) -> Self {
        let progress = ProgressBar::new_spinner();
        let style = ProgressStyle::with_template("{spinner} {human_pos} records, {per_sec}, {elapsed} {msg}");
        progress.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        progress.enable_steady_tick(Duration::from_millis(200));
        Self { owner, ahead: VecDeque::new(), progress }
    }

    /// Says beside the progress what goes on.
    pub(super) fn says(&self, what: &'static str) {
        self.progress.set_message(what);
    }

    pub(super) async fn send<E>(
        &mut self,
        places: Vec<String>,
        body: E::Body,
        report: &mut Report,
    ) -> Result<(), CliError>
    where
        E: Endpoint<Place = (), Query = (), Answer = ImportOutcomes>,
        E::Body: Send + Sync + 'static,
    {
        while self.ahead.len() >= IN_FLIGHT {
            self.receive(report).await?;
        }
        let owner = self.owner.clone();
        let task = tokio::spawn(async move { Ok(owner.send::<E>((), &body).await?) });
        self.ahead.push_back((places, task));
        Ok(())
    }

    async fn receive(&mut self, report: &mut Report) -> Result<(), CliError> {
        let Some((places, task)) = self.ahead.pop_front() else { return Ok(()) };
        let answer = joined(task).await?;
        for (number, place) in places.iter().enumerate() {
            report.outcome(place, answer.outcomes.get(number));
        }
        self.progress.set_position(report.done());
        Ok(())
    }

    pub(super) async fn finish(mut self, report: &mut Report) -> Result<Arc<HomeClient>, CliError> {
        while !self.ahead.is_empty() {
            self.receive(report).await?;
        }
        self.progress.finish_and_clear();
        Ok(self.owner)
    }
}
