//! `oap-memory grant received`: the grants that others gave.

use super::words;
use crate::api::access as api;
use crate::api::access::{NewReceived, ReceivedInfo, ReceivedList};
use crate::cli::output::OutFile;
use crate::cli::{CliError, Global, output, screen, when};
use oap_client::OwnerClient;
use oap_grants::GrantState;
use oap_grants::grant::Delegable;
use oap_identity::{Hash, Timestamp};
use std::path::PathBuf;
use std::str::FromStr;

/// The grants that others gave you
#[derive(clap::Args)]
pub(in crate::cli) struct Received {
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(clap::Subcommand)]
enum What {
    /// List them, newest first
    List,
    /// Show one, and what was read under it
    Show {
        /// The beginning of its id or of its hash
        grant: ReceivedRef,
        /// Write the signed grant to this file, for `query --grant`
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Look up in its granter's status list whether it still holds
    Check {
        /// The beginning of its id or of its hash
        grant: ReceivedRef,
    },
    /// Remove one; its granter is not told
    Remove {
        /// The beginning of its id or of its hash
        grant: ReceivedRef,
    },
    /// Take in one that was handed over as a file
    Add {
        /// The signed grant
        file: PathBuf,
        /// The grants that it was made from, first one first, where somebody passed it on
        #[arg(long, value_name = "FILE")]
        chain: Vec<PathBuf>,
    },
}

/// A grant by the beginning of its id or of its hash.
#[derive(Debug, Clone)]
pub(super) struct ReceivedRef(String);

/// The text is no such beginning.
#[derive(Debug, thiserror::Error)]
#[error("must be the beginning of a grant's id, mgr_…, or of its hash, of 4 characters at least")]
pub(super) struct NotReceived;

impl FromStr for ReceivedRef {
    type Err = NotReceived;

    fn from_str(text: &str) -> Result<Self, NotReceived> {
        let fits = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'_' | b':' | b'.');
        let is_named = (4..=80).contains(&text.len()) && text.bytes().all(fits);
        if is_named { Ok(Self(text.to_owned())) } else { Err(NotReceived) }
    }
}

impl ReceivedRef {
    /// The hash of the one grant that is meant.
    pub(super) async fn resolve(&self, owner: &OwnerClient) -> Result<Hash, CliError> {
        if let Ok(hash) = self.0.parse() {
            return Ok(hash);
        }
        let text = &self.0;
        let all = owner.get::<api::ListReceived>((), &()).await?.received;
        let is_meant = |info: &&ReceivedInfo| {
            let hash = info.hash.to_string();
            hash.starts_with(text)
                || hash["sha256:".len()..].starts_with(text)
                || info.grant.grant_id.to_string().starts_with(text)
        };
        let found: Vec<&ReceivedInfo> = all.iter().filter(is_meant).collect();
        match found.as_slice() {
            [one] => Ok(one.hash),
            [] => Err(CliError::Other(format!("no grant begins with {text}; see `grant received`"))),
            several => {
                let many = several.len();
                Err(CliError::Usage(format!(
                    "{text} is the beginning of {many} grants: name more of one's id (`grant received`), or its hash (`--json`)"
                )))
            }
        }
    }
}

