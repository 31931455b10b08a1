//! `oap-memory keys`, `oap-memory key`

use super::when::{self, When};
use super::{CliError, Global, output};
use crate::client::keyfile;
use crate::client::owner::OwnerClient;
use crate::system::clock::SystemRandom;
use oap_identity::{Did, VerificationKey, document};
use serde_json::{Value, json};
use std::path::PathBuf;

/// List, rotate and revoke signing keys
#[derive(clap::Subcommand)]
#[command(after_help = "Examples:
  oap-memory keys list
  oap-memory keys rotate
  oap-memory keys revoke key-1 --since 2026-05-01T00:00:00Z
  oap-memory keys reseal

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
