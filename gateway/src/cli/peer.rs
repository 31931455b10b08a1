//! `oap-memory peer`: other principals' gateways whose keys and addresses are pinned.

use super::outbox::Outbox;
use super::{CliError, Global, output, screen};
use crate::api::peers as api;
use crate::api::peers::{
    AcceptedPeer, FoundAt, FoundPeer, Host, NewPeer, PeerChange, PeerInfo, PeerList, PeerName, PeerPapers,
    PeerRef, PeerState, Through,
};
use oap_client::ClientError;
use oap_identity::Did;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};

/// Other gateways: pin their keys and addresses, and see what changes
#[derive(clap::Subcommand)]
#[command(after_help = "Examples:
  oap-memory peer find contractor.example
  oap-memory peer add did:web:contractor.example
  oap-memory peer list
  oap-memory peer show did:web:contractor.example
  oap-memory peer check did:web:contractor.example
  oap-memory peer accept did:web:contractor.example
  oap-memory peer remove did:web:contractor.example
  oap-memory peer outbox
  oap-memory peer outbox --waiting

`add` takes a DID or a domain name. It reads what a gateway publishes, checks that it holds together, and pins its keys, its addresses and what it claims. Compare a
key's thumbprint with its owner where much depends on it: the first look trusts the host. From then on the gateway looks again when
the documents expire. A new key is taken over where a pinned key signed for it; a new address, a lowered claim and whatever nobody
signed for wait for your yes (`peer accept`). A peer has no access to anything: that is a grant's to give.")]
pub(super) enum Peer {
    /// See whose gateway is at a host, and pin nothing
    Find {
        /// Its domain name, with the port where that is not 443
        #[arg(value_name = "DOMAIN")]
        host: Host,
    },
    /// Pin a gateway
    Add {
        /// Its principal's DID, or the domain name that it is at
        #[arg(value_name = "DID|DOMAIN")]
        peer: PeerRef,
    },
    /// List peers and how they stand
    List,
    /// Show what is pinned of a peer, what changed, and what waits for you
    Show {
        /// Its DID
        did: Did,
    },
    /// Look at a peer now
    #[command(after_help = "Examples:
  oap-memory peer check did:web:contractor.example

Exit status: 0 it shows what is pinned, or a change that is signed for; 1 it did not answer; 4 what it shows does not hold, or waits for
your yes.")]
    Check {
        /// Its DID
        did: Did,
    },
    /// Say yes to what a peer shows now
    Accept {
        /// Its DID
        did: Did,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Forget a peer; grants stay as they are
    Remove {
        /// Its DID
        did: Did,
    },
    /// The letters to other gateways, and where each stands
    Outbox(Outbox),
}

impl Peer {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        let owner = global.owner().await?;
        match self {
            Self::Find { host } => {
                let found = owner.send::<api::FindPeer>((), &FoundAt { host }).await?;
                output::print(global.json, &found, found_text);
            }
            Self::Add { peer } => {
                let added = owner.send::<api::AddPeer>((), &NewPeer { peer }).await?;
                output::print(global.json, &added, |added| format!("pinned\n{}", papers(&added.pinned)));
            }
            Self::List => {
                let list = owner.get::<api::ListPeers>((), &()).await?;
                output::print(global.json, &list, table);
            }
            Self::Show { did } => {
                let name = PeerName { did: did.clone() };
                let shown = owner.send::<api::ShowPeer>((), &name).await.map_err(missing(&did))?;
                output::print(global.json, &shown, text);
            }
            Self::Check { did } => {
                let name = PeerName { did: did.clone() };
                let shown = owner.send::<api::CheckPeer>((), &name).await.map_err(missing(&did))?;
                output::print(global.json, &shown, text);
                found(&shown)?;
            }
            Self::Accept { did, yes } => {
                let name = PeerName { did: did.clone() };
                let shown = owner.send::<api::ShowPeer>((), &name).await.map_err(missing(&did))?;
                let Some(pending) = &shown.pending else {
                    output::print(global.json, &shown, |_| format!("{did}: nothing waits for your yes"));
                    return Ok(());
                };
                if !yes {
                    agreed(&question(&pending.changes))?;
                }
                let accepted = AcceptedPeer { did, seen: pending.seen };
                let pinned = owner.send::<api::AcceptPeer>((), &accepted).await?;
                output::print(global.json, &pinned, |pinned| format!("pinned\n{}", papers(&pinned.pinned)));
            }
            Self::Remove { did } => {
                let name = PeerName { did: did.clone() };
                let done = owner.send::<api::RemovePeer>((), &name).await.map_err(missing(&did))?;
                output::print(global.json, &done, |_| format!("{did} is no peer any more"));
            }
            Self::Outbox(outbox) => outbox.run(global, &owner).await?,
        }
        Ok(())
    }
}

