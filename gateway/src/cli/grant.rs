//! `oap-memory grant`

mod asking;
mod draft;
mod filter;
mod inbox;
mod passing_on;
mod received;
mod subscriptions;
mod terms;
pub(super) mod words;

use super::output::{OutFile, VisibleItem};
use super::reference::GrantRef;
use super::when::{self, Span};
use super::{CliError, Global, output, screen, values};
use crate::api::grants as api;
use crate::api::grants::{Consent, GrantInfo, GrantList, Issuing, Preview};
use crate::system::address::is_loopback;
use crate::system::config::Config;
use oap_client::ClientError;
use oap_client::OwnerClient;
use oap_grants::GrantState;
use oap_identity::{Did, GrantId, Timestamp};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use terms::{Asked, Terms};
use url::Url;

/// Preview, issue and revoke grants; ask for them, and answer who asks
#[derive(clap::Subcommand)]
#[command(after_help = "Examples:
  oap-memory grant preview --to did:web:contractor.example --purpose \"Website redesign\" --label website \\
      --until 2026-06-30 --trust-level 2
  oap-memory grant issue --to did:web:contractor.example --purpose \"Website redesign\" --label website \\
      --until 90d --trust-level 2 --out grant.json
  oap-memory grant list --active --expiring 14d
  oap-memory grant revoke mgr_01...

