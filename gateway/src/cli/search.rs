//! `oap-memory search`

use super::selectors::{self, Selectors};
use super::{CliError, Global, output, values};
use crate::api::selections::{SearchItems, SearchQuery};
use oap_memory::Kind;

/// Search your own memory
#[derive(clap::Args)]
#[command(after_help = "Examples:
  oap-memory search \"meeting times\"
  oap-memory search budget --label website --since 2025-01-01
  oap-memory search tea --kind preference --kind fact --limit 5 --json

The best match comes first, of equals the newest. Everything is searched in the clear, as you hold it; nothing is recorded.
Different selectors intersect; the same one given twice is either.")]
pub(super) struct Search {
    /// The words
    text: String,
    /// Only of this kind; may be given several times
    #[arg(long, value_parser = values::kind())]
    kind: Vec<Kind>,
    /// Only with this label
    #[arg(long, value_parser = values::short)]
    label: Vec<String>,
    #[command(flatten)]
    selectors: Selectors,
    /// At most so many
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
}

impl Search {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        if self.text.trim().is_empty() {
            return Err(CliError::Usage("TEXT: say at least one word".to_owned()));
        }
        let mut query = SearchQuery {
            text: self.text,
            kinds: self.kind,
            limit: Some(self.limit.into()),
            ..SearchQuery::default()
        };
        if !(self.label.is_empty() && self.selectors.is_empty()) {
            query.selection = self.selectors.selection(Vec::new(), &self.label, false);
        }
        let found = global.owner().await?.send::<SearchItems>((), &query).await?;
        output::print(global.json, &found, |found| {
            let shown = found.items.len();
            match found.matched {
                0 => "nothing found".to_owned(),
                matched if matched > shown => {
                    format!("{}\n{shown} of {matched}; --limit shows more", selectors::table(&found.items))
                }
                _ => selectors::table(&found.items),
            }
        });
        Ok(())
    }
}
