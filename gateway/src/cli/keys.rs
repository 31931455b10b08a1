//! `oap-memory keys`

use super::when::{self, When};
use super::{CliError, Global, output};
use serde_json::{Value, json};

/// List, rotate and revoke signing keys
#[derive(clap::Subcommand)]
#[command(after_help = "Examples:
  oap-memory keys list
  oap-memory keys rotate
  oap-memory keys revoke key-1 --since 2026-05-01T00:00:00Z

Rotation keeps what the old key signed valid. Revocation is for a key that somebody else has: every grant that it
signed is void at once, and whatever else it signed since then does not count. Both end the administrator's token;
this home gets a new one.")]
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
}

impl Keys {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        let mut owner = global.owner().await?;
        let mut answer = match self {
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
        output::print(global.json, &answer, table);
        Ok(())
    }
}

pub(super) fn table(answer: &Value) -> String {
    let keys = answer["keys"].as_array().cloned().unwrap_or_default();
    let rows = keys.iter().map(|key| {
        let kid = output::text(key, "/kid");
        // The DID is this gateway's own, and `keys revoke` takes the fragment.
        let mut row = vec![kid.rsplit('#').next().unwrap_or_default().to_owned()];
        let members = ["/state", "/created_at", "/retired_at", "/revoked_at"];
        row.extend(members.map(|pointer| output::text(key, pointer)));
        row
    });
    output::table(&["key", "state", "made", "retired", "compromised"], rows)
}