The beginning of a grant's id is enough wherever no other grant's id begins so.")]
pub(super) enum Grant {
    /// Show exactly what a grant would show
    #[command(after_help = "Examples:
  oap-memory grant preview --to did:web:contractor.example --purpose \"Website redesign\" \\
      --label website --kind fact --kind preference --until 2026-06-30 --trust-level 2
  oap-memory grant preview --draft draft.json")]
    Preview(Box<Asked>),
    /// Sign a grant; hand the file to its grantee
    #[command(after_help = "Examples:
  oap-memory grant issue --to did:web:contractor.example --purpose \"Website redesign\" \\
      --label website --until 90d --max-items 500 --trust-level 2 --out grant.json
  oap-memory grant issue --to did:web:not-there-yet.example --purpose \"Later\" --until 30d --trust-level 1 --offline
  oap-memory grant issue --draft draft.json --out grant.json

`issue` looks for the document of the grantee's DID first; --offline issues without. A draft of `grant edit` names the grant
whose place it takes: that one is revoked once the new one stands and is written.")]
    Issue {
        #[command(flatten)]
        asked: Box<Asked>,
        /// Write the grant to this file instead of standard output
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// Issue it without looking whether the grantee's DID has a document
        #[arg(long)]
        offline: bool,
    },
    /// Write down what would be signed, to edit, preview and issue it later
    #[command(after_help = "Examples:
  oap-memory grant draft --to did:web:contractor.example --purpose \"Website redesign\" --label website \\
      --until 90d --trust-level 2 --out draft.json
  oap-memory grant preview --draft draft.json
  oap-memory grant issue --draft draft.json --out grant.json

A draft is JSON, is not signed, and gives nobody anything.")]
    Draft {
        #[command(flatten)]
        terms: Box<Terms>,
        /// The file
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
    /// Make a draft of a grant that is there, to issue another in its place
    #[command(after_help = "Examples:
  oap-memory grant edit mgr_01... --out draft.json
  oap-memory grant preview --draft draft.json
  oap-memory grant issue --draft draft.json --out grant.json

A signed grant never changes. So the draft names the grant that it was made from, and `issue` revokes that one as soon as the new
one stands: hand the new file to the grantee. What was shown under the old grant does not count against the new one's
--max-items.")]
    Edit {
        /// The grant, or the beginning of its id
        id: GrantRef,
        /// The draft's file
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
    /// List grants, newest first
    #[command(after_help = "Examples:
  oap-memory grant list
  oap-memory grant list --to did:web:contractor.example
  oap-memory grant list --expiring 14d

Of one that ends within 7 days it says how long it still holds.")]
    List {
        /// Only to this grantee
        #[arg(long, value_name = "DID", value_parser = values::grantee)]
        to: Option<Did>,
        /// Only those in force
        #[arg(long)]
        active: bool,
        /// Only those in force that end within this time, such as 14d
        #[arg(long, value_name = "TIME")]
        expiring: Option<Span>,
    },
    /// Say in plain words what a grant allows, and what was shown under it
    #[command(after_help = "Examples:
  oap-memory grant show mgr_01...
  oap-memory grant show mgr_01... --out grant.json
  oap-memory grant show mgr_01... --json")]
    Show {
        /// The grant, or the beginning of its id
        id: GrantRef,
        /// Write the signed grant to this file, to hand it over again
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Consent to what a confidentiality context would withhold from this grant
    #[command(after_help = "Examples:
  oap-memory grant consent mgr_01...
  oap-memory grant consent mgr_01... --withdraw")]
    Consent {
        /// The grant, or the beginning of its id
        id: GrantRef,
        /// Take the consent back
        #[arg(long)]
        withdraw: bool,
    },
    /// Ask somebody for access to their memory
    #[command(after_help = "Examples:
  oap-memory grant request --from did:web:alice.example --purpose \"Website redesign\" --label website --until 90d
  oap-memory grant request --from did:web:alice.example --purpose \"Scheduling\" --kind preference --until 30d \\
      --max-items 50 --trust-level 2

A request gives nothing: its owner previews it, narrows it, says yes or no. The grant comes to your gateway (`grant received`);
`grant requests` says where a request stands.")]
    Request(Box<asking::Request>),
    /// What you asked of others, and where it stands
    #[command(after_help = "Examples:
  oap-memory grant requests
  oap-memory grant requests list
  oap-memory grant requests show ask_01...
  oap-memory grant requests again ask_01...
  oap-memory grant requests withdraw ask_01...")]
    Requests(asking::Requests),
    /// What others ask you for
    #[command(after_help = "Examples:
  oap-memory grant inbox
  oap-memory grant inbox list
  oap-memory grant inbox show ask_01...

What they say is a stranger's word. That they are who they say is proved by their signature, and nothing else of them is.")]
    Inbox(inbox::Inbox),
    /// Say yes to what somebody asks, or to less of it
    #[command(after_help = "Examples:
  oap-memory grant approve ask_01... --trust-level 2
  oap-memory grant approve ask_01... --label website --until 30d --max-items 50 --trust-level 1 --yes

It shows what the grant would show now, and asks. The grant is signed and delivered, and is never wider than what was asked.")]
    Approve(Box<inbox::Approve>),
    /// Say no to what somebody asks
    #[command(after_help = "Examples:
  oap-memory grant decline ask_01...
  oap-memory grant decline ask_01... --word \"Not before the contract is signed\"")]
    Decline(inbox::Decline),
    /// The grants that others gave you
    #[command(after_help = "Examples:
  oap-memory grant received
  oap-memory grant received list
  oap-memory grant received show mgr_01... --out grant.json
  oap-memory grant received check mgr_01...
  oap-memory grant received remove mgr_01...
  oap-memory grant received add grant.json")]
    Received(received::Received),
    /// Pass on less of what somebody gave you
    #[command(after_help = "Examples:
  oap-memory grant delegate mgr_01... --to did:web:helper.example --label website --max-items 20 \\
      --until 14d --trust-level 1 --out child.json

Only a grant that may be passed on (`grant received show` says so) can be, and never more of it. Hand over the file, and the grant that
it was made from (`grant received show ... --out`). Its granter sees it once it is used, and it ends with the grant that it was made from.")]
    Delegate(Box<passing_on::Delegate>),
    /// Be told what becomes of what a grant shows you
    #[command(after_help = "Examples:
  oap-memory grant subscribe mgr_01...
  oap-memory grant subscribe mgr_01... --every 1h

The granter's gateway pushes to yours what came, changed and left, proved as every answer is. `grant subscriptions` counts it; nothing of
it is kept, and `query` under the grant shows it.")]
    Subscribe(subscriptions::Subscribe),
    /// End a subscription, yours or a grantee's
    #[command(after_help = "Examples:
  oap-memory grant unsubscribe sub_01...")]
    Unsubscribe(subscriptions::Unsubscribe),
    /// Who tells you of changes, and whom you tell
    #[command(after_help = "Examples:
  oap-memory grant subscriptions
  oap-memory grant subscriptions --json")]
    Subscriptions,
    /// Let grants answer again after a restore, as `restore` asked for
    #[command(after_help = "Examples:
  oap-memory grant resume

A restored backup may be older than corrections, labels, contexts and holds that restricted what grants show. Look at them first:
`item list`, `context list`, `hold list`.")]
    Resume,
    /// Take a grant back; it takes effect before the next answer
    #[command(after_help = "Examples:
  oap-memory grant revoke mgr_01...")]
    Revoke {
        /// The grant, or the beginning of its id
        id: GrantRef,
    },
}

impl Grant {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        match self {
            Self::Preview(asked) => {
                let draft = asked.read()?.grant;
                let owner = global.owner().await?;
                let answer = owner.send::<api::PreviewGrant>((), &draft).await;
                output::print(global.json, &answer.map_err(|error| asked.refused(error))?, preview);
            }
            Self::Issue { asked, out, offline } => issue(global, &asked, out, offline).await?,
            Self::Draft { terms, out } => {
                let draft = draft::File { grant: terms.draft()?, supersedes: None };
                write_draft(global, &draft, out)?;
            }
            Self::Edit { id, out } => {
                let (_, info) = read(global, &id).await?;
                if info.delegated {
                    let why = "a grantee passed this grant on: its own granter alone can issue another";
                    return Err(CliError::Usage(why.to_owned()));
                }
                write_draft(global, &draft::File::of(&info.grant), out)?;
            }
            Self::List { to, active, expiring } => {
                let mut answer = global.owner().await?.get::<api::ListGrants>((), &()).await?;
                let until = expiring.map(|Span(span)| when::now().plus(span));
                answer.grants.retain(|info| listed(info, to.as_ref(), active, until));
                output::print(global.json, &answer, |answer| table(answer, when::now()));
            }
            Self::Show { id, out } => {
                let out = out.map(|path| Ok::<_, CliError>((OutFile::create(&path)?, path))).transpose()?;
                let (id, info) = read(global, &id).await?;
                if let Some((file, path)) = out {
                    file.write((output::pretty(&info.grant) + "\n").as_bytes())?;
                    output::print(global.json, &info, |_| format!("{id} written to {}", path.display()));
                    return Ok(());
                }
                let owner = global.owner().await?;
                let told = subscriptions::of_grant(&owner, info.hash).await?;
                output::print(global.json, &info, |info| words::shown(info, when::now()) + &told);
            }
            Self::Consent { id, withdraw } => {
                let owner = global.owner().await?;
                let id = id.resolve(&owner).await?;
                let answer = owner.send::<api::ConsentToGrant>(id, &Consent { given: !withdraw }).await?;
                output::print(global.json, &answer, |_| {
                    format!("consent to {id} {}", if withdraw { "withdrawn" } else { "given" })
                });
            }
            Self::Request(request) => request.run(global).await?,
            Self::Requests(requests) => requests.run(global).await?,
            Self::Inbox(inbox) => inbox.run(global).await?,
            Self::Approve(approve) => approve.run(global).await?,
            Self::Decline(decline) => decline.run(global).await?,
            Self::Received(received) => received.run(global).await?,
            Self::Delegate(delegate) => delegate.run(global).await?,
            Self::Subscribe(subscribe) => subscribe.run(global).await?,
            Self::Unsubscribe(unsubscribe) => unsubscribe.run(global).await?,
            Self::Subscriptions => subscriptions::list(global).await?,
            Self::Resume => {
                let answer = global.owner().await?.send::<api::ResumeGrants>((), &()).await?;
                output::print(global.json, &answer, |_| "grants answer as they stand".to_owned());
            }
            Self::Revoke { id } => {
                let owner = global.owner().await?;
                let id = id.resolve(&owner).await?;
                let answer = owner.send::<api::RevokeGrant>(id, &()).await?;
                output::print(global.json, &answer, |_| format!("{id} revoked"));
            }
        }
        Ok(())
    }
}