impl Received {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        let owner = global.owner().await?;
        match self.what.unwrap_or(What::List) {
            What::List => {
                let list = owner.get::<api::ListReceived>((), &()).await?;
                output::print(global.json, &list, |list| table(list, when::now()));
            }
            What::Show { grant, out } => {
                let out = out.map(|path| Ok::<_, CliError>((OutFile::create(&path)?, path))).transpose()?;
                let hash = grant.resolve(&owner).await?;
                let info = owner.get::<api::ShowReceived>(hash, &()).await?;
                if let Some((file, path)) = out {
                    file.write((output::pretty(&info.grant) + "\n").as_bytes())?;
                    output::print(global.json, &info, |_| format!("written to {}", path.display()));
                    return Ok(());
                }
                output::print(global.json, &info, |info| shown(info, when::now()));
            }
            What::Check { grant } => {
                let hash = grant.resolve(&owner).await?;
                let info = owner.send::<api::CheckReceived>(hash, &()).await?;
                output::print(global.json, &info, |info| {
                    format!("{} is {}", info.grant.grant_id, info.state.as_str())
                });
            }
            What::Remove { grant } => {
                let hash = grant.resolve(&owner).await?;
                let done = owner.send::<api::RemoveReceived>(hash, &()).await?;
                output::print(global.json, &done, |_| format!("{hash} removed"));
            }
            What::Add { file, chain } => {
                let grant = output::read_json_of("FILE", &file)?;
                let chain = chain.iter().map(|path| output::read_json_of("--chain", path));
                let chain = chain.collect::<Result<Vec<_>, _>>()?;
                let info = owner.send::<api::AddReceived>((), &NewReceived { grant, chain }).await?;
                output::print(global.json, &info, |info| {
                    format!("{} of {} taken in", info.grant.grant_id, info.granter)
                });
            }
        }
        Ok(())
    }
}

fn table(list: &ReceivedList, now: Timestamp) -> String {
    let rows = list.received.iter().map(|info| {
        vec![
            info.grant.grant_id.to_string(),
            words::standing(info.state, info.grant.expires_at, now),
            words::minute(info.grant.expires_at),
            info.granter.to_string(),
            info.reading.items.to_string(),
            info.grant.purpose.clone(),
        ]
    });
    output::table(&["grant", "state", "until", "granter", "read", "purpose"], rows)
}

/// A line of what a grant says. Its labels and its profile are a stranger's words, as its purpose is: none of them makes a line of its own.
fn row(name: &str, value: &str) -> String {
    format!("{name:<9} {}\n", screen::line(value))
}

fn shown(info: &ReceivedInfo, now: Timestamp) -> String {
    let grant = &info.grant;
    let mut text =
        format!("{}\n{}\nFrom {}. It is {}", grant.grant_id, info.hash, info.granter, info.state.as_str());
    if info.state == GrantState::Active {
        text.push_str(&format!(" ({})", words::left(grant.expires_at, now)));
    }
    text.push_str(&info.checked_at.map_or_else(
        || ", as far as is known here; `grant received check` asks its granter.\n\n".to_owned(),
        |at| format!("; looked up on {}.\n\n", words::minute(at)),
    ));
    let mut say = |name: &str, value: String| text.push_str(&row(name, &value));
    say("For", format!("\"{}\"", grant.purpose));
    say("Items", words::selected_by(&grant.filter));
    say("Level", format!("{} of {}", grant.trust_level.get(), grant.redaction_profile));
    say("At most", grant.max_items.to_string());
    say("Until", words::minute(grant.expires_at));
    if let Some(Delegable { max_depth }) = grant.delegable {
        say("May be", format!("passed on, {max_depth} deep"));
    }
    if let Some(above) = info.above.last() {
        say("Made by", format!("{}, who passed on what they were given", above.grantee));
    }
    say("Received", words::minute(info.received_at));
    let last =
        info.reading.last_at.map(|at| format!(", the last on {}", words::minute(at))).unwrap_or_default();
    say("Read", format!("{} items in {} answers{last}", info.reading.items, info.reading.answers));
    text.push_str(if info.above.is_empty() {
        "\nAsk with it: grant received show … --out grant.json, then query --grant grant.json \"…\""
    } else {
        "\nAsk with it: recall \"…\"; or query --grant FILE --chain FILE \"…\", a --chain for each grant that it was made from, first one first"
    });
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strangers_words_stay_on_their_line() {
        assert_eq!(
            row("Items", "labelled x\nIt is active\u{1b}[2J"),
            "Items     labelled x It is active\u{fffd}[2J\n"
        );
    }
}
