//! `oap-memory lockdown`

use super::grant::words::minute;
use super::{CliError, Global, output, values};
use crate::api::lockdown::{
    LiftLockdown, LockDown, Lockdown as Last, LockdownOrder, LockdownState, LockedDown, ShowLockdown,
};
use std::io::{IsTerminal, Write};

/// End every grant and credential at once, and answer nobody but you
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "Examples:
  oap-memory lockdown --reason \"A laptop was stolen\" --yes
  oap-memory lockdown status
  oap-memory lockdown lift --yes

From the moment that this says so nobody but you is answered: no grantee, no agent, no program with an OAuth token, and
no query that is under way. Every grant is revoked, every API key and every approval of a client ends, and so does every
trust token but that of this home, which gets a new one. A restart changes nothing of it. Only the DID document, the
status list, your incident reports and the health checks stay readable, so that others see that nothing counts any more.

Your own commands go on. Nothing that gives access can be made until you lift the lockdown, and lifting it gives nothing
back: issue grants, rotate API keys and approve clients anew for whom you still trust.")]
pub(super) struct Lockdown {
    #[command(subcommand)]
    command: Option<LockdownCommand>,
    /// Why, for yourself: `lockdown status` tells it to nobody else
    #[arg(long, value_name = "TEXT", value_parser = values::short)]
    reason: Option<String>,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

#[derive(clap::Subcommand)]
enum LockdownCommand {
    /// Whether the gateway is locked down, since when, and what it ended
    Status,
    /// Let the gateway answer again; what was ended stays ended
    Lift {
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

impl Lockdown {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        let Self { command, reason, yes } = self;
        match command {
            None => {
                asked(
                    yes,
                    "End every grant and credential, and answer nobody but you? Nothing of it comes back.",
                )?;
                let owner = global.owner().await?;
                // The new token is in the home already, and is nobody's to read here.
                let LockedDown { lockdown, trust_token: _ } =
                    owner.send::<LockDown>((), &LockdownOrder { reason }).await?;
                let state = LockdownState { locked_down: true, last: Some(lockdown) };
                output::print(global.json, &state, text);
            }
            Some(LockdownCommand::Status) => {
                let state = global.owner().await?.get::<ShowLockdown>((), &()).await?;
                output::print(global.json, &state, text);
            }
            Some(LockdownCommand::Lift { yes }) => {
                asked(yes, "Let the gateway answer again?")?;
                let state = global.owner().await?.send::<LiftLockdown>((), &()).await?;
                output::print(global.json, &state, text);
            }
        }
        Ok(())
    }
}

/// Asks, unless that was answered.
fn asked(yes: bool, question: &str) -> Result<(), CliError> {
    if yes {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        return Err(CliError::Usage("there is no terminal to ask on: say --yes".to_owned()));
    }
    eprint!("{question} [y/N] ");
    let _ = std::io::stderr().flush();
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).map_err(|e| CliError::Other(e.to_string()))?;
    if matches!(line.trim(), "y" | "Y" | "yes") {
        Ok(())
    } else {
        Err(CliError::Other("nothing was changed".to_owned()))
    }
}

fn text(state: &LockdownState) -> String {
    let Some(last) = &state.last else {
        return "not locked down, and never was".to_owned();
    };
    let Last { since, lifted_at, reason, receipt_id, grants, agents, clients, left } = last;
    let mut text = match lifted_at {
        None => format!("locked down since {}: nobody but you is answered\n", minute(*since)),
        Some(lifted) => {
            format!("not locked down; it was from {} to {}\n", minute(*since), minute(*lifted))
        }
    };
    if let Some(reason) = reason {
        text.push_str(&format!("why      {reason}\n"));
    }
    text.push_str(&format!(
        "ended    {grants} grant(s), {agents} API key(s), {clients} client(s) of OAuth\n"
    ));
    if *left > 0 {
        text.push_str(&format!(
            "         {left} of the grants have no receipt of it yet; the gateway goes on by itself\n"
        ));
    }
    text.push_str(&format!("receipt  {receipt_id}"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_screen_says_how_it_stands() {
        let mut state: LockdownState = serde_json::from_value(json!({
            "locked_down": true,
            "last": {
                "since": "2026-05-01T12:00:00Z", "reason": "A laptop", "receipt_id": "urn:oap:receipt:01J9V8B7H1ZK4D2A0M9R8F0KQX",
                "grants": 3, "agents": 2, "clients": 1, "left": 1,
            },
        }))
        .unwrap();
        let lasting = text(&state);
        for says in
            ["locked down since", "A laptop", "3 grant(s), 2 API key(s), 1 client(s)", "1 of the grants"]
        {
            assert!(lasting.contains(says), "{says}: {lasting}");
        }
        let last = state.last.as_mut().unwrap();
        (last.lifted_at, last.left) = (Some(last.since), 0);
        assert!(text(&state).starts_with("not locked down; it was from "), "{}", text(&state));
        assert!(!text(&state).contains("no receipt"));
        state.last = None;
        assert_eq!(text(&state), "not locked down, and never was");
    }
}
