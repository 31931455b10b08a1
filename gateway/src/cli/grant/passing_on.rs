//! `oap-memory grant delegate`: less of what somebody gave, for a third party.

use super::draft;
use super::filter::Selected;
use super::received::ReceivedRef;
use crate::api::access as api;
use crate::cli::output::OutFile;
use crate::cli::when::{self, When};
use crate::cli::{CliError, Global, output, values};
use oap_grants::Operation;
use oap_grants::grant::{Budget, Delegable};
use oap_identity::Did;
use oap_memory::TrustLevel;
use std::path::PathBuf;

/// What to pass on. What no flag says is as in the grant.
#[derive(clap::Args)]
pub(in crate::cli) struct Delegate {
    /// The grant that you were given: the beginning of its id or of its hash
    grant: ReceivedRef,
    /// To whom: the DID
    #[arg(long, value_name = "DID", value_parser = values::grantee)]
    to: Did,
    /// What for, in words
    #[arg(long)]
    purpose: Option<String>,
    #[command(flatten)]
    selected: Selected,
    /// At most so many distinct items ever disclosed
    #[arg(long, value_name = "N")]
    max_items: Option<u32>,
    /// Until when it holds
    #[arg(long, value_name = "TIME")]
    until: Option<When>,
    /// The trust level at most
    #[arg(long, value_name = "0..4", visible_alias = "level", value_parser = values::level())]
    trust_level: Option<TrustLevel>,
    /// Allow no exports
    #[arg(long)]
    no_export: bool,
    /// At most so many queries
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_queries: Option<u64>,
    /// Let it be passed on once more, so many times over
    #[arg(long, value_name = "1..4", value_parser = clap::value_parser!(u8).range(1..=4))]
    delegable: Option<u8>,
    /// Write the grant to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Delegate {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        let out = self.out.map(|path| Ok::<_, CliError>((OutFile::create(&path)?, path))).transpose()?;
        let owner = global.owner().await?;
        let hash = self.grant.resolve(&owner).await?;
        let given = owner.get::<api::ShowReceived>(hash, &()).await?.grant;
        let mut draft = draft::File::of(&given).grant;
        draft.grantee = self.to;
        draft.purpose = self.purpose.unwrap_or(draft.purpose);
        self.selected.narrow(&mut draft.filter)?;
        draft.max_items = self.max_items.unwrap_or(draft.max_items);
        if let Some(until) = self.until {
            draft.expires_at = until.ends(when::now());
        }
        draft.trust_level = self.trust_level.unwrap_or(draft.trust_level);
        if self.no_export {
            draft.operations.remove(&Operation::Export);
        }
        if let Some(queries) = self.max_queries {
            draft.budget = Some(Budget { queries: Some(queries), ..draft.budget.unwrap_or_default() });
        }
        // Whatever it is made from: it is passed on, a plain token is not.
        draft.delegable = self.delegable.map(|max_depth| Delegable { max_depth });
        draft.bearer = false;
        let made = owner.send::<api::DelegateReceived>(hash, &draft).await?;
        let document = output::pretty(&made.grant);
        let told = match out {
            Some((file, path)) => {
                file.write((document + "\n").as_bytes())?;
                format!(
                    "{} written to {}\nHand it over with the {} that it was made from: `grant received add FILE --chain FILE`",
                    made.grant.grant_id,
                    path.display(),
                    if made.above.len() == 1 { "grant" } else { "grants" }
                )
            }
            None => document,
        };
        output::print(global.json, &made, |_| told);
        Ok(())
    }
}
