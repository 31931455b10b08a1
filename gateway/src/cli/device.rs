//! `oap-memory device`: the owner's other gateways, kept in step with this one.

use super::{CliError, Global, output, screen};
use crate::api::devices as api;
use crate::api::devices::{ConfirmedDevice, DeviceInfo, DeviceList, DeviceName, DeviceState, SyncReport};
use oap_client::ClientError;
use oap_federation::pairing::Code;
use oap_identity::Did;
use std::fmt::Write as _;

/// Your other gateways: keep two or more in step
#[derive(clap::Subcommand)]
#[command(after_help = "Examples:
  oap-memory device add did:web:laptop.example
  oap-memory device show did:web:laptop.example
  oap-memory device add did:web:laptop.example --code 1234-5678
  oap-memory device list
  oap-memory device sync did:web:laptop.example
  oap-memory device remove did:web:laptop.example

Say `add` on both sides, each with the DID of the other, while both gateways run. Both then show a code: `device show`. Only if it is the same on both, say
`add --code` on both. From then on each asks the other every minute what changed: new items, corrections, labels, retractions, deletions. Where both corrected an item,
the later correction is in force and the other stays in the chain; what is erased on one is erased on the other. Whoever is offline goes on where they were.")]
pub(super) enum Device {
    /// Make another gateway of yours a device; with its code, say yes
    Add {
        /// Its DID, a did:web
        did: Did,
        /// The code that the other device shows
        #[arg(long)]
        code: Option<Code>,
    },
    /// List devices and how they stand
    List,
    /// Show a device, and the code to compare
    Show {
        /// Its DID
        did: Did,
    },
    /// End a device: its grant is revoked; what came from it stays
    Remove {
        /// Its DID
        did: Did,
    },
    /// Ask a device now what changed
    Sync {
        /// Its DID
        did: Did,
    },
}

impl Device {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        let owner = global.owner().await?;
        match self {
            Self::Add { did, code: None } => {
                let added = owner.send::<api::AddDevice>((), &DeviceName { did }).await?;
                output::print(global.json, &added, text);
            }
            Self::Add { did, code: Some(code) } => {
                let yes = ConfirmedDevice { did: did.clone(), code };
                let added = owner.send::<api::ConfirmDevice>((), &yes).await.map_err(missing(&did))?;
                output::print(global.json, &added, text);
            }
            Self::List => {
                let list = owner.get::<api::ListDevices>((), &()).await?;
                output::print(global.json, &list, table);
            }
            Self::Show { did } => {
                let name = DeviceName { did: did.clone() };
                let shown = owner.send::<api::ShowDevice>((), &name).await.map_err(missing(&did))?;
                output::print(global.json, &shown, text);
            }
            Self::Remove { did } => {
                let name = DeviceName { did: did.clone() };
                let done = owner.send::<api::RemoveDevice>((), &name).await.map_err(missing(&did))?;
                output::print(global.json, &done, |_| format!("{did} is no device any more"));
            }
            Self::Sync { did } => {
                let name = DeviceName { did: did.clone() };
                let mut all = SyncReport::default();
                loop {
                    let part = owner.send::<api::SyncDevice>((), &name).await.map_err(missing(&did))?;
                    add(&mut all, part);
                    if let Some(why) = &all.trouble {
                        return Err(CliError::Other(format!("{did}: {why}")));
                    }
                    if !all.more {
                        break;
                    }
                    // Whoever reads JSON waits for the whole.
                    if !global.json {
                        eprintln!("{} items told of, {} changes taken over so far", all.told, all.taken);
                    }
                }
                output::print(global.json, &all, report);
            }
        }
        Ok(())
    }
}

/// Says that there is no such device.
fn missing(did: &Did) -> impl Fn(ClientError) -> CliError {
    let did = did.clone();
    move |error| match error {
        ClientError::Refused { status: 404, .. } => {
            CliError::Other(format!("{did}: no such device; `oap-memory device list` shows them"))
        }
        error => error.into(),
    }
}

/// One part more of a report.
fn add(all: &mut SyncReport, part: SyncReport) {
    all.told += part.told;
    all.taken += part.taken;
    all.left.extend(part.left);
    (all.more, all.trouble) = (part.more, part.trouble);
}

fn text(device: &DeviceInfo) -> String {
    let did = &device.did;
    let mut text = format!("{did}: {}\n", device.state.as_str());
    text.push_str(&match (device.state, &device.code) {
        (DeviceState::Asked, _) => {
            "say `oap-memory device add` on the other side too, with this gateway's DID; then `device show` has a code".to_owned()
        }
        (DeviceState::Compare, Some(code)) => format!(
            "code: {code}\nhere, type the code that the other side shows: oap-memory device add {did} --code CODE\nthere, type this one\nif they are not the same, somebody is between the two: `oap-memory device remove {did}`"
        ),
        (DeviceState::Waits, _) => "the other side has not said yes yet: `device add DID --code` there".to_owned(),
        (DeviceState::Over, _) => "nobody said yes in time: `device add` on both sides begins anew".to_owned(),
        (DeviceState::Active | DeviceState::Removed | DeviceState::Compare, _) => {
            format!("taken over: {} changes, left: {}", device.taken, device.left)
        }
    });
    let times = [
        ("in step since", device.synced_at),
        ("the grants end", device.until),
        ("removed", device.removed_at),
    ];
    for (name, time) in times {
        if let Some(time) = time {
            let _ = write!(text, "\n{name}: {time}");
        }
    }
    if device.full {
        text.push_str(
            "\nits grant is used up, and new items are left out: raise max_grant_items there, then remove and add it anew",
        );
    }
    if let Some(trouble) = &device.trouble {
        let why = screen::line(&trouble.why);
        let _ = write!(text, "\nsince {} ({} times): {why}", trouble.since, trouble.times);
    }
    text
}

fn table(list: &DeviceList) -> String {
    let rows = list.devices.iter().map(|device| {
        let trouble = device.trouble.as_ref().map(|trouble| trouble.why.clone());
        vec![
            device.did.to_string(),
            device.state.as_str().to_owned(),
            device.synced_at.map(|at| at.to_string()).unwrap_or_default(),
            device.until.map(|at| at.to_string()).unwrap_or_default(),
            trouble.unwrap_or_default(),
        ]
    });
    output::table(&["device", "state", "in step", "until", "trouble"], rows)
}

fn report(report: &SyncReport) -> String {
    let mut text = format!("told of {} items, took over {} changes", report.told, report.taken);
    for left in &report.left {
        let _ = write!(text, "\nleft {}: {}", left.item_id, left.why.as_str());
    }
    text
}
