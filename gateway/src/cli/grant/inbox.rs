//! `oap-memory grant inbox`, `grant approve` and `grant decline`: what others ask for. Their words are strangers': on one line, and in
//! quotes.

use super::filter::Selected;
use super::{preview, words};
use crate::api::access as api;
use crate::api::access::{AskInfo, AskList, AskState, Declining};
use crate::api::grants::{GrantDraft, PreviewGrant};
use crate::cli::reference::AskRef;
use crate::cli::when::{self, When};
use crate::cli::{CliError, Global, output, screen, values};
use crate::service::notices::may_have_a_gateway;
use oap_federation::plain::Plain;
use oap_grants::Operation;
use oap_grants::grant::{Budget, Delegable};
use oap_identity::{AskId, ScopeId};
use oap_memory::TrustLevel;
use std::io::{IsTerminal, Write};

/// What others ask for
#[derive(clap::Args)]
pub(in crate::cli) struct Inbox {
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(clap::Subcommand)]
enum What {
    /// List what others ask for, newest first
    List,
    /// Show what somebody asks, and what it would show them now
    Show {
        /// The request, or the beginning of its id
        id: AskRef,
    },
}

impl Inbox {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        let owner = global.owner().await?;
        match self.what.unwrap_or(What::List) {
            What::List => {
                let list = owner.get::<api::ListAsks>((), &()).await?;
                output::print(global.json, &list, table);
            }
            What::Show { id } => {
                let id = id.resolve_ask(&owner).await?;
                let ask = owner.get::<api::ShowAsk>(id, &()).await?;
                if global.json || ask.state != AskState::Pending {
                    output::print(global.json, &ask, shown);
                    return Ok(());
                }
                let would_show = owner.send::<PreviewGrant>((), &ask.proposal).await?;
                output::print(false, &ask, |ask| {
                    let preview = preview(&would_show);
                    let id = name(ask);
                    let next = format!("Next: oap-memory grant approve {id}, or grant decline {id}");
                    format!("{}\n\nApproved as it is, it would show now:\n{preview}\n\n{next}", shown(ask))
                });
            }
        }
        Ok(())
    }
}

/// A yes, no wider than what was asked.
#[derive(clap::Args)]
pub(in crate::cli) struct Approve {
    /// The request, or the beginning of its id
    id: AskRef,
    /// The scope, where the request names none; the default one if absent
    #[arg(long)]
    scope: Option<ScopeId>,
    #[command(flatten)]
    selected: Selected,
    /// At most so many distinct items ever disclosed
    #[arg(long, value_name = "N")]
    max_items: Option<u32>,
    /// Until when it holds
    #[arg(long, value_name = "TIME")]
    until: Option<When>,
    /// The projection profile, where the request names none
    #[arg(long, value_parser = values::ProfileName)]
    profile: Option<String>,
    /// The trust level: what was asked at most; 0 where the request names none
    #[arg(long, value_name = "0..4", visible_alias = "level", value_parser = values::level())]
    trust_level: Option<TrustLevel>,
    /// Allow no exports, whatever was asked
    #[arg(long)]
    no_export: bool,
    /// Tell of no changes, whatever was asked
    #[arg(long)]
    no_subscribe: bool,
    /// At most so many queries
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_queries: Option<u64>,
    /// Let it be passed on so many times over at most, and with 0 not at all
    #[arg(long, value_name = "0..5", value_parser = clap::value_parser!(u8).range(0..=5))]
    delegable: Option<u8>,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

impl Approve {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        let owner = global.owner().await?;
        let id = self.id.resolve_ask(&owner).await?;
        let ask = owner.get::<api::ShowAsk>(id, &()).await?;
        if ask.state != AskState::Pending {
            let id = name(&ask);
            return Err(CliError::Other(format!("{id} is {}; nothing was signed", ask.state.as_str())));
        }
        let mut draft = ask.proposal.clone();
        self.narrow(&mut draft)?;
        if !self.yes {
            if !std::io::stdin().is_terminal() {
                let why = "there is no terminal to ask on: say --yes, or look first with `grant inbox show`";
                return Err(CliError::Usage(why.to_owned()));
            }
            let would_show = owner.send::<PreviewGrant>((), &draft).await?;
            let question = format!(
                "{}\n\n{}\n\nSign this grant, and send it to {}?",
                terms(&draft),
                preview(&would_show),
                ask.from
            );
            if !agreed(&question)? {
                return Err(CliError::Other("nothing was signed".to_owned()));
            }
        }
        let info = owner.send::<api::ApproveAsk>(id, &draft).await?;
        output::print(global.json, &info, |info| {
            let grant = info.grant.grant_id;
            if !may_have_a_gateway(&ask.from) {
                let method = ask.from.method();
                return format!(
                    "{grant} signed; a did:{method} has no address: they fetch it with their request"
                );
            }
            format!("{grant} signed; it is delivered to {} (`peer outbox`)", ask.from)
        });
        Ok(())
    }

