//! `oap-memory who`

use super::{CliError, Global, ids, output, values};
use crate::service::prefix::ItemPrefix;
use oap_identity::Did;
use serde_json::{Value, json};

/// Show what somebody was granted, and everything that they were ever shown
#[derive(clap::Args)]
#[command(after_help = "Examples:
  oap-memory who did:web:contractor.example
  oap-memory who did:web:contractor.example --limit 200 --json

It reads the grants and the receipts. Refusals are counted as the receipts tell them: of more than 30 in a minute, 30.")]
pub(super) struct Who {
    /// The grantee
    #[arg(value_parser = values::grantee)]
    did: Did,
    /// Only items older than this one
    #[arg(long, value_name = "ID")]
    before: Option<ItemPrefix>,
    /// At most so many items, and so many grants
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
}

impl Who {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        let did = &self.did;
        let mut owner = global.owner().await?;
        let mut body = json!({"did": did, "limit": self.limit});
        if let Some(before) = &self.before {
            body["before"] = json!(ids::one(&owner, before).await?);
        }
        let answer = owner.call("POST", "/oap/owner/who", &[], Some(&body)).await;
        let answer = answer.map_err(|error| match error {
            error if error.is_gone() => {
                CliError::Other(format!("{did}: no grant to them, and they never asked"))
            }
            error => error.into(),
        })?;
        output::print(global.json, &answer, people);
        Ok(())
    }
}

fn people(answer: &Value) -> String {
    let list = |member: &str| answer[member].as_array().cloned().unwrap_or_default();
    let number = |member: &str| answer[member].as_u64().unwrap_or(0);
    let mut text = String::new();
    let grants = list("grants");
    if grants.is_empty() {
        text.push_str("no grant\n");
    } else {
        let rows = grants.iter().map(|grant| {
            let members = ["/grant_id", "/state", "/expires_at", "/trust_level", "/disclosed", "/purpose"];
            members.map(|member| output::text(grant, member)).to_vec()
        });
        text.push_str(&output::table(&["grant", "state", "until", "level", "shown", "purpose"], rows));
        let rest = number("grants_count").saturating_sub(grants.len() as u64);
        if rest > 0 {
            text.push_str(&format!("\nand {rest} more"));
        }
        text.push('\n');
    }
    text.push_str(&format!("\n{} item(s) shown in {} queries", number("shown_count"), number("queries")));
    if let Some(last) = answer["last_query"].as_object() {
        let at = last.get("at").and_then(Value::as_str).unwrap_or_default();
        text.push_str(&format!(", the last at {at}"));
    }
    text.push_str(&format!("; {} refusal(s)\n", number("refusals")));
    let shown = list("shown");
    if !shown.is_empty() {
        let rows = shown.iter().map(|item| {
            let gist = match item["status"].as_str() {
                Some("erased") => "(erased)".to_owned(),
                _ => output::short(&output::text(item, "/gist"), 40),
            };
            vec![
                output::text(item, "/item_id"),
                output::text(item, "/times"),
                output::text(item, "/first"),
                output::text(item, "/last"),
                seen_at(item),
                gist,
            ]
        });
        text.push_str(&output::table(&["item", "times", "first", "last", "level", "content"], rows));
    }
    if let Some(next) = answer["next"].as_str() {
        text.push_str(&format!("\nmore: --before {next}"));
    }
    if answer["complete"] == false {
        text.push_str(&format!("\nonly the newest {} receipts were looked at", number("receipts")));
    }
    text
}

/// At which level by which profile, such as `2 memory.v1`.
pub(super) fn seen_at(item: &Value) -> String {
    let seen = item["seen_at"].as_array().cloned().unwrap_or_default();
    let one = |seen: &Value| {
        let profile = output::text(seen, "/profile");
        let short = profile.strip_prefix(oap_memory::profile::NAME_PREFIX).unwrap_or(&profile);
        format!("{} {short}", output::text(seen, "/level"))
    };
    seen.iter().map(one).collect::<Vec<_>>().join(", ")
}
