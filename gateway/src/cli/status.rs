//! `oap-memory status`

use super::grant::words::{left, minute};
use super::{CliError, Global, output, when};
use crate::service::outlook;
use crate::system::clock::SystemClock;
use crate::system::config::Config;
use oap_identity::Timestamp;
use serde_json::{Value, json};

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
        let mut owner = global.owner().await?;
        let mut answer = owner.call("GET", "/oap/owner/status", &[], None).await?;
        // Whoever has the home open says so in its lock.
        let holder = match owner.is_served() {
            true => home.lock(&global.command)?.err().and_then(|held| held.0),
            false => None,
        };
        answer["home"] = json!(home.path());
        answer["open_by"] = json!(holder.map(|holder| json!({"command": holder.command, "pid": holder.pid})));
        answer["store_bytes"] = json!(outlook::store_bytes(&home));
        answer["disk_free_bytes"] = json!(outlook::disk_free(home.path()));
        answer["certificate_end"] = json!(outlook::certificate_end(&config, &home));
        if let Some(findings) = answer["findings"].as_array_mut() {
            let beside = outlook::of_home(&config, &home, &SystemClock);
            findings.extend(beside.iter().map(|finding| json!(finding)));
        }
        let now = when::now();
        output::print(global.json, &answer, |a| screen(a, now));
        Ok(())
    }
}

fn time(status: &Value, pointer: &str) -> Option<Timestamp> {
    status.pointer(pointer)?.as_str()?.parse().ok()
}

/// The screen.
pub(super) fn screen(status: &Value, now: Timestamp) -> String {
    let mut text = String::new();
    let mut say = |name: &str, value: String| text.push_str(&format!("{name:<12} {value}\n"));
    let part = |pointer: &str| output::text(status, pointer);
    say("Principal", part("/principal"));
    say("Home", part("/home"));
    say(
        "Gateway",
        match (part("/open_by/command").as_str(), part("/open_by/pid")) {
            ("", _) => "not serving; commands open the home themselves".to_owned(),
            ("serve", pid) => format!("serving {} on {} (process {pid})", part("/origin"), part("/listen")),
            ("unlock", pid) => format!("unlocked for the owner's commands, not serving (process {pid})"),
            (command, pid) => format!("open by `oap-memory {command}` (process {pid})"),
        },
    );
    let kinds = status["items"]["kinds"].as_object();
    let kinds: Vec<String> =
        kinds.into_iter().flatten().map(|(kind, n)| format!("{n} {}", kind.replace('_', " "))).collect();
    let of = if kinds.is_empty() { String::new() } else { format!(": {}", kinds.join(", ")) };
    say("Items", format!("{}{of}", part("/items/live")));
    let beside = ["held", "expired", "retracted"].map(|name| format!("{} {name}", status["items"][name]));
    say("", beside.join(", "));
    say(
        "Grants",
        format!(
            "{} active{}",
            part("/grants/states/active"),
            match time(status, "/grants/next/expires_at") {
                Some(end) => format!(", the next ends {} ({})", minute(end), left(end, now)),
                None => String::new(),
            }
        ),
    );
    say(
        "Last query",
        match time(status, "/last_query/at") {
            Some(at) => format!(
                "{}, {} item(s) to {}",
                minute(at),
                part("/last_query/items"),
                part("/last_query/agent")
            ),
            None => "none".to_owned(),
        },
    );
    let mib = |name: &str| status[name].as_u64().unwrap_or_default() >> 20;
    say("Disk", format!("{} MiB used, {} MiB free", mib("store_bytes"), mib("disk_free_bytes")));
    if let Some(end) = time(status, "/certificate_end") {
        say("Certificate", format!("ends {} ({})", minute(end), left(end, now)));
    }
    for finding in status["findings"].as_array().into_iter().flatten() {
        let lines = [("WRONG", "wrong"), ("soon", "soon")].map(|(name, member)| {
            let found = finding[member].as_array().map(Vec::as_slice).unwrap_or_default();
            found.iter().map(move |line| (name, line.as_str().unwrap_or_default()))
        });
        let mut told = false;
        for (name, line) in lines.into_iter().flatten() {
            told = true;
            text.push_str(&format!("{name:<6} {}\n       {line}\n", output::text(finding, "/part")));
        }
        if told {
            text.push_str(&format!("       to do: {}\n", output::text(finding, "/fix")));
        }
    }
    text
}