async fn read(global: &Global, id: &GrantRef) -> Result<(GrantId, GrantInfo), CliError> {
    let owner = global.owner().await?;
    let id = id.resolve(&owner).await?;
    Ok((id, owner.get::<api::ShowGrant>(id, &()).await?))
}

fn write_draft(global: &Global, draft: &draft::File, out: PathBuf) -> Result<(), CliError> {
    let json = draft.json()?;
    OutFile::create(&out)?.write((output::pretty(&json) + "\n").as_bytes())?;
    output::print(global.json, &json, |_| {
        let file = out.display();
        format!(
            "written to {file}; nothing is signed yet\nNext: oap-memory grant preview --draft {file}, then grant issue"
        )
    });
    Ok(())
}

/// Issues a grant, writes it, and revokes the one whose place it takes: in this order, so that the grantee is never left with
/// none.
async fn issue(global: &Global, asked: &Asked, out: Option<PathBuf>, offline: bool) -> Result<(), CliError> {
    let draft::File { grant, supersedes } = asked.read()?;
    let config = Config::load(global.home().path(), &global.flags())?;
    let out = out.map(|path| Ok::<_, CliError>((OutFile::create(&path)?, path))).transpose()?;
    let owner = global.owner().await?;
    if let Some(old) = supersedes {
        replaceable(&owner, old).await?;
    }
    let answer = owner.ask::<api::IssueGrant>(&(), &Issuing { offline }, &grant).await;
    let info = answer.map_err(|error| asked.refused(error))?;
    let id = info.grant.grant_id;
    let document = output::pretty(&info.grant);
    let mut told = match out {
        Some((file, path)) => {
            // The disk may be full by now.
            file.write((document + "\n").as_bytes()).map_err(|e| {
                let kept = supersedes.map(|old| format!("; {old} still holds")).unwrap_or_default();
                CliError::Other(format!(
                    "{id} is issued and not written: {e}; `grant show {id} --out FILE` writes it{kept}"
                ))
            })?;
            format!("{id} written to {}; it leads to {}", path.display(), place(&info.grant))
        }
        None => document,
    };
    warn(&config, &info.grant);
    // What cannot be looked at now is no reason to say anything: the grant is issued.
    if owner.send::<api::PreviewGrant>((), &grant).await.is_ok_and(|shown| shown.selected == 0) {
        eprintln!(
            "oap-memory: WARNING: {id} selects no item as things stand; `grant preview` shows what a grant would show"
        );
    }
    let mut superseded = None;
    if let Some(old) = supersedes {
        match owner.send::<api::RevokeGrant>(old, &()).await {
            Ok(_) => told.push_str(&format!("\n{old} revoked")),
            // Revoked meanwhile.
            Err(ClientError::Refused { status: 409, .. }) => {}
            Err(error) => {
                return Err(CliError::Other(format!(
                    "{id} is issued, and {old} still holds: {error}; `grant revoke {old}`"
                )));
            }
        }
        superseded = Some(old);
    }
    output::print(global.json, &Issued { info, superseded }, |_| told);
    Ok(())
}

