//! `oap-memory status`

use super::grant::words::{left, minute};
use super::{CliError, Global, output, when};
use crate::api::health::{self as api, ShowStatus};
use crate::system::clock::SystemClock;
use crate::system::config::Config;
use crate::system::outlook;
use oap_grants::GrantState;
use oap_identity::Timestamp;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Where this gateway stands, on one screen
#[derive(clap::Args)]
#[command(after_help = "Examples:
  oap-memory status
  oap-memory status --json

What needs something done is told as `oap-memory doctor` tells it, who also looks at every item and receipt.")]
pub(super) struct Status {}

impl Status {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        let home = global.home();
        let config = Config::load(home.path(), &global.flags())?;
        let owner = global.owner().await?;
        let mut status = owner.get::<ShowStatus>((), &()).await?;
        // Whoever has the home open says so in its lock.
        let holder = match owner.is_served() {
            true => home.lock(&global.command)?.err().and_then(|held| held.0),
            false => None,
        };
        status.findings.extend(outlook::of_home(&config, &home, &SystemClock));
        let standing = Standing {
            status,
            home: home.path().to_owned(),
            open_by: holder.map(|holder| OpenBy { command: holder.command, pid: holder.pid }),
            store_bytes: outlook::store_bytes(&home),
            disk_free_bytes: outlook::disk_free(home.path()),
            certificate_end: outlook::certificate_end(&config, &home),
        };
        let now = when::now();
        output::print(global.json, &standing, |standing| screen(standing, now));
        Ok(())
    }
}

/// What the gateway says, and what its home does.
#[derive(Serialize, Deserialize)]
pub(super) struct Standing {
    #[serde(flatten)]
    status: api::Status,
    home: PathBuf,
    open_by: Option<OpenBy>,
    store_bytes: u64,
    disk_free_bytes: Option<u64>,
    certificate_end: Option<Timestamp>,
}

/// The program that has the home open.
#[derive(Serialize, Deserialize)]
struct OpenBy {
    command: String,
    pid: u32,
}

/// Lines of one finding that the screen has room for.
const LINES: usize = 3;

/// A finding: what it is of, how many times, and the first of them.
fn found(name: &str, part: &str, lines: &[String]) -> String {
    let mut text = match lines.len() {
        0 => return String::new(),
        1 => format!("{name:<6} {part}\n"),
        many => format!("{name:<6} {part}: {many}\n"),
    };
    for line in lines.iter().take(LINES) {
        text.push_str(&format!("       {line}\n"));
    }
    let more = lines.len().saturating_sub(LINES);
    if more > 0 {
        text.push_str(&format!("       and {more} more; --json lists all\n"));
    }
    text
}

/// The screen.
pub(super) fn screen(standing: &Standing, now: Timestamp) -> String {
    let status = &standing.status;
    let mut text = String::new();
    let mut say = |name: &str, value: String| text.push_str(&format!("{name:<12} {value}\n"));
    say("Principal", status.principal.to_string());
    say("Home", standing.home.display().to_string());
    say(
        "Gateway",
        match &standing.open_by {
            None => "not serving; commands open the home themselves".to_owned(),
            Some(OpenBy { command, pid }) => match command.as_str() {
                "serve" => format!("serving {} on {} (process {pid})", status.origin, status.listen),
                "unlock" => format!("unlocked for the owner's commands, not serving (process {pid})"),
                command => format!("open by `oap-memory {command}` (process {pid})"),
            },
        },
    );
    if let Some(lockdown) = &status.lockdown {
        say("Lockdown", format!("since {}: nobody but you is answered", minute(lockdown.since)));
    }
    let items = &status.items;
    let kinds = items.kinds.iter().map(|(kind, n)| format!("{n} {}", kind.replace('_', " ")));
    let kinds: Vec<String> = kinds.collect();
    let of = if kinds.is_empty() { String::new() } else { format!(": {}", kinds.join(", ")) };
    say("Items", format!("{}{of}", items.live));
    say("", format!("{} held, {} expired, {} retracted", items.held, items.expired, items.retracted));
    if items.waiting > 0 {
        let wait = if items.waiting == 1 {
            "1 item waits".to_owned()
        } else {
            format!("{} items wait", items.waiting)
        };
        say("", format!("{wait} for your confirmation: oap-memory review"));
    }
    let active = status.grants.states.get(GrantState::Active.as_str()).copied().unwrap_or_default();
    let next = status.grants.next.as_ref().map(|next| next.expires_at);
    let next = next.map(|end| format!(", the next ends {} ({})", minute(end), left(end, now)));
    say("Grants", format!("{active} active{}", next.unwrap_or_default()));
    say(
        "Last query",
        match &status.last_query {
            Some(last) => format!("{}, {} item(s) to {}", minute(last.at), last.items, last.agent),
            None => "none".to_owned(),
        },
    );
    let (used, free) = (standing.store_bytes >> 20, standing.disk_free_bytes.unwrap_or_default() >> 20);
    say("Disk", format!("{used} MiB used, {free} MiB free"));
    if let Some(end) = standing.certificate_end {
        say("Certificate", format!("ends {} ({})", minute(end), left(end, now)));
    }
    for finding in &status.findings {
        for (name, lines) in [("WRONG", &finding.wrong), ("soon", &finding.soon)] {
            text.push_str(&found(name, &finding.part, lines));
        }
        if !(finding.wrong.is_empty() && finding.soon.is_empty()) {
            text.push_str(&format!("       to do: {}\n", finding.fix));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_of_many_is_a_number_and_the_first_of_them() {
        let lines: Vec<String> = (1..=85).map(|n| format!("mgr_{n} ends")).collect();
        assert_eq!(
            found("soon", "active grants", &lines),
            "soon   active grants: 85\n       mgr_1 ends\n       mgr_2 ends\n       mgr_3 ends\n       and 82 more; --json lists all\n"
        );
        assert_eq!(found("WRONG", "disk", &["it is full".into()]), "WRONG  disk\n       it is full\n");
        assert_eq!(found("WRONG", "disk", &[]), "");
    }
}
