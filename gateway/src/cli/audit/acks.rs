//! `oap-memory audit acks`: what was acknowledged of answers, and which order of mutual knowledge that proves.

use crate::api::access::LetterState;
use crate::api::acks::{
    AckInfo, AckList, AckProof, AckQuery, AckSetting, AckSettings, GiveAck, ListAcks, SetAcks, ShowAck,
};
use crate::cli::grant::words::minute;
use crate::cli::{CliError, Global, output};
use crate::service::acks::MAX_LISTED;
use clap::ValueEnum;
use oap_client::{ClientError, OwnerClient};
use oap_identity::Hash;
use std::str::FromStr;

/// Show which answers were acknowledged, and acknowledge them
#[derive(clap::Args)]
#[command(after_help = "Examples:
  oap-memory audit acks
  oap-memory audit acks auto on
  oap-memory audit acks auto off

An answer that you got under somebody's grant is acknowledged by your signature under its receipt; one that you gave, by
theirs. Each further signature is over the one before. `order` says what that proves to you: 1, you know that they gave it;
2, they know that they gave it, you know that they got it, and so on. It is never common knowledge: however many signatures
there are, the last one may not have arrived. With `auto on` your gateway signs by itself what it got, and what came back of
what it gave, and nothing more than these two; `give` signs the next one by hand.")]
pub(in crate::cli) struct AcksArgs {
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(clap::Subcommand)]
enum What {
    /// The answers, newest first
    #[command(after_help = "Examples:
  oap-memory audit acks list
  oap-memory audit acks list --limit 10 --json")]
    List {
        /// At most so many
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=MAX_LISTED as i64))]
        limit: u16,
    },
    /// One of them, with everything that was signed (--json)
    #[command(after_help = "Examples:
  oap-memory audit acks show sha256:9f86d081")]
    Show {
        /// The hash of its receipt, or how it begins
        receipt: AckRef,
    },
    /// Sign the next acknowledgement of it, and send it
    #[command(after_help = "Examples:
  oap-memory audit acks give sha256:9f86d081")]
    Give {
        /// The hash of its receipt, or how it begins
        receipt: AckRef,
    },
    /// Whether your gateway acknowledges by itself
    #[command(after_help = "Examples:
  oap-memory audit acks auto on
  oap-memory audit acks auto off")]
    Auto {
        /// Whether it does; off unless you said otherwise
        state: Switch,
        /// Under this grant alone, given or received: the hash of its document
        #[arg(long, value_name = "HASH")]
        grant: Option<Hash>,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum Switch {
    /// It does
    On,
    /// It does not
    Off,
}

/// The hash of a receipt, or its beginning.
#[derive(Debug, Clone)]
struct AckRef(String);

/// Not the beginning of a hash.
#[derive(Debug, thiserror::Error)]
#[error("name the hash of a receipt, or at least four characters of its beginning; see `audit acks`")]
struct NotAck;

impl FromStr for AckRef {
    type Err = NotAck;
    fn from_str(text: &str) -> Result<Self, NotAck> {
        let hex = text.strip_prefix("sha256:").unwrap_or(text).to_ascii_lowercase();
        let is_hex = (4..=64).contains(&hex.len()) && hex.bytes().all(|c| c.is_ascii_hexdigit());
        if is_hex { Ok(Self(hex)) } else { Err(NotAck) }
    }
}

impl AckRef {
    async fn resolve(&self, owner: &OwnerClient) -> Result<Hash, CliError> {
        if let Ok(hash) = format!("sha256:{}", self.0).parse() {
            return Ok(hash);
        }
        let list = owner.get::<ListAcks>((), &AckQuery { limit: Some(MAX_LISTED) }).await?;
        let is_meant = |info: &&AckInfo| {
            info.receipt_hash.to_string().strip_prefix("sha256:").is_some_and(|hex| hex.starts_with(&self.0))
        };
        let found: Vec<&AckInfo> = list.answers.iter().filter(is_meant).collect();
        match found.as_slice() {
            [one] => Ok(one.receipt_hash),
            [] => Err(CliError::Other(format!("no receipt begins with {}; see `audit acks`", self.0))),
            several => {
                let many = several.len();
                Err(CliError::Usage(format!(
                    "{} is the beginning of {many} receipts: name more of one",
                    self.0
                )))
            }
        }
    }
}

impl AcksArgs {
    pub(in crate::cli) async fn run(self, global: &Global, owner: &OwnerClient) -> Result<(), CliError> {
        match self.what.unwrap_or(What::List { limit: 50 }) {
            What::List { limit } => {
                let list = owner.get::<ListAcks>((), &AckQuery { limit: Some(limit.into()) }).await?;
                output::print(global.json, &list, table);
            }
            What::Show { receipt } => {
                let hash = receipt.resolve(owner).await?;
                output::print(global.json, &owner.get::<ShowAck>(hash, &()).await?, shown);
            }
            What::Give { receipt } => {
                let hash = receipt.resolve(owner).await?;
                output::print(global.json, &owner.send::<GiveAck>(hash, &()).await?, shown);
            }
            What::Auto { state, grant } => {
                let setting = AckSetting { automatic: matches!(state, Switch::On), grant };
                let set = owner.send::<SetAcks>((), &setting).await.map_err(|error| match error {
                    ClientError::Refused { status: 404, .. } => CliError::Other(
                        "--grant: no grant of this hash was given or received; `grant list --json` and `grant received --json` have the hashes"
                            .to_owned(),
                    ),
                    error => error.into(),
                })?;
                output::print(global.json, &set, settings);
            }
        }
        Ok(())
    }
}

fn settings(settings: &AckSettings) -> String {
    let how = |automatic: bool| if automatic { "by itself" } else { "only when you say so" };
    let mut text = format!("Your gateway acknowledges {}.", how(settings.automatic));
    for said in &settings.grants {
        text.push_str(&format!("\nUnder {}: {}.", said.grant, how(said.automatic)));
    }
    text
}

fn letter(state: Option<LetterState>) -> String {
    state.map(|state| state.as_str().to_owned()).unwrap_or_default()
}

fn table(list: &AckList) -> String {
    let rows = list.answers.iter().map(|info| {
        vec![
            info.receipt_hash.to_string().chars().skip("sha256:".len()).take(12).collect(),
            minute(info.since),
            info.granter.to_string(),
            info.grantee.to_string(),
            info.acknowledgements.to_string(),
            info.order.to_string(),
            letter(info.letter),
        ]
    });
    let header = ["receipt", "since", "given by", "to", "signed", "order", "last letter"];
    format!("{}\n{}", output::table(&header, rows), settings(&list.settings))
}

fn shown(proof: &AckProof) -> String {
    let info = &proof.answer;
    let mut text = format!("{}\n{}\n\n", info.receipt_hash, info.receipt_id);
    let mut say = |name: &str, value: String| text.push_str(&format!("{name:<9} {value}\n"));
    say("Given by", info.granter.to_string());
    say("To", info.grantee.to_string());
    say("Grant", info.grant.to_string());
    say("Signed", format!("{} time(s)", info.acknowledgements));
    if info.letter.is_some() {
        say("Letter", letter(info.letter));
    }
    say("Order", format!("{} of mutual knowledge is proved to you; it is not common knowledge", info.order));
    if info.yours {
        text.push_str("\nThe next signature is yours: `oap-memory audit acks give`");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_receipt_is_named_by_the_beginning_of_its_hash() {
        for good in ["abcd", "sha256:ABCD", &"0".repeat(64)] {
            assert!(good.parse::<AckRef>().is_ok(), "{good}");
        }
        for bad in ["abc", "sha256:", "ghij", "", &"0".repeat(65)] {
            assert!(bad.parse::<AckRef>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_screen_claims_no_common_knowledge() {
        let info = json!({
            "receipt_hash": Hash::of(b"x"), "receipt_id": "urn:oap:receipt:01J9V8B7H1ZK4D2A0M9R8F0KQX", "granter": "did:web:a.example",
            "grantee": "did:web:b.example", "grant": Hash::of(b"y"), "since": "2026-05-01T12:00:00Z", "acknowledgements": 16,
            "order": 17, "yours": false,
        });
        let proof: AckProof =
            serde_json::from_value(json!({"answer": info, "receipt": {}, "signed": []})).unwrap();
        let text = shown(&proof);
        assert!(text.contains("17 of mutual knowledge") && text.contains("not common knowledge"), "{text}");
        let list: AckList = serde_json::from_value(json!({
            "settings": {"automatic": false, "grants": [{"grant": Hash::of(b"y"), "automatic": true}]}, "answers": [info],
        }))
        .unwrap();
        let text = table(&list);
        assert!(text.contains("only when you say so") && text.contains(": by itself."), "{text}");
    }
}
