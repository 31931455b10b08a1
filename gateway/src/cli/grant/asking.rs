//! `oap-memory grant request` and `grant requests`: what is asked of others.

use super::filter::Selected;
use super::words;
use crate::api::access as api;
use crate::api::access::{AskState, AskedInfo, AskedList, LetterState, NewAsked};
use crate::cli::reference::AskRef;
use crate::cli::when::{self, When};
use crate::cli::{CliError, Global, output, screen, values};
use oap_federation::Ask;
use oap_federation::plain::Plain;
use oap_grants::Operation;
use oap_grants::grant::Delegable;
use oap_identity::Did;
use oap_memory::{Filter, TrustLevel};
use std::collections::BTreeSet;

/// What to ask for.
#[derive(clap::Args)]
pub(in crate::cli) struct Request {
    /// Whose memory: the DID of its principal
    #[arg(long, value_name = "DID", value_parser = values::grantee)]
    from: Did,
    /// What for, in words that its owner reads
    #[arg(long)]
    purpose: Plain,
    /// What for, in a code; may be given several times
    #[arg(long, value_name = "CODE", value_parser = values::purpose_code)]
    purpose_code: Vec<String>,
    #[command(flatten)]
    selected: Selected,
    /// Most distinct items ever disclosed
    #[arg(long, default_value_t = 500)]
    max_items: u32,
    /// Until when
    #[arg(long, value_name = "TIME")]
    until: When,
    /// The projection profile; its owner chooses if absent. The prefix oap.profile.projection. may be left out
    #[arg(long, value_parser = values::ProfileName)]
    profile: Option<String>,
    /// The trust level at most; its owner chooses if absent
    #[arg(long, value_name = "0..4", visible_alias = "level", value_parser = values::level())]
    trust_level: Option<TrustLevel>,
    /// Ask for exports too
    #[arg(long)]
    allow_export: bool,
    /// Ask to pass it on, so many times over
    #[arg(long, value_name = "1..5", value_parser = clap::value_parser!(u8).range(1..=5))]
    delegable: Option<u8>,
    /// Ask to be told of changes too
    #[arg(long)]
    allow_subscribe: bool,
}

impl Request {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        let mut filter = Filter::default();
        self.selected.narrow(&mut filter)?;
        let mut operations = BTreeSet::from([Operation::Query]);
        operations.extend(self.allow_export.then_some(Operation::Export));
        operations.extend(self.allow_subscribe.then_some(Operation::Subscribe));
        let ask = Ask {
            purpose: self.purpose,
            purpose_codes: self.purpose_code,
            filter,
            max_items: self.max_items,
            expires_at: self.until.ends(when::now()),
            redaction_profile: self.profile,
            trust_level: self.trust_level,
            operations,
            budget: None,
            delegable: self.delegable.map(|max_depth| Delegable { max_depth }),
        };
        let owner = global.owner().await?;
        let served = owner.is_served();
        let asked = owner.send::<api::RequestAccess>((), &NewAsked { from: self.from, ask }).await?;
        output::print(global.json, &asked, |asked| {
            let how = if served {
                "its letter is on the way"
            } else {
                "its letter waits: no gateway serves this home, and `serve` sends it"
            };
            format!("{} asked of {}; {how}\n`grant requests` says where it stands", asked.request, asked.to)
        });
        Ok(())
    }
}

/// What was asked of others
#[derive(clap::Args)]
pub(in crate::cli) struct Requests {
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(clap::Subcommand)]
enum What {
    /// List what was asked, newest first
    List,
    /// Show a request, and where it stands
    Show {
        /// The request, or the beginning of its id
        id: AskRef,
    },
    /// Ask the granter's gateway once more; it answers with the grant where there is one
    Again {
        /// The request, or the beginning of its id
        id: AskRef,
    },
    /// Take a request back
    Withdraw {
        /// The request, or the beginning of its id
        id: AskRef,
    },
}

impl Requests {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        let owner = global.owner().await?;
        match self.what.unwrap_or(What::List) {
            What::List => {
                let list = owner.get::<api::ListAsked>((), &()).await?;
                output::print(global.json, &list, table);
            }
            What::Show { id } => {
                let id = id.resolve_asked(&owner).await?;
                let asked = owner.get::<api::ShowAsked>(id, &()).await?;
                output::print(global.json, &asked, shown);
            }
            What::Again { id } => {
                let id = id.resolve_asked(&owner).await?;
                let asked = owner.send::<api::AskAgain>(id, &()).await?;
                output::print(global.json, &asked, |asked| format!("{} is asked again", asked.request));
            }
            What::Withdraw { id } => {
                let id = id.resolve_asked(&owner).await?;
                let asked = owner.send::<api::WithdrawAsked>(id, &()).await?;
                output::print(global.json, &asked, |asked| {
                    format!("{} withdrawn; {} is told", asked.request, asked.to)
                });
            }
        }
        Ok(())
    }
}

fn table(list: &AskedList) -> String {
    let rows = list.asked.iter().map(|asked| {
        vec![
            asked.request.to_string(),
            stands(asked),
            asked.to.to_string(),
            words::minute(asked.made_at),
            asked.ask.purpose.to_string(),
        ]
    });
    output::table(&["request", "state", "asked of", "made", "purpose"], rows)
}

/// Its state; of one that its granter's gateway does not know of yet, why.
fn stands(asked: &AskedInfo) -> String {
    match (asked.state, asked.heard_at, asked.letter, asked.failure) {
        (AskState::Pending, None, Some(LetterState::GivenUp), _) => "never arrived".to_owned(),
        (AskState::Pending, None, _, Some(failure)) => format!("on the way ({})", failure.as_str()),
        (AskState::Pending, None, ..) => "on the way".to_owned(),
        (state, ..) => state.as_str().to_owned(),
    }
}

fn shown(asked: &AskedInfo) -> String {
    let mut text = format!("{}\nAsked of {} on {}.\n", asked.request, asked.to, words::minute(asked.made_at));
    text.push_str(&match asked.state {
        AskState::Pending if asked.heard_at.is_some() => "It waits for its granter.".to_owned(),
        AskState::Pending => match (asked.letter, asked.failure) {
            (Some(LetterState::GivenUp), _) => "It never arrived, and is not sent again.".to_owned(),
            (_, Some(failure)) => format!("It did not arrive yet: {}. It is sent again.", failure.as_str()),
            (_, None) => "It did not arrive yet.".to_owned(),
        },
        state => format!("It is {}.", state.as_str()),
    });
    // A stranger's words, on one line and in quotes.
    if let Some(word) = &asked.word {
        text.push_str(&format!("\nThey say: \"{}\"", screen::line(word.as_str())));
    }
    if let Some(grant) = asked.grant {
        text.push_str(&format!("\nThe grant: `grant received show {}`", &grant.to_string()[7..19]));
    }
    text.push_str(&format!("\n\nFor       \"{}\"", screen::line(asked.ask.purpose.as_str())));
    text.push_str(&format!("\nItems     {}", words::selected_by(&asked.ask.filter)));
    text.push_str(&format!("\nAt most   {}", asked.ask.max_items));
    text.push_str(&format!("\nUntil     {}", words::minute(asked.ask.expires_at)));
    if let Some(Delegable { max_depth }) = asked.ask.delegable {
        text.push_str(&format!("\nAnd       to pass it on, {max_depth} deep"));
    }
    text
}