/// Says that there is no such peer.
fn missing(did: &Did) -> impl Fn(ClientError) -> CliError {
    let did = did.clone();
    move |error| match error {
        ClientError::Refused { status: 404, .. } => {
            CliError::Other(format!("{did}: no peer of this DID; `oap-memory peer list` shows them"))
        }
        error => error.into(),
    }
}

/// That a look found a peer as it is to be; else why not, as the exit status.
fn found(peer: &PeerInfo) -> Result<(), CliError> {
    let did = &peer.pinned.did;
    match (peer.state, &peer.trouble) {
        (PeerState::Sound, _) => Ok(()),
        (_, Some(trouble)) if trouble.disbelieved => {
            Err(CliError::Proof(format!("what {did} shows; what is pinned stays")))
        }
        // What waits for a yes is from an earlier look.
        (_, Some(_)) => Err(CliError::Other(format!(
            "{did} could not be read; what is pinned stays, and it is asked again"
        ))),
        (_, None) => Err(CliError::Proof(format!(
            "{did} shows what nobody signed for; `oap-memory peer accept {did}` pins it"
        ))),
    }
}

/// What the owner is asked before the yes.
fn question(changes: &[PeerChange]) -> String {
    let mut text = String::new();
    for change in changes {
        let _ = writeln!(text, "  {}", line(change));
    }
    text.push_str("Ask the peer's owner by another way whether this is so. Pin it?");
    text
}

/// Asks for a yes.
fn agreed(question: &str) -> Result<(), CliError> {
    let question = screen::plain(question);
    if !std::io::stdin().is_terminal() {
        return Err(CliError::Usage(format!("{question}\nthere is no terminal to ask on: say --yes")));
    }
    eprint!("{question} [y/N] ");
    let _ = std::io::stderr().flush();
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).map_err(|e| CliError::Other(e.to_string()))?;
    if matches!(answer.trim(), "y" | "Y" | "yes") {
        return Ok(());
    }
    Err(CliError::Other("nothing was changed; what is pinned stays".to_owned()))
}

/// A change in one line. What it quotes of the peer is the peer's own word.
fn line(change: &PeerChange) -> String {
    let verdict = match &change.because {
        _ if change.asks => "asks you".to_owned(),
        Some(because) => format!("taken over: {because}"),
        None => "taken over".to_owned(),
    };
    screen::line(&format!("{} ({verdict})", change.says))
}

fn papers(papers: &PeerPapers) -> String {
    let mut text = format!("{}\nits gateway is at {}\n", papers.did, screen::line(&papers.origin));
    for key in &papers.keys {
        let state = match (key.revoked_at, key.retired_at) {
            (Some(at), _) => format!(", compromised since {at}"),
            (None, Some(at)) => format!(", retired {at}"),
            (None, None) => String::new(),
        };
        let _ = writeln!(text, "key {}: {}{state}", key.kid.fragment(), key.thumbprint);
    }
    for (name, url) in &papers.endpoints {
        let _ = writeln!(text, "{}: {}", screen::line(name), screen::line(url));
    }
    let claims: Vec<String> = papers.claims.iter().map(|claim| screen::line(claim)).collect();
    let claims = if claims.is_empty() { "nothing".to_owned() } else { claims.join(", ") };
    let _ = write!(text, "it claims: {claims} (its own word)\npublished: {}", papers.published_at);
    text
}

