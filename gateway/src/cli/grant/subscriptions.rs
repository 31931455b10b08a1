//! `oap-memory grant subscribe`, `unsubscribe`, `subscriptions`: being told what becomes of a view, and who is.

use super::received::ReceivedRef;
use super::words;
use crate::api::subscriptions as api;
use crate::api::subscriptions::{
    GivenSubscription, HeldSubscription, Subscribing, SubscriptionEnd, SubscriptionList,
};
use crate::cli::when::Span;
use crate::cli::{CliError, Global, output};
use oap_client::{ClientError, OwnerClient};
use oap_identity::{Hash, SubscriptionId, Timestamp};

/// How to subscribe
#[derive(clap::Args)]
pub(in crate::cli) struct Subscribe {
    /// A grant of `grant received`: the beginning of its id or of its hash
    grant: ReceivedRef,
    /// How often changes are pushed, from 10s to 1d
    #[arg(long, value_name = "TIME", default_value = "5m")]
    every: Span,
}

impl Subscribe {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        let owner = global.owner().await?;
        let hash = self.grant.resolve(&owner).await?;
        // What is too long is out of its bounds, too.
        let window = u32::try_from(self.every.0.as_secs()).unwrap_or(u32::MAX);
        let held = owner.send::<api::Subscribe>(hash, &Subscribing { window }).await?;
        output::print(global.json, &held, |held| {
            let made = if held.begun_at.is_some() { "made" } else { "asked for" };
            format!(
                "{} {made}: {} tells this gateway every {} s what becomes of what it shows",
                held.subscription, held.granter, held.window
            )
        });
        Ok(())
    }
}

/// Which one to end
#[derive(clap::Args)]
pub(in crate::cli) struct Unsubscribe {
    /// The subscription, sub_…
    subscription: SubscriptionId,
}

impl Unsubscribe {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        let owner = global.owner().await?;
        let end = owner.send::<api::EndSubscription>(self.subscription, &()).await;
        let end = end.map_err(|error| match error {
            ClientError::Refused { status: 404, .. } => CliError::Other(format!(
                "no subscription of this id: {}; `oap-memory grant subscriptions` shows them",
                self.subscription
            )),
            error => error.into(),
        })?;
        output::print(global.json, &end, |SubscriptionEnd { subscription, told }| {
            format!("{subscription} is over{}", if *told { ", and its granter knows" } else { "" })
        });
        Ok(())
    }
}

pub(super) async fn list(global: &Global) -> Result<(), CliError> {
    let list = global.owner().await?.get::<api::ListSubscriptions>((), &()).await?;
    output::print(global.json, &list, tables);
    Ok(())
}

/// What `grant show` says of the subscriptions of a grant; nothing where there is none.
pub(super) async fn of_grant(owner: &OwnerClient, grant: Hash) -> Result<String, CliError> {
    let SubscriptionList { mut given, .. } = owner.get::<api::ListSubscriptions>((), &()).await?;
    given.retain(|info| info.grant == grant);
    if given.is_empty() {
        return Ok(String::new());
    }
    Ok(format!("\n\nSubscriptions, which `grant unsubscribe` ends:\n{}", given_table(&given)))
}

fn tables(list: &SubscriptionList) -> String {
    let own = list.held.iter().map(|info: &HeldSubscription| {
        vec![
            info.subscription.to_string(),
            match (info.ended_at, info.ended_by, info.begun_at) {
                (Some(_), Some(by), _) => format!("over ({})", by.as_str()),
                (Some(_), None, _) => "over".to_owned(),
                (None, _, Some(_)) => "live".to_owned(),
                (None, _, None) => "asked for".to_owned(),
            },
            info.granter.to_string(),
            format!("{} s", info.window),
            info.came.to_string(),
            info.changed.to_string(),
            info.left.to_string(),
            at(info.heard_at),
        ]
    });
    let own =
        output::table(&["yours", "state", "granter", "every", "came", "changed", "left", "last heard"], own);
    format!("{own}\n\n{}", given_table(&list.given))
}

fn given_table(given: &[GivenSubscription]) -> String {
    let rows = given.iter().map(|info| {
        let state = match (info.ended_by, info.failure) {
            (Some(by), _) => format!("over ({})", by.as_str()),
            (None, Some(failure)) => format!("waits ({})", failure.as_str()),
            (None, None) => "live".to_owned(),
        };
        vec![
            info.subscription.to_string(),
            state,
            info.grant_id.to_string(),
            info.grantee.to_string(),
            format!("{} s", info.window),
            if info.url.is_some() { "pushed" } else { "read" }.to_owned(),
            info.sequence.to_string(),
            at(info.acknowledged_at),
        ]
    });
    output::table(&["theirs", "state", "grant", "grantee", "every", "how", "number", "last taken"], rows)
}

fn at(time: Option<Timestamp>) -> String {
    time.map_or_else(|| "never".to_owned(), words::minute)
}
