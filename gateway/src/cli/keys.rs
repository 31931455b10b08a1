//! `oap-memory keys`

use super::when::{self, When};
use super::{CliError, Global, output};
use crate::client::owner::OwnerClient;
use serde_json::{Value, json};

/// List, rotate and revoke signing keys
#[derive(clap::Subcommand)]
#[command(after_help = "Examples:
  oap-memory keys list
  oap-memory keys rotate
  oap-memory keys revoke key-1 --since 2026-05-01T00:00:00Z

Rotation keeps what the old key signed valid. Revocation is for a key that somebody else has: every grant that it
signed is void at once, and whatever else it signed since then does not count. What this home wrote in that time is
signed anew with the new key, so that grantees see it again; `keys reseal` does what is left of that after an
interruption. What came from elsewhere stays held back: `doctor` lists it. Both end the administrator's token; this
home gets a new one.")]
pub(super) enum Keys {
    /// List keys, newest first
    List,
    /// Put a new signing key into use
    Rotate,
    /// Mark a key as compromised
    Revoke {
        /// The key: its fragment, such as key-1
        key: String,
        /// Since when it is not to be trusted; now if absent
        #[arg(long, value_name = "TIME")]
        since: Option<When>,
    },
    /// Sign anew what a compromised key signed too late
    Reseal,
}

impl Keys {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        let mut owner = global.owner().await?;
        let revokes = matches!(self, Self::Revoke { .. });
        let mut answer = match self {
            Self::Reseal => {
                let done = reseal(&mut owner).await?;
                output::print(global.json, &done, resealed);
                return Ok(());
            }
            Self::List => owner.call("GET", "/oap/owner/keys", &[], None).await?,
            Self::Rotate => owner.call("POST", "/oap/owner/keys/rotate", &[], Some(&json!({}))).await?,
            Self::Revoke { key, since } => {
                let body = since.map_or(json!({}), |since| json!({"since": since.since(when::now())}));
                let key = key.trim_start_matches('#').to_owned();
                owner.call("POST", &format!("/oap/owner/keys/{key}/revoke"), &[], Some(&body)).await?
            }
        };
        // The new token went into the home; it is nobody's to read here.
        if let Some(members) = answer.as_object_mut() {
            members.remove("trust_token");
        }
        if revokes {
            answer["resealed"] = reseal(&mut owner).await?;
        }
        output::print(global.json, &answer, |answer| {
            let mut text = table(answer);
            if revokes {
                text = format!("{text}\n{}", resealed(&answer["resealed"]));
            }
            text
        });
        Ok(())
    }
}

/// Steps after which a job says how far it is.
const STEP: usize = 500;

/// Signs anew what is the owner's still: receipts first, then item by item. Doing it again does what is left.
async fn reseal(owner: &mut OwnerClient) -> Result<Value, CliError> {
    let held = owner.call("GET", "/oap/owner/keys/held-back", &[], None).await?;
    let (mut receipts, mut from) = (0, json!({}));
    loop {
        let answer = owner.call("POST", "/oap/owner/keys/receipts", &[], Some(&from)).await?;
        let signed = answer["signed"].as_u64().unwrap_or(0);
        receipts += signed;
        if signed > 0 {
            eprintln!("{receipts} receipts signed anew");
        }
        if answer["next"].is_null() {
            break;
        }
        from = json!({"from": answer["next"]});
    }
    let items = held["items"].as_array().cloned().unwrap_or_default();
    let (mut resealed, mut left) = (0, Vec::new());
    for item in &items {
        let body = json!({"item": item, "at": held["at"]});
        match owner.call("POST", "/oap/owner/keys/reseal", &[], Some(&body)).await {
            Ok(answer) => resealed += usize::from(!answer["resealed"].is_null()),
            // Erased meanwhile, or not written here.
            Err(error) if error.is_gone() => left.push(item.clone()),
            Err(error) => return Err(error.into()),
        }
        if resealed % STEP == 0 && resealed > 0 {
            eprintln!("{resealed} of {} items resealed", items.len());
        }
    }
    Ok(json!({"receipts": receipts, "items": resealed, "left": left}))
}

fn resealed(done: &Value) -> String {
    let count = |member: &str| done[member].as_u64().unwrap_or(0);
    let left = done["left"].as_array().map_or(0, Vec::len);
    let mut text = format!("{} items resealed, {} receipts signed anew", count("items"), count("receipts"));
    if left > 0 {
        text.push_str(&format!("; {left} held back still: `oap-memory doctor` says which"));
    }
    text
}

fn table(answer: &Value) -> String {
    let keys = answer["keys"].as_array().cloned().unwrap_or_default();
    let rows = keys.iter().map(|key| {
        ["/kid", "/state", "/created_at", "/retired_at", "/revoked_at"]
            .iter()
            .map(|pointer| output::text(key, pointer))
            .collect()
    });
    output::table(&["key", "state", "made", "retired", "compromised since"], rows)
}