    fn narrow(&self, draft: &mut GrantDraft) -> Result<(), CliError> {
        self.selected.narrow(&mut draft.filter)?;
        draft.scope = self.scope.clone().or(draft.scope.take());
        draft.max_items = self.max_items.unwrap_or(draft.max_items);
        if let Some(until) = self.until {
            draft.expires_at = until.ends(when::now());
        }
        if let Some(profile) = &self.profile {
            draft.redaction_profile.clone_from(profile);
        }
        draft.trust_level = self.trust_level.unwrap_or(draft.trust_level);
        if self.no_export {
            draft.operations.remove(&Operation::Export);
        }
        if self.no_subscribe {
            draft.operations.remove(&Operation::Subscribe);
        }
        if let Some(queries) = self.max_queries {
            draft.budget = Some(Budget { queries: Some(queries), ..draft.budget.unwrap_or_default() });
        }
        if let Some(max_depth) = self.delegable {
            draft.delegable = (max_depth > 0).then_some(Delegable { max_depth });
        }
        Ok(())
    }
}

/// A no.
#[derive(clap::Args)]
pub(in crate::cli) struct Decline {
    /// The request, or the beginning of its id
    id: AskRef,
    /// A word for whoever asked; without one they learn nothing but the no
    #[arg(long, value_name = "TEXT")]
    word: Option<Plain>,
}

impl Decline {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        let owner = global.owner().await?;
        let id = self.id.resolve_ask(&owner).await?;
        let ask = owner.send::<api::DeclineAsk>(id, &Declining { word: self.word }).await?;
        output::print(global.json, &ask, |ask| {
            let how = if may_have_a_gateway(&ask.from) { "is told" } else { "is told once they ask again" };
            format!("{} declined; {} {how}", name(ask), ask.from)
        });
        Ok(())
    }
}

/// Asks a person at the terminal.
fn agreed(question: &str) -> Result<bool, CliError> {
    eprint!("{} [y/N] ", screen::plain(question));
    let _ = std::io::stderr().flush();
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).map_err(|e| CliError::Other(e.to_string()))?;
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
}

fn table(list: &AskList) -> String {
    let rows = list.asks.iter().map(|ask| {
        vec![
            name(ask).to_string(),
            ask.state.as_str().to_owned(),
            ask.from.to_string(),
            words::minute(ask.until),
            format!("\"{}\"", ask.ask.purpose),
        ]
    });
    output::table(&["request", "state", "from", "waits until", "they say"], rows)
}

/// By what whoever asks knows it, too.
fn name(ask: &AskInfo) -> AskId {
    ask.requests.first().copied().unwrap_or(ask.task)
}

/// What a draft allows, line by line.
fn terms(draft: &GrantDraft) -> String {
    let lines =
        words::terms(draft).into_iter().map(|(name, value)| format!("{name:<9} {}", screen::line(&value)));
    let ends =
        format!("{:<9} {}, at most {} items", "Until", words::minute(draft.expires_at), draft.max_items);
    lines.chain([ends]).collect::<Vec<_>>().join("\n")
}

fn shown(ask: &AskInfo) -> String {
    let known =
        if ask.known { "You have written to them before." } else { "You never wrote to them before." };
    let mut text = format!("{}\nFrom {}, who signed it. {known}\n", name(ask), ask.from);
    let further: Vec<String> = ask.requests.iter().skip(1).map(ToString::to_string).collect();
    if !further.is_empty() {
        text.push_str(&format!("They asked it again, as {}.\n", further.join(", ")));
    }
    text.push_str(&format!("Its id here is {}.\n", ask.task));
    text.push_str(&match ask.state {
        AskState::Pending => format!("It waits until {}.\n", words::minute(ask.until)),
        state => format!("It is {}.\n", state.as_str()),
    });
    if let Some(grant) = ask.grant {
        text.push_str(&format!("The grant: {grant}\n"));
    }
    text.push_str(&format!("\nThey say: \"{}\"\n\n", screen::line(ask.ask.purpose.as_str())));
    text.push_str(&terms(&ask.proposal));
    if ask.ask.trust_level.is_none() {
        text.push_str("\nThey ask for no trust level: `grant approve` takes 0 unless you say --trust-level.");
    }
    text
}
