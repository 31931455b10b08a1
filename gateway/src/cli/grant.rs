//! `oap-memory grant`

use super::output::OutFile;
use super::when::{self, When};
use super::{CliError, Global, output, values};
use oap_grants::LawfulBasis;
use oap_identity::{Did, GrantId, ScopeId};
use oap_memory::TrustLevel;
use oap_memory::item::{Confidence, Kind, Sensitivity};
use serde_json::{Value, json};
use std::io::{IsTerminal, Write};
use std::path::PathBuf;

/// Preview, issue and revoke grants
#[derive(clap::Subcommand)]
#[command(after_help = "Examples:
  oap-memory grant preview --to did:web:contractor.example --purpose \"Website redesign\" \\
      --label website --kind fact --kind preference --until 2026-06-30 --trust-level 2
  oap-memory grant issue --to did:web:contractor.example --purpose \"Website redesign\" \\
      --label website --until 90d --max-items 500 --trust-level 2 --out grant.json
  oap-memory grant issue --to did:web:not-there-yet.example --purpose \"Later\" --until 30d --trust-level 1 --offline
  oap-memory grant revoke mgr_01...

`issue` looks for the document of the grantee's DID first; --offline issues without.")]
pub(super) enum Grant {
    /// Show exactly what a grant would show
    Preview(Box<Terms>),
    /// Sign a grant; hand the file to its grantee
    Issue {
        #[command(flatten)]
        terms: Box<Terms>,
        /// Write the grant to this file instead of standard output
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// Issue it without looking whether the grantee's DID has a document
        #[arg(long)]
        offline: bool,
    },
    /// List grants, newest first
    List,
    /// Show a grant
    Show {
        /// The grant
        id: GrantId,
    },
    /// Consent to what a confidentiality context would withhold from this grant
    Consent {
        /// The grant
        id: GrantId,
        /// Take the consent back
        #[arg(long)]
        withdraw: bool,
    },
    /// Take a grant back; it takes effect before the next answer
    Revoke {
        /// The grant
        id: GrantId,
    },
}