fn found_text(found: &FoundPeer) -> String {
    let through = match found.through {
        Through::AgentCard => "found through its signed agent card",
        Through::MemoryManifest => "found through its memory manifest",
    };
    let known = if found.is_peer {
        "; it is a peer already"
    } else {
        "; nothing is pinned yet: `oap-memory peer add`"
    };
    format!("{through}{known}\n{}", papers(&found.papers))
}

fn text(peer: &PeerInfo) -> String {
    let mut text = format!("{}\nstate: {}\n", papers(&peer.pinned), peer.state.as_str());
    let _ = writeln!(
        text,
        "added {}, last believed {}, next look {}",
        peer.added_at, peer.checked_at, peer.due_at
    );
    if let Some(trouble) = &peer.trouble {
        let _ = writeln!(text, "since {}: {}", trouble.since, screen::line(&trouble.why));
    }
    if let Some(pending) = &peer.pending {
        let _ = writeln!(text, "since {} it shows something else:", pending.since);
        for change in &pending.changes {
            let _ = writeln!(text, "  {}", line(change));
        }
        let _ = writeln!(text, "`oap-memory peer accept {}` pins that", peer.pinned.did);
    }
    if !peer.notices.is_empty() {
        text.push_str("before:\n");
    }
    for notice in &peer.notices {
        let _ = writeln!(text, "  {} {}", notice.at, line(&notice.change));
    }
    text
}

fn table(list: &PeerList) -> String {
    let rows = list.peers.iter().map(|peer| {
        let waits = peer.pending.as_ref().map(|of| of.changes.iter().filter(|change| change.asks).count());
        let what = match (peer.state, waits, &peer.trouble) {
            (PeerState::Changed, Some(count), _) => format!("{count} change(s) ask you"),
            (_, _, Some(trouble)) => trouble.why.clone(),
            _ => String::new(),
        };
        vec![
            peer.pinned.did.to_string(),
            peer.state.as_str().to_owned(),
            peer.pinned.origin.clone(),
            peer.checked_at.to_string(),
            what,
        ]
    });
    output::table(&["peer", "state", "gateway", "believed", "what"], rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// A peer in a state, with or without something that kept it from being read.
    fn peer(state: &str, trouble: Value) -> PeerInfo {
        let at = "2026-05-01T12:00:00Z";
        let pinned = json!({
            "did": "did:web:a.example", "origin": "https://a.example", "keys": [], "endpoints": {}, "claims": [], "published_at": at,
        });
        serde_json::from_value(json!({
            "state": state, "pinned": pinned, "added_at": at, "checked_at": at, "due_at": at, "pending": null, "trouble": trouble,
            "notices": [],
        }))
        .unwrap()
    }

    #[test]
    fn a_look_that_found_no_sound_peer_fails() {
        let trouble = |disbelieved: bool| json!({"since": "2026-05-01T12:00:00Z", "disbelieved": disbelieved, "why": "did.json: x", "times": 1});
        let status =
            |state: &str, trouble: Value| found(&peer(state, trouble)).map_err(|error| error.status());
        assert_eq!(status("sound", Value::Null), Ok(()));
        assert_eq!(status("unreachable", trouble(false)), Err(1));
        assert_eq!(status("disbelieved", trouble(true)), Err(4));
        assert_eq!(status("changed", Value::Null), Err(4));
        // It could not be read now, and waits with what it showed before.
        assert_eq!(status("changed", trouble(false)), Err(1));
        assert_eq!(status("changed", trouble(true)), Err(4));
    }

    #[test]
    fn a_change_is_one_line_and_nothing_in_it_acts() {
        let change = PeerChange {
            change: "endpoint".to_owned(),
            says: "query was none, is https://a.example/\u{1b}[31m\u{202e}\nx".to_owned(),
            asks: true,
            because: None,
        };
        let line = line(&change);
        assert!(!line.contains(['\u{1b}', '\u{202e}', '\n']) && line.ends_with("(asks you)"), "{line}");
        let taken = PeerChange { asks: false, because: Some("key-1 signed for it".to_owned()), ..change };
        assert!(super::line(&taken).ends_with("(taken over: key-1 signed for it)"));
    }
}
