//! `oap-memory witness`: who signs the own log, whose logs are signed here, and whose signatures the logs of peers must have.

use super::{CliError, Global, output, screen};
use crate::api::peers::{FindPeer, FoundAt, PeerRef};
use crate::api::witnesses as api;
use crate::api::witnesses::{
    DemandList, PeerDemand, SeenCheckpoint, WitnessInfo, WitnessList, WitnessName, WitnessedInfo,
    WitnessedList,
};
use oap_client::ClientError;
use oap_identity::Did;
use serde::Serialize;
use std::fmt::Write as _;

/// Witnesses: who signs your log, and whose log you sign
#[derive(clap::Subcommand)]
#[command(after_help = "Examples:
  oap-memory witness add did:web:contractor.example
  oap-memory witness list
  oap-memory witness for did:web:contractor.example
  oap-memory witness demand did:web:contractor.example --need 1 --of did:web:friend.example
  oap-memory witness demand did:web:contractor.example --need 0
  oap-memory witness end did:web:contractor.example
  oap-memory witness remove did:web:contractor.example

A witness is a peer (`oap-memory peer add`) whose owner says `witness for` you. Once a minute your gateway adds what it did to its log, in a form
that tells nobody how much that was, and each witness signs that the log goes on from what it signed before. Whoever you granted something can ask
for these signatures: a gateway that shows one history to some and another one to others does not get them for both.")]
pub(super) enum Witness {
    /// Have a peer sign your log from now on
    Add {
        /// The peer's DID, or the domain name that its gateway is at
        #[arg(value_name = "DID|DOMAIN")]
        peer: PeerRef,
    },
    /// Your log and its witnesses, whose logs you sign, and what you demand of the logs of peers
    List,
    /// Have it sign your log no more
    Remove {
        /// Its DID
        did: Did,
    },
    /// Sign the log of a peer from now on; after a restore or a lockdown, again
    For {
        /// Its DID
        did: Did,
    },
    /// Sign the log of a peer no more, and forget how far it was
    End {
        /// Its DID
        did: Did,
    },
    /// Say whose signatures the log of a peer must have before `recall` believes what it answers
    Demand {
        /// The peer's DID
        did: Did,
        /// How many of them; 0 demands none any more
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=16))]
        need: u8,
        /// A witness that counts, another peer; may be given several times
        #[arg(long, value_name = "DID")]
        of: Vec<Did>,
    },
}

/// Everything of witnesses.
#[derive(Serialize)]
struct All {
    #[serde(flatten)]
    own: WitnessList,
    #[serde(flatten)]
    others: WitnessedList,
    #[serde(flatten)]
    demands: DemandList,
}

impl Witness {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        let owner = global.owner().await?;
        match self {
            Self::Add { peer } => {
                let did = match peer {
                    PeerRef::Did(did) => did,
                    PeerRef::Host(host) => owner.send::<FindPeer>((), &FoundAt { host }).await?.papers.did,
                };
                let name = WitnessName { did: did.clone() };
                let added = owner.send::<api::AddWitness>((), &name).await.map_err(no_peer(&did))?;
                output::print(global.json, &added, |added| {
                    format!("{} is asked to sign your log, once a minute while your gateway runs", added.did)
                });
            }
            Self::List => {
                let own = owner.get::<api::ListWitnesses>((), &()).await?;
                let others = owner.get::<api::ListWitnessed>((), &()).await?;
                let demands = owner.get::<api::ListDemands>((), &()).await?;
                output::print(global.json, &All { own, others, demands }, text);
            }
            Self::Remove { did } => {
                let name = WitnessName { did: did.clone() };
                let done = owner.send::<api::RemoveWitness>((), &name).await.map_err(no_witness(&did))?;
                output::print(global.json, &done, |_| {
                    format!("{did} is not asked to sign your log any more")
                });
            }
            Self::For { did } => {
                let name = WitnessName { did: did.clone() };
                let begun = owner.send::<api::WitnessFor>((), &name).await.map_err(no_peer(&did))?;
                output::print(global.json, &begun, |begun| format!("you sign the log of {}", begun.did));
            }
            Self::End { did } => {
                let name = WitnessName { did: did.clone() };
                let done = owner.send::<api::EndWitness>((), &name).await.map_err(no_witness(&did))?;
                output::print(global.json, &done, |_| format!("you do not sign the log of {did} any more"));
            }
            Self::Demand { did, need, of } => {
                let demand = PeerDemand { did: did.clone(), need, of };
                let set = owner.send::<api::SetDemand>((), &demand).await.map_err(no_peer(&did))?;
                output::print(global.json, &set, |set| match demanded(set) {
                    text if text.is_empty() => "nothing is demanded of the log of any peer".to_owned(),
                    text => text,
                });
            }
        }
        Ok(())
    }
}

fn no_peer(did: &Did) -> impl FnOnce(ClientError) -> CliError {
    let did = did.clone();
    move |error| match error {
        ClientError::Refused { status: 404, .. } => CliError::Other(format!(
            "{did}: it and every witness must be a peer first: `oap-memory peer add`, `oap-memory peer list`"
        )),
        error => error.into(),
    }
}

fn no_witness(did: &Did) -> impl FnOnce(ClientError) -> CliError {
    let did = did.clone();
    move |error| match error {
        ClientError::Refused { status: 404, .. } => {
            CliError::Other(format!("{did}: not among them; `oap-memory witness list` shows them"))
        }
        error => error.into(),
    }
}

fn text(all: &All) -> String {
    let mut text = match &all.own.log {
        Some(log) => format!("your log has {} ticks, since {}\n", log.size, log.began_at),
        None => "your log begins with your first witness\n".to_owned(),
    };
    text.push_str(&output::table(
        &["witness", "signed", "at", "trouble"],
        all.own.witnesses.iter().map(signs),
    ));
    if !all.others.witnessed.is_empty() {
        text.push_str("\nyou sign the logs of\n");
        let rows = all.others.witnessed.iter().map(signed);
        text.push_str(&output::table(&["peer", "signed", "at", "what"], rows));
    }
    let demanded = demanded(&all.demands);
    if !demanded.is_empty() {
        let _ = write!(text, "\n{demanded}");
    }
    text
}

fn signs(witness: &WitnessInfo) -> Vec<String> {
    vec![
        witness.did.to_string(),
        witness.size.to_string(),
        output::or_none(witness.signed_at),
        witness.trouble.as_ref().map(|trouble| trouble.why.as_str().to_owned()).unwrap_or_default(),
    ]
}

fn signed(of: &WitnessedInfo) -> Vec<String> {
    let at = |seen: &Option<SeenCheckpoint>| output::or_none(seen.as_ref().map(|seen| seen.at));
    let what = match &of.other {
        _ if !of.signs => "not signed since a restore or a lockdown: `witness for` signs on".to_owned(),
        Some(other) => format!("its key signed another history, of {} ticks, at {}", other.size, other.at),
        None => String::new(),
    };
    let size = of.signed.as_ref().map_or(0, |seen| seen.size);
    vec![of.did.to_string(), size.to_string(), at(&of.signed), what]
}

fn demanded(list: &DemandList) -> String {
    let lines = list.demands.iter().map(|demand| {
        let of: Vec<String> = demand.of.iter().map(ToString::to_string).collect();
        let line = format!(
            "the log of {} must be signed by {} of {}: {}",
            demand.did,
            demand.need,
            of.len(),
            of.join(", ")
        );
        screen::line(&line)
    });
    lines.collect::<Vec<_>>().join("\n")
}
