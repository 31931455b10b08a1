//! `oap-memory policy`: what your agents may write, for how long, and how it is believed.

use super::agent::named;
use super::names::Names;
use super::{CliError, Global, output, values};
use crate::api::agents as agents_api;
use crate::api::agents::AgentRef;
use crate::api::policy as api;
use crate::api::policy::{Change, Rule};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use oap_client::OwnerClient;
use oap_memory::item::{Confidence, MAX_TTL_DAYS};
use oap_soundness::kept::{MAX_PERIOD, Policy as Whole};
use oap_soundness::policy::Observation;
use oap_soundness::trust::Decay;
use std::fmt::Write;

/// What names no sort of observation, as flags have it.
const UNTYPED: &str = "untyped";

/// See and set what your agents may write, for how long it is kept, and how it is believed
#[derive(clap::Subcommand)]
#[command(after_help = "Examples:
  oap-memory policy show
  oap-memory policy set session_summary --days 14
  oap-memory policy set failed_tool_call --keep --days 2
  oap-memory policy set tool_result_verified --agent scout
  oap-memory policy set untyped --drop
  oap-memory policy decay --step 0.05 --hours 24 --least 0.3
  oap-memory policy decay --off

What an agent learns may have a type; what the policy does not keep is refused, and a type that nobody knows is. What was
written before keeps its end. What an agent concluded and you did not confirm is believed less from day to day, and no agent
is given it once it is less sure than the least; you still see it (`item list`), and it is never changed.")]
pub(super) enum Policy {
    /// Show every rule
    Show,
    /// Set the rule of a type; what is not named stays
    Set {
        /// The type, or untyped: what names none
        #[arg(value_name = "TYPE", value_parser = sort())]
        sort: Sort,
        #[command(flatten)]
        change: RuleChange,
    },
    /// Set how what your agents concluded decays; what is not named stays
    Decay {
        /// How much confidence is lost each period, 0 to 1 in hundredths
        #[arg(long, value_name = "0..1", value_parser = values::confidence)]
        step: Option<Confidence>,
        /// How many hours a period has
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_PERIOD)))]
        hours: Option<u32>,
        /// What is less sure than that is given to no agent, 0 to 1 in hundredths
        #[arg(long, value_name = "0..1", value_parser = values::confidence)]
        least: Option<Confidence>,
        /// Nothing decays
        #[arg(long, conflicts_with_all = ["step", "hours", "least"])]
        off: bool,
    },
}

/// A sort of observation, or what names none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sort(Option<Observation>);

fn sort() -> impl TypedValueParser<Value = Sort> {
    let names = Observation::ALL.iter().map(|sort| sort.as_str()).chain([UNTYPED]);
    PossibleValuesParser::new(names).map(|text| Sort(text.parse().ok()))
}

/// What of a rule is set
#[derive(clap::Args)]
#[group(required = true, multiple = true)]
pub(super) struct RuleChange {
    /// It is kept
    #[arg(long, conflicts_with = "drop")]
    keep: bool,
    /// It is not kept
    #[arg(long)]
    drop: bool,
    /// After how many days it is erased where its writer does not say
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_TTL_DAYS)))]
    days: Option<u32>,
    /// It is never erased by itself
    #[arg(long, conflicts_with = "days")]
    for_good: bool,
    /// The agent that may write it: its name, or its DID; may be given several times
    #[arg(long, value_name = "NAME")]
    agent: Vec<AgentRef>,
    /// Every agent with write may write it
    #[arg(long, conflicts_with = "agent")]
    any_agent: bool,
}

impl RuleChange {
    /// The rule, with what is set in the place of what was.
    async fn of(self, owner: &OwnerClient, before: Rule) -> Result<Rule, CliError> {
        let mut rule = before;
        rule.kept = (rule.kept || self.keep) && !self.drop;
        if self.for_good || self.days.is_some() {
            rule.ttl_days = self.days;
        }
        if self.any_agent {
            rule.agents = None;
        }
        if !self.agent.is_empty() {
            let mut agents = Vec::with_capacity(self.agent.len());
            for agent in self.agent {
                let shown = owner.get::<agents_api::ShowAgent>(agent.clone(), &()).await;
                agents.push(shown.map_err(named(&agent))?.did);
            }
            rule.agents = Some(agents);
        }
        Ok(rule)
    }
}