/// What a grant says, as flags.
#[derive(clap::Args)]
pub(super) struct Terms {
    /// The grantee's DID
    #[arg(long, value_name = "DID", value_parser = values::grantee)]
    to: Did,
    /// What for, in words
    #[arg(long)]
    purpose: String,
    /// What for, in a code; may be given several times
    #[arg(long, value_name = "CODE")]
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
    until: When,
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
    fn draft(&self) -> Result<Value, CliError> {
        fn list<T: serde::Serialize>(values: &[T]) -> Option<Value> {
            (!values.is_empty()).then(|| json!(values))
        }
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
        let mut draft = json!({
            "grantee": self.to, "purpose": self.purpose, "filter": filter, "max_items": self.max_items,
            "expires_at": self.until.ends(now),
            "redaction_profile": self.profile, "trust_level": self.level()?, "lawful_basis": self.lawful_basis,
            "operations": if self.allow_export { json!(["query", "export"]) } else { json!(["query"]) },
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
        Ok(draft)
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
        TrustLevel::try_from(level).map_err(CliError::Usage)
    }
}

impl Grant {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        match self {
            Self::Preview(terms) => {
                let draft = terms.draft()?;
                let mut owner = global.owner().await?;
                let answer = owner.call("POST", "/oap/owner/grants/preview", &[], Some(&draft)).await?;
                output::print(global.json, &answer, preview);
            }
            Self::Issue { terms, out, offline } => {
                let draft = terms.draft()?;
                let out = out.map(|path| Ok::<_, CliError>((OutFile::create(&path)?, path))).transpose()?;
                let query = [("offline", offline.to_string())];
                let mut owner = global.owner().await?;
                let answer = owner.call("POST", "/oap/owner/grants", &query, Some(&draft)).await?;
                let document = output::pretty(&answer["grant"]);
                match out {
                    Some((file, path)) => {
                        let id = output::text(&answer, "/grant/grant_id");
                        // The disk may be full by now.
                        file.write((document + "\n").as_bytes()).map_err(|e| {
                            CliError::Other(format!(
                                "{id} is issued and not written: {e}; `grant show {id}` has it"
                            ))
                        })?;
                        output::print(global.json, &answer, |_| {
                            format!("{id} written to {}", path.display())
                        });
                    }
                    None => output::print(global.json, &answer, |_| document),
                }
            }
            Self::List => {
                let mut owner = global.owner().await?;
                let answer = owner.call("GET", "/oap/owner/grants", &[], None).await?;
                output::print(global.json, &answer, table);
            }
            Self::Show { id } => {
                let mut owner = global.owner().await?;
                let answer = owner.call("GET", &format!("/oap/owner/grants/{id}"), &[], None).await?;
                output::print(global.json, &answer, |a| {
                    let line = format!(
                        "{}: {} of {} items disclosed",
                        output::text(a, "/state"),
                        output::text(a, "/disclosed"),
                        output::text(a, "/grant/max_items")
                    );
                    format!("{}\n{line}", output::pretty(&a["grant"]))
                });
            }
            Self::Consent { id, withdraw } => {
                let mut owner = global.owner().await?;
                let path = format!("/oap/owner/grants/{id}/consent");
                let answer = owner.call("POST", &path, &[], Some(&json!({"given": !withdraw}))).await?;
                output::print(global.json, &answer, |_| {
                    format!("consent to {id} {}", if withdraw { "withdrawn" } else { "given" })
                });
            }
            Self::Revoke { id } => {
                let mut owner = global.owner().await?;
                let path = format!("/oap/owner/grants/{id}/revoke");
                let answer = owner.call("POST", &path, &[], Some(&json!({}))).await?;
                output::print(global.json, &answer, |_| format!("{id} revoked"));
            }
        }
        Ok(())
    }
}

fn table(answer: &Value) -> String {
    let grants = answer["grants"].as_array().cloned().unwrap_or_default();
    let rows = grants.iter().map(|info| {
        vec![
            output::text(info, "/grant/grant_id"),
            output::text(info, "/state"),
            output::text(info, "/grant/grantee"),
            output::text(info, "/grant/redaction_profile").replace(oap_memory::profile::NAME_PREFIX, ""),
            output::text(info, "/grant/trust_level"),
            format!("{}/{}", output::text(info, "/disclosed"), output::text(info, "/grant/max_items")),
            output::text(info, "/grant/expires_at"),
            output::short(&output::text(info, "/grant/purpose"), 30),
        ]
    });
    output::table(&["grant", "state", "grantee", "profile", "level", "items", "until", "purpose"], rows)
}

/// What a preview shows to people. Also the demonstration's.
pub(super) fn preview(answer: &Value) -> String {
    let mut text = format!(
        "{} items selected, at most {} distinct ones ever disclosed\n",
        output::text(answer, "/selected"),
        output::text(answer, "/max_items")
    );
    let counts = |pointer: &str| {
        let counts = answer.pointer(pointer).and_then(Value::as_object).cloned().unwrap_or_default();
        counts.iter().map(|(name, n)| vec![name.clone(), n.to_string()]).collect::<Vec<_>>()
    };
    text.push_str(&output::table(&["kind", "items"], counts("/kinds")));
    text.push('\n');
    let items = answer["items"].as_array().cloned().unwrap_or_default();
    let rows = items.iter().take(20).map(|item| {
        let visible = &item["visible"];
        vec![
            output::text(visible, "/item_id"),
            output::text(visible, "/kind"),
            output::short(&output::gist(visible), 60),
            item["hidden"].as_array().map_or(0, Vec::len).to_string(),
        ]
    });
    text.push_str(&output::table(&["item", "kind", "what they would see", "hidden places"], rows));
    if items.len() > 20 {
        text.push_str(&format!("\n… and {} more (--json shows them)", items.len() - 20));
    }
    if answer["withheld"].as_u64().is_some_and(|n| n > 0) {
        let line =
            format!("\n\n{} more items are withheld by the gates\n", output::text(answer, "/withheld"));
        text.push_str(&line);
        text.push_str(&output::table(&["rule", "items"], counts("/rules")));
    }
    text.push_str("\nhidden from them\n");
    text.push_str(&output::table(&["member", "in items"], counts("/hidden")));
    for warning in answer["warnings"].as_array().into_iter().flatten() {
        text.push_str(&format!("\nnote: {}", warning.as_str().unwrap_or_default()));
    }
    text
}