/// A grant that was issued, and the one whose place it took.
#[derive(Serialize)]
struct Issued {
    #[serde(flatten)]
    info: GrantInfo,
    #[serde(skip_serializing_if = "Option::is_none")]
    superseded: Option<GrantId>,
}

/// That a grant's place can be taken: that of one which ended was taken already, or is nobody's.
async fn replaceable(owner: &OwnerClient, old: GrantId) -> Result<(), CliError> {
    match owner.get::<api::ShowGrant>(old, &()).await?.state {
        // One that has not begun yet is a draft.
        GrantState::Active | GrantState::Draft => Ok(()),
        state => Err(CliError::Other(format!(
            "nothing is issued: {old}, whose place the draft takes, is {}; take `supersedes` out of the draft to issue a \
             further grant",
            state.as_str()
        ))),
    }
}

/// The origin of the gateway that a grant names.
fn place(grant: &oap_grants::Grant) -> String {
    let uri = grant.status.as_ref().map(|status| status.status_list.uri.clone()).unwrap_or_default();
    Url::parse(&uri).map(|url| url.origin().ascii_serialization()).unwrap_or(uri)
}

/// Warns of a grant that leads a grantee to their own machine. A did:web says in its document where its gateway is; the grant of a
/// did:key is all that says it.
fn warn(config: &Config, grant: &oap_grants::Grant) {
    let place = place(grant);
    let own_machine = Url::parse(&place).is_ok_and(|url| is_loopback(&url));
    if own_machine && config.origin.is_none() && grant.granter.principal.as_str().starts_with("did:key:") {
        eprintln!(
            "oap-memory: WARNING: the grant leads to {place}, which is this machine alone, and a grant never changes: set \
             `origin` (or `listen`, for another port) in config.toml first, and issue it again"
        );
    }
}

