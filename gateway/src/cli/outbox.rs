//! `oap-memory peer outbox`: the letters to other gateways.

use super::grant::words;
use super::{CliError, Global, output};
use crate::api::access::{LetterList, LetterState, ListLetters};
use oap_client::OwnerClient;

/// The letters to other gateways, and where each stands
#[derive(clap::Args)]
pub(super) struct Outbox {
    /// Only those that wait
    #[arg(long)]
    waiting: bool,
}

impl Outbox {
    pub(super) async fn run(self, global: &Global, owner: &OwnerClient) -> Result<(), CliError> {
        let mut list = owner.get::<ListLetters>((), &()).await?;
        list.letters.retain(|letter| !self.waiting || letter.state == LetterState::Waiting);
        output::print(global.json, &list, table);
        Ok(())
    }
}

fn table(list: &LetterList) -> String {
    let rows = list.letters.iter().map(|letter| {
        vec![
            letter.letter.to_string(),
            letter.kind.as_str().to_owned(),
            letter.state.as_str().to_owned(),
            letter.to.to_string(),
            letter.next_at.map(words::minute).unwrap_or_default(),
            letter.failure.map(|failure| failure.as_str().to_owned()).unwrap_or_default(),
        ]
    });
    output::table(&["letter", "type", "state", "to", "next", "last attempt"], rows)
}
