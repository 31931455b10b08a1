//! `oap-memory keys`, `oap-memory key`

use super::when::{self, When};
use super::{CliError, Global, output};
use crate::ambient::SystemRandom;
use crate::client::keyfile;
use oap_identity::{Did, VerificationKey, document};
use serde_json::{Value, json};
use std::path::PathBuf;

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

/// Make a key to ask with, without a gateway
#[derive(clap::Subcommand)]
#[command(after_help = "Examples:
  oap-memory key new --out my.key
  oap-memory key new --out web.key --did did:web:contractor.example > did.json
  oap-memory query --key my.key --grant grant.json \"preferred meeting times\"

Tell the DID to whoever gives you a grant. Whoever has the file can ask in your name: keep it to yourself.")]
pub(super) enum Key {
    /// Make a key; prints its DID, or the DID document to publish
    #[command(after_help = "Examples:
  oap-memory key new --out my.key
  oap-memory key new --out web.key --did did:web:contractor.example > did.json

The file is a private JWK, for its owner alone (0600); one that is there is never overwritten. A did:web counts once
its document, which is printed, is at the address that the command says.")]
    New {
        /// The file for the key
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
        /// did:key for one that is its own DID, or a did:web whose document you can publish
        #[arg(long, value_name = "DID", default_value = "did:key")]
        did: String,
    },
}

impl Key {
    pub(super) fn run(self, global: &Global) -> Result<(), CliError> {
        let Self::New { out, did } = self;
        let usage = |e: String| CliError::Usage(format!("--did: {e}"));
        let did: Option<Did> = match did.as_str() {
            "did:key" => None,
            text => Some(text.parse().map_err(|e: oap_identity::did::DidError| usage(e.to_string()))?),
        };
        let signer = keyfile::create(&out, did.as_ref(), &SystemRandom).map_err(|e| match e {
            keyfile::KeyFileError::Method => usage(e.to_string()),
            e => CliError::File(out.clone(), e.to_string()),
        })?;
        let key = VerificationKey::new(signer.kid().clone(), *signer.public());
        let document = document::of_keys(signer.did(), &[key]);
        let made = json!({"did": signer.did(), "kid": signer.kid(), "file": out, "document": document});
        output::print(global.json, &made, |made| match did {
            None => output::text(made, "/did"),
            Some(_) => output::pretty(&made["document"]),
        });
        if let (false, Some(url)) = (global.json, signer.did().document_url()) {
            eprintln!("publish this document at {url}");
        }
        Ok(())
    }
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
