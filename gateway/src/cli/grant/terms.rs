//! What a grant is to say: as flags, or as a draft in a file.

use super::draft;
use crate::api::grants::GrantDraft;
use crate::cli::when::{self, When};
use crate::cli::{CliError, refusal, values};
use oap_client::ClientError;
use oap_grants::LawfulBasis;
use oap_identity::{Did, ScopeId};
use oap_memory::TrustLevel;
use oap_memory::item::{Confidence, Kind, Sensitivity};
use serde_json::{Value, json};
use std::io::{IsTerminal, Write};
use std::path::PathBuf;

/// What a grant says, as flags.
#[derive(clap::Args)]
pub(in crate::cli) struct Terms {
    /// The grantee's DID
    #[arg(long, value_name = "DID", value_parser = values::grantee)]
    to: Option<Did>,
    /// What for, in words
    #[arg(long)]
    purpose: Option<String>,
    /// What for, in a code; may be given several times
    #[arg(long, value_name = "CODE", value_parser = values::purpose_code)]
    purpose_code: Vec<String>,
    /// The scope; the default one if absent
    #[arg(long)]
    scope: Option<ScopeId>,
    /// Only items of these scopes; another than the grant's needs a bridge
    #[arg(long, value_name = "SCOPE")]
    item_scope: Vec<ScopeId>,
    /// Only items of this kind; may be given several times
    #[arg(long, value_parser = values::kind())]
    kind: Vec<Kind>,
    /// Only items with one of these labels
    #[arg(long, value_parser = values::short)]
    label: Vec<String>,
    /// Only items with all of these labels
    #[arg(long, value_name = "LABEL", value_parser = values::short)]
    all_labels: Vec<String>,
    /// Never items with one of these labels
    #[arg(long, value_name = "LABEL", value_parser = values::short)]
    exclude_label: Vec<String>,
    /// Only items about one of these
    #[arg(long, value_name = "ENTITY", value_parser = values::short)]
    subject: Vec<String>,
    /// Only items captured at or after this time
    #[arg(long, value_name = "TIME")]
    captured_after: Option<When>,
    /// Only items captured before this time
    #[arg(long, value_name = "TIME")]
    captured_before: Option<When>,
    /// Only items of at least this confidence
    #[arg(long, value_name = "0..1", value_parser = values::confidence)]
    min_confidence: Option<Confidence>,
    /// Only items of these sensitivities; names `restricted` to include it
    #[arg(long, value_parser = values::sensitivity())]
    sensitivity: Vec<Sensitivity>,
    /// Most distinct items ever disclosed
    #[arg(long, default_value_t = 500)]
    max_items: u32,
    /// From when on it holds
    #[arg(long, value_name = "TIME")]
    from: Option<When>,
    /// Until when it holds
    #[arg(long, value_name = "TIME")]
    until: Option<When>,
    /// The projection profile, or one of your own; the prefix oap.profile.projection. may be left out
    #[arg(long, default_value = "memory.v1", value_parser = values::ProfileName)]
    profile: String,
    /// How far the grantee is trusted: 0 stranger (that something is there), 1 acquaintance (labels, subject), 2
    /// known (text without personal spans), 3 trusted (text without third parties and credentials), 4 inner circle
    /// (everything)
    #[arg(long, value_name = "0..4", value_parser = values::level())]
    trust_level: Option<TrustLevel>,
    /// The ground
    #[arg(long, default_value = "consent", value_parser = values::lawful_basis())]
    lawful_basis: LawfulBasis,
    /// Allow exports too
    #[arg(long)]
    allow_export: bool,
    /// Allow the grantee to be told of changes (`grant subscribe`)
    #[arg(long)]
    allow_subscribe: bool,
    /// Allow embeddings to be seen
    #[arg(long)]
    embedding_access: bool,
    /// Allow the grantee to pass it on, so many times over
    #[arg(long, value_name = "1..5", value_parser = clap::value_parser!(u8).range(1..=5))]
    delegable: Option<u8>,
    /// Allow a plain bearer token, which whoever has it can use
    #[arg(long)]
    bearer: bool,
}

const LEVELS: &str = "How far do you trust the grantee?
  0  stranger       that something of a kind was captured, and when
  1  acquaintance   also labels and subject
  2  known          also text, with every personal span hidden
  3  trusted        text with only third parties and credentials hidden
  4  inner circle   everything, as you see it