/// Whether a grant is asked for.
fn listed(info: &GrantInfo, to: Option<&Did>, active: bool, until: Option<Timestamp>) -> bool {
    to.is_none_or(|to| info.grant.grantee == *to)
        && (!(active || until.is_some()) || info.state == GrantState::Active)
        && until.is_none_or(|until| info.grant.expires_at <= until)
}

pub(super) fn table(answer: &GrantList, now: Timestamp) -> String {
    let rows = answer.grants.iter().map(|info| {
        let grant = &info.grant;
        let level = grant.trust_level.get();
        vec![
            grant.grant_id.to_string(),
            words::standing(info.state, grant.expires_at, now),
            grant.expires_at.to_string(),
            grant.grantee.to_string(),
            match grant.redaction_profile.replace(oap_memory::profile::NAME_PREFIX, "") {
                usual if usual == "memory.v1" => level.to_string(),
                other => format!("{level} {other}"),
            },
            format!("{}/{}", info.disclosed, grant.max_items),
            grant.purpose.clone(),
        ]
    });
    output::table(&["grant", "state", "until", "grantee", "level", "items", "purpose"], rows)
}

/// What a preview shows to people. Also the demonstration's.
pub(super) fn preview(answer: &Preview) -> String {
    fn counts<N: ToString>(counts: &BTreeMap<String, N>) -> Vec<Vec<String>> {
        counts.iter().map(|(name, n)| vec![name.clone(), n.to_string()]).collect()
    }
    let mut text = format!(
        "{} items selected, at most {} distinct ones ever disclosed\n",
        answer.selected, answer.max_items
    );
    if !answer.kinds.is_empty() {
        text.push_str(&output::table(&["kind", "items"], counts(&answer.kinds)));
        text.push('\n');
    }
    let rows = answer.items.iter().take(20).map(|item| {
        let visible = VisibleItem::of(&item.visible);
        vec![
            output::or_none(visible.item_id),
            output::or_none(visible.kind),
            screen::line(&output::says(&visible.content)),
            item.hidden.len().to_string(),
        ]
    });
    text.push_str(&output::wrapped(&["item", "kind", "what they would see", "hidden"], rows));
    if answer.items.len() > 20 {
        text.push_str(&format!("\n… and {} more (--json shows them)", answer.items.len() - 20));
    }
    if answer.withheld > 0 {
        text.push_str(&format!("\n\n{} more items are withheld by the gates\n", answer.withheld));
        text.push_str(&output::table(&["rule", "items"], counts(&answer.rules)));
    }
    text.push_str("\nhidden from them\n");
    text.push_str(&output::table(&["member", "in items"], counts(&answer.hidden)));
    for warning in &answer.warnings {
        text.push_str(&format!("\nnote: {warning}"));
    }
    text
}