/// What a rule counts in; a finer number is refused, for rounded to nothing it would end all decay.
fn hundredths(flag: &str, confidence: Confidence) -> Result<u32, CliError> {
    let exact = confidence.get() * 100.0;
    if (exact - exact.round()).abs() > 1e-6 {
        return Err(CliError::Usage(format!("{flag}: must be whole hundredths, such as 0.05")));
    }
    // 0 to 1, as its type says.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 100")]
    let counted = exact.round() as u32;
    Ok(counted)
}

impl Policy {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        let owner = global.owner().await?;
        let before = owner.get::<api::ShowPolicy>((), &()).await?;
        let change = match self {
            Self::Show => {
                return told(global, &owner, &before).await;
            }
            Self::Set { sort: Sort(sort), change } => {
                let rule = change.of(&owner, before.rule(sort)).await?;
                match sort {
                    Some(sort) => Change { types: [(sort, rule)].into(), ..Change::default() },
                    None => Change { untyped: Some(rule), ..Change::default() },
                }
            }
            Self::Decay { off: true, .. } => Change { decay: Some(Decay::NONE), ..Change::default() },
            Self::Decay { step: None, hours: None, least: None, off: false } => {
                return Err(CliError::Usage("name what to set: --step, --hours, --least, --off".to_owned()));
            }
            Self::Decay { step, hours, least, off: false } => {
                // What was off begins as it usually is.
                let is_off = before.decay.period_hours == 0;
                let from = if is_off { Decay::default() } else { before.decay };
                let decay = Decay {
                    step: step.map_or(Ok(from.step), |step| hundredths("--step", step))?,
                    period_hours: hours.unwrap_or(from.period_hours),
                    least: least.map_or(Ok(from.least), |least| hundredths("--least", least))?,
                };
                Change { decay: Some(decay), ..Change::default() }
            }
        };
        let policy = owner.send::<api::SetPolicy>((), &change).await?;
        told(global, &owner, &policy).await
    }
}

/// Prints the rules; for people, with the names of the agents that they name.
async fn told(global: &Global, owner: &OwnerClient, policy: &Whole) -> Result<(), CliError> {
    let names_some = policy.types.values().chain(&policy.untyped).any(|rule| rule.agents.is_some());
    let names = if names_some && !global.json { Names::of(owner).await? } else { Names::default() };
    output::print(global.json, policy, |policy| people(policy, &names));
    Ok(())
}

fn people(policy: &Whole, names: &Names) -> String {
    let sorts = Observation::ALL.iter().copied().map(Some).chain([None]);
    let rows = sorts.map(|sort| {
        let rule = policy.rule(sort);
        let agents = match &rule.agents {
            None => "any".to_owned(),
            Some(agents) if agents.is_empty() => "none".to_owned(),
            Some(agents) => agents.iter().map(|did| names.who(did)).collect::<Vec<_>>().join(", "),
        };
        vec![
            sort.map_or(UNTYPED, Observation::as_str).to_owned(),
            if rule.kept { "kept" } else { "refused" }.to_owned(),
            match rule.ttl_days {
                _ if !rule.kept => "-".to_owned(),
                None => "for good".to_owned(),
                Some(days) => format!("{days} days"),
            },
            agents,
        ]
    });
    let mut text = output::table(&["type", "is", "for", "agents"], rows);
    let Decay { step, period_hours, least } = policy.decay;
    let of = |hundredths: u32| f64::from(hundredths) / 100.0;
    let _ = match period_hours {
        0 => write!(text, "\n\nNothing decays."),
        _ => write!(
            text,
            "\n\nWhat an agent concluded and you did not confirm loses {} every {period_hours} hours; below {} no agent is given it.",
            of(step),
            of(least)
        ),
    };
    text
}