A projection profile for an entity, such as contact.v1, has its own table: see its description.";

impl Terms {
    /// The draft that the flags make.
    pub(super) fn draft(&self) -> Result<GrantDraft, CliError> {
        fn list<T: serde::Serialize>(values: &[T]) -> Option<Value> {
            (!values.is_empty()).then(|| json!(values))
        }
        let missing = |flag: &str| CliError::Usage(format!("{flag} is needed; see `grant issue --help`"));
        let to = self.to.as_ref().ok_or_else(|| missing("--to DID"))?;
        let purpose = self.purpose.as_ref().ok_or_else(|| missing("--purpose TEXT"))?;
        let until = self.until.ok_or_else(|| missing("--until TIME"))?;
        let now = when::now();
        let mut filter = serde_json::Map::new();
        let mut set = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                filter.insert(name.to_owned(), value);
            }
        };
        set("scopes", list(&self.item_scope));
        set("kinds", list(&self.kind));
        set("labels_any", list(&self.label));
        set("labels_all", list(&self.all_labels));
        set("exclude_labels", list(&self.exclude_label));
        set("subject_entity_ids", list(&self.subject));
        set("sensitivities", list(&self.sensitivity));
        set("captured_after", self.captured_after.map(|t| json!(t.since(now))));
        set("captured_before", self.captured_before.map(|t| json!(t.since(now))));
        set("min_confidence", self.min_confidence.map(|c| json!(c)));
        let more = [("export", self.allow_export), ("subscribe", self.allow_subscribe)];
        let more = more.into_iter().filter_map(|(operation, allowed)| allowed.then_some(operation));
        let operations: Vec<&str> = std::iter::once("query").chain(more).collect();
        let mut draft = json!({
            "grantee": to, "purpose": purpose, "filter": filter, "max_items": self.max_items,
            "expires_at": until.ends(now),
            "redaction_profile": self.profile, "trust_level": self.level()?, "lawful_basis": self.lawful_basis,
            "operations": operations,
            "embedding_access": self.embedding_access, "bearer": self.bearer,
        });
        let mut set = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                draft[name] = value;
            }
        };
        set("purpose_codes", list(&self.purpose_code));
        set("scope", self.scope.as_ref().map(|s| json!(s)));
        set("not_before", self.from.map(|t| json!(t.starts(now))));
        set("delegable", self.delegable.map(|n| json!({"max_depth": n})));
        draft::parse(draft).map_err(|e| CliError::Usage(e.to_string()))
    }

    /// The trust level: the flag, or the answer to a question.
    fn level(&self) -> Result<TrustLevel, CliError> {
        let level = match self.trust_level {
            Some(level) => return Ok(level),
            None if std::io::stdin().is_terminal() => {
                eprintln!("{LEVELS}");
                eprint!("Trust level [0]: ");
                let _ = std::io::stderr().flush();
                let mut line = String::new();
                std::io::stdin().read_line(&mut line).map_err(|e| CliError::Usage(e.to_string()))?;
                match line.trim() {
                    "" => 0,
                    text => {
                        text.parse().map_err(|_| CliError::Usage("a trust level is 0 to 4".to_owned()))?
                    }
                }
            }
            None => return Err(CliError::Usage(format!("--trust-level is needed.\n{LEVELS}"))),
        };
        TrustLevel::try_from(level).map_err(|e| CliError::Usage(e.to_string()))
    }
}

/// A grant to preview or to issue: flags, or a draft.
#[derive(clap::Args)]
pub(in crate::cli) struct Asked {
    /// What `grant draft` or `grant edit` wrote, instead of the flags below
    #[arg(long, value_name = "FILE", conflicts_with = "Terms")]
    pub(super) draft: Option<PathBuf>,
    #[command(flatten)]
    pub(super) terms: Terms,
}

impl Asked {
    /// Why the gateway refused it, by the flag or by the draft's member.
    pub(super) fn refused(&self, error: ClientError) -> CliError {
        match &self.draft {
            Some(path) => refusal::of_file("--draft", path, error),
            None => error.into(),
        }
    }

    /// The draft, and the grant that it takes the place of.
    pub(super) fn read(&self) -> Result<draft::File, CliError> {
        match &self.draft {
            Some(path) => draft::File::read(path),
            None => Ok(draft::File { grant: self.terms.draft()?, supersedes: None }),
        }
    }
}
