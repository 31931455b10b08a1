//! `oap-memory keys`, `oap-memory key`

use super::job::follow;
use super::when::{self, When};
use super::{CliError, Global, job, output, values};
use crate::api::Endpoint;
use crate::api::jobs::JobRequest;
use crate::api::keys as api;
use crate::api::keys::{ChangedKeys, Compromise, KeyName, SignedAgain};
use crate::client::HomeClient;
use crate::state::keyring::KeyInfo;
use crate::system::clock::SystemRandom;
use oap_client::OwnerClient;
use oap_client::keyfile;
use oap_identity::{VerificationKey, document};
use serde::Serialize;
use serde_json::json;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;

/// List, rotate and revoke signing keys
#[derive(clap::Subcommand)]
#[command(after_help = "Examples:
  oap-memory keys list
  oap-memory keys rotate
  oap-memory keys revoke key-1 --since 2026-05-01T00:00:00Z --yes
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
        key: KeyName,
        /// Since when it is not to be trusted; now if absent
        #[arg(long, value_name = "TIME")]
        since: Option<When>,
        /// Do not ask; where there is no terminal to ask on, nobody is asked anyway
        #[arg(long)]
        yes: bool,
    },
    /// Sign anew what a compromised key signed too late
    Reseal,
}

impl Keys {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        let mut owner = global.owner().await?;
        let (keys, resealed) = match self {
            Self::Reseal => {
                output::print(global.json, &reseal(&owner, global.json).await?, text);
                return Ok(());
            }
            Self::List => (owner.get::<api::ListKeys>((), &()).await?.keys, None),
            Self::Rotate => (change::<api::RotateKeys>(&mut owner, (), &()).await?, None),
            Self::Revoke { key, since, yes } => {
                if !yes && std::io::stdin().is_terminal() {
                    agreed(&key)?;
                }
                let since = since.map(|since| since.since(when::now()));
                let keys = change::<api::RevokeKey>(&mut owner, key, &Compromise { since }).await?;
                (keys, Some(reseal(&owner, global.json).await?))
            }
        };
        output::print(global.json, &Changed { keys, resealed }, |changed| {
            let table = table(&changed.keys);
            match &changed.resealed {
                Some(resealed) => format!("{table}\n{}", text(resealed)),
                None => table,
            }
        });
        Ok(())
    }
}

/// Asks a person at the terminal: a key that is revoked does not come back.
fn agreed(key: &KeyName) -> Result<(), CliError> {
    eprint!("Every grant that {key} signed is void at once, and {key} never counts again. Revoke it? [y/N] ");
    let _ = std::io::stderr().flush();
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).map_err(|e| CliError::Other(e.to_string()))?;
    match line.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(CliError::Other("nothing was revoked".to_owned())),
    }
}

/// Has an endpoint change the keys, and goes on with the token that takes the place of the one that ended.
async fn change<E: Endpoint<Query = (), Answer = ChangedKeys>>(
    owner: &mut HomeClient,
    place: E::Place,
    body: &E::Body,
) -> Result<Vec<KeyInfo>, CliError> {
    let ChangedKeys { keys, trust_token } = owner.send::<E>(place, body).await?;
    owner.renew(&trust_token);
    Ok(keys)
}

/// The keys, and what was signed anew. The new token went into the home; it is nobody's to read here.
#[derive(Serialize)]
struct Changed {
    keys: Vec<KeyInfo>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resealed: Option<SignedAgain>,
}

/// Signs anew what is the owner's still. Doing it again does what is left.
async fn reseal(owner: &OwnerClient, quiet: bool) -> Result<SignedAgain, CliError> {
    Ok(follow(owner, quiet, &JobRequest::Reseal {}, job::reseal).await?)
}

pub(super) fn text(done: &SignedAgain) -> String {
    let mut text = format!("{} items resealed, {} receipts signed anew", done.items, done.receipts);
    if done.held_back > 0 {
        let left = done.held_back;
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
        did: values::NewDid,
    },
}

impl Key {
    pub(super) fn run(self, global: &Global) -> Result<(), CliError> {
        let Self::New { out, did } = self;
        let usage = |e: String| CliError::Usage(format!("--did: {e}"));
        let did = did.did();
        let signer = keyfile::create(&out, did.as_ref(), &SystemRandom).map_err(|e| match e {
            keyfile::KeyFileError::Method => usage(e.to_string()),
            e => CliError::File(out.clone(), e.to_string()),
        })?;
        let key = VerificationKey::new(signer.kid().clone(), *signer.public());
        let document = document::of_keys(signer.did(), &[key]);
        let made = json!({"did": signer.did(), "kid": signer.kid(), "file": out, "document": document});
        output::print(global.json, &made, |_| match did {
            None => signer.did().to_string(),
            Some(_) => output::pretty(&document),
        });
        if let (false, Some(url)) = (global.json, signer.did().document_url()) {
            eprintln!("publish this document at {url}");
        }
        Ok(())
    }
}

pub(super) fn table(keys: &[KeyInfo]) -> String {
    let rows = keys.iter().map(|key| {
        // The DID is this gateway's own, and `keys revoke` takes the fragment.
        let name = key.kid.to_string().rsplit('#').next().unwrap_or_default().to_owned();
        let made = key.created_at.to_string();
        vec![
            name,
            key.state.to_string(),
            made,
            output::or_none(key.retired_at),
            output::or_none(key.revoked_at),
        ]
    });
    output::table(&["key", "state", "made", "retired", "compromised"], rows)
}
