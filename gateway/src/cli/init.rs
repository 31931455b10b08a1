//! `oap-memory init`

use super::{CliError, Global, output, values};
use crate::system::address::{Origin, is_loopback};
use crate::system::home;
use oap_identity::Did;
use serde_json::json;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// Make a gateway: keys, vault, store, configuration, credential
#[derive(clap::Args)]
#[command(after_help = "Examples:
  oap-memory init --did did:web:memory.example.org --key-file /etc/oap/master.key
  oap-memory init --did did:web:localhost%3A8443 --key-file ./master.key
  oap-memory init --did did:key

Without --key-file a passphrase is asked for, or taken from OAP_MEMORY_PASSPHRASE.
Keep the key file apart from the gateway's folder: whoever has both can read everything.")]
pub(super) struct Init {
    /// The principal's DID: did:web:HOST, did:web:HOST%3APORT, or did:key for a fresh one
    #[arg(long, value_name = "DID", value_parser = principal)]
    did: Principal,
    /// Make (or use) this file for the vault's master key, for unattended start
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Where the gateway listens; at the port of a did:web:localhost%3APORT if absent
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Where it is reached from outside; derived from a did:web if absent
    #[arg(long, value_name = "URL")]
    origin: Option<Origin>,
    /// The publisher's name in the manifest
    #[arg(long, value_name = "NAME")]
    publisher: Option<String>,
    /// Where to complain, for the manifest
    #[arg(long, value_name = "EMAIL")]
    contact_email: Option<String>,
    /// ISO 3166 country code, for the manifest
    #[arg(long, value_name = "CODE")]
    jurisdiction: Option<String>,
}

/// Who the principal is to be.
#[derive(Clone)]
enum Principal {
    /// A fresh did:key.
    Fresh,
    /// A did:web.
    Web(Did),
}

/// Why a text is nobody that a gateway can be made for.
#[derive(Debug, thiserror::Error)]
enum PrincipalError {
    /// Not a DID of a method that works here.
    #[error(transparent)]
    Did(#[from] values::ValueError),
    /// A DID that cannot be published.
    #[error("must be did:web:HOST, or did:key for a fresh key")]
    Method,
}

fn principal(text: &str) -> Result<Principal, PrincipalError> {
    if text == "did:key" {
        return Ok(Principal::Fresh);
    }
    let did = values::grantee(text)?;
    match did.method() {
        "web" => Ok(Principal::Web(did)),
        _ => Err(PrincipalError::Method),
    }
}

/// Where a did:web of this machine's own name, with a port, is reached.
fn own_port(did: &Did) -> Option<SocketAddr> {
    let url = did.document_url().filter(is_loopback)?;
    Some(SocketAddr::from((Ipv4Addr::LOCALHOST, url.port()?)))
}

impl Init {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        let did = match self.did {
            Principal::Fresh => None,
            Principal::Web(did) => Some(did),
        };
        let mut settings = global.flags();
        let mut set = |name: &str, value: Option<serde_json::Value>| {
            if let Some(value) = value {
                settings.insert(name.to_owned(), value);
            }
        };
        // One that is reached at this machine's own name listens where it is reached, unless somebody says otherwise.
        let listen = self.listen.or_else(|| did.as_ref().and_then(own_port));
        set("listen", listen.map(|v| json!(v)));
        set("origin", self.origin.map(|v| json!(v)));
        set("publisher", self.publisher.map(|v| json!(v)));
        set("contact_email", self.contact_email.map(|v| json!(v)));
        set("jurisdiction", self.jurisdiction.map(|v| json!(v)));
        let home = global.home();
        let did = home.init(home::Init { did, settings, key_file: self.key_file }).await?;
        let done = json!({
            "did": did,
            "home": home.path(),
            "did_document": home.file("did.json"),
            "credential": home.file("admin.json"),
        });
        output::print(global.json, &done, |_| {
            format!(
                "{did}\n  home        {}\n  credential  {} (keep it to yourself)\nNext: oap-memory serve",
                home.path().display(),
                home.file("admin.json").display()
            )
        });
        Ok(())
    }
}
