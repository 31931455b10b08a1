//! `oap-memory agent consent` and `oap-memory agent client`: clients that come over OAuth.

use super::agent::{permission, word};
use super::{CliError, Global, output, screen};
use crate::api::agents::AgentRef;
use crate::api::oauth as api;
use crate::api::oauth::{
    ClientInfo, ConsentCode, ConsentId, ConsentInfo, ConsentList, NewClient, NewConsent, WaitingId,
    WaitingInfo,
};
use crate::api::permission::Permission;
use crate::oauth::client::ClientName;
use oap_client::{ClientError, OwnerClient};
use serde_json::json;
use std::io::{IsTerminal, Write};
use std::str::FromStr;

/// Clients that ask for your memory in a browser (OAuth): what you say to them
#[derive(clap::Subcommand)]
#[command(after_help = "Examples:
  oap-memory agent consent list
  oap-memory agent consent approve KQ7D-2M9X --as scout
  oap-memory agent consent approve KQ7D-2M9X --as scout --permission read
  oap-memory agent consent decline KQ7D-2M9X
  oap-memory agent consent decline --all
  oap-memory agent consent end 3f9a01c2

A client that is connected to https://YOUR-GATEWAY/mcp opens a page in your browser. The page shows who the client says it is, where the
answer goes, and a code. With that code you say yes or no here; before a yes you are shown who asks, from where, and for what. The list
does not show codes: say yes to a page that you see, and only where you have started it yourself. A yes ends with `consent end`, and when the agent is removed or gets another API key.")]
pub(super) enum Consent {
    /// List the clients that wait, and those that you said yes to
    List,
    /// Say yes to the client whose page shows a code
    Approve {
        /// The code on the page
        code: ConsentCode,
        /// The agent as which the client uses your memory
        #[arg(long = "as", value_name = "AGENT")]
        agent: AgentRef,
        /// What it may do; what it asks for and the agent may, but no more than write, if left out
        #[arg(long, value_parser = permission())]
        permission: Option<Permission>,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Say no to a client that waits
    Decline {
        /// The code on the page, or the id in the list
        #[arg(required_unless_present = "all", conflicts_with = "all")]
        client: Option<Waits>,
        /// Say no to all that wait
        #[arg(long)]
        all: bool,
    },
    /// Take a yes back: the client's tokens end at once
    End {
        /// Its id, as the list shows it
        id: ConsentId,
    },
}

/// A client that waits, as the owner names it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Waits {
    Code(ConsentCode),
    Id(WaitingId),
}

impl FromStr for Waits {
    type Err = NotWaits;

    fn from_str(text: &str) -> Result<Self, NotWaits> {
        let id = text.parse::<WaitingId>().map(Self::Id);
        id.or_else(|_| text.parse::<ConsentCode>().map(Self::Code)).map_err(|_| NotWaits)
    }
}

/// Neither of them.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error(
    "must be the code that the page shows, such as ABCD-EFGH, or the six hex digits that `agent consent list` shows"
)]
pub(super) struct NotWaits;

/// Clients without a metadata document, which you add by name
#[derive(clap::Subcommand)]
#[command(after_help = "Examples:
  oap-memory agent client add desk --redirect http://127.0.0.1/callback
  oap-memory agent client add site --redirect http://localhost/callback --redirect https://app.example/callback
  oap-memory agent client list
  oap-memory agent client remove desk

Most clients publish a document that says who they are, and need nothing here. The name of a client that you add is its client_id; it has no
secret. At 127.0.0.1, [::1] and localhost any port will do.")]
pub(super) enum Client {
    /// Add a client
    Add {
        /// Its name, which is its client_id: a-z 0-9 _ -
        name: ClientName,
        /// An address that it may be sent back to; may be given up to 16 times
        #[arg(long = "redirect", value_name = "URI", required = true)]
        redirects: Vec<String>,
    },
    /// List the clients that you added
    List,
    /// Remove a client; its tokens end at once
    Remove {
        /// Its name
        name: ClientName,
    },
}

impl Consent {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        let owner = global.owner().await?;
        match self {
            Self::List => {
                let list = owner.get::<api::ListConsents>((), &()).await?;
                output::print(global.json, &list, lists);
            }
            Self::Approve { code, agent, permission, yes } => {
                if !yes {
                    let asks = owner.get::<api::ShowConsent>(code, &()).await?;
                    agreed(&question(&asks, &agent, permission))?;
                }
                let new = NewConsent { agent, permission };
                let given = owner.send::<api::ApproveConsent>(code, &new).await?;
                output::print(global.json, &given, |given| {
                    format!(
                        "{} may {} as {}; the page in the browser goes on by itself\n`oap-memory agent consent end {}` takes it back",
                        given.client_name,
                        word(given.permission),
                        output::or_none(given.agent.as_ref()),
                        given.consent
                    )
                });
            }
            Self::Decline { client: Some(Waits::Code(code)), .. } => {
                let done = owner.send::<api::DeclineConsent>(code, &()).await?;
                output::print(global.json, &done, |_| "the client was told no".to_owned());
            }
            Self::Decline { client: Some(Waits::Id(id)), .. } => {
                let done = owner.send::<api::DeclineWaiting>(id, &()).await?;
                output::print(global.json, &done, |_| "the client was told no".to_owned());
            }
            Self::Decline { client: None, .. } => {
                let told = decline_all(&owner).await?;
                output::print(global.json, &json!({ "declined": told }), |_| {
                    format!("{told} client(s) were told no")
                });
            }
            Self::End { id } => {
                let done = owner
                    .send::<api::EndConsent>(id, &())
                    .await
                    .map_err(missing("consent", &id.to_string()))?;
                output::print(global.json, &done, |_| "the client's tokens ended".to_owned());
            }
        }
        Ok(())
    }
}

impl Client {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        let owner = global.owner().await?;
        match self {
            Self::Add { name, redirects } => {
                let new = NewClient { name, redirect_uris: redirects };
                let added = owner.send::<api::AddClient>((), &new).await?;
                output::print(global.json, &added, |added| {
                    format!("the client's client_id is {}; it has no secret", added.client_id)
                });
            }
            Self::List => {
                let list = owner.get::<api::ListClients>((), &()).await?;
                output::print(global.json, &list, |list| clients(&list.clients));
            }
            Self::Remove { name } => {
                let text = name.to_string();
                let done =
                    owner.send::<api::RemoveClient>(name, &()).await.map_err(missing("client", &text))?;
                output::print(global.json, &done, |_| format!("{text} is removed, and its tokens ended"));
            }
        }
        Ok(())
    }
}

/// Says no to all that wait now; how many they were.
async fn decline_all(owner: &OwnerClient) -> Result<usize, CliError> {
    let mut told = 0;
    for one in owner.get::<api::ListConsents>((), &()).await?.waiting {
        match owner.send::<api::DeclineWaiting>(one.waiting, &()).await {
            Ok(_) => told += 1,
            // Its time was over meanwhile, or somebody answered it.
            Err(ClientError::Refused { status: 409, .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(told)
}

/// What the owner is shown before the yes. All of it but the addresses is the client's own word.
fn question(asks: &WaitingInfo, agent: &AgentRef, permission: Option<Permission>) -> String {
    let local = if asks.loopback { ", a program on the machine of that browser" } else { "" };
    let given = permission.unwrap_or_else(|| asks.permission.min(Permission::Write));
    format!(
        "It calls itself:  {}\nIts id:           {}\nThe answer goes:  to {}{local}\nIt asks to:       {}\n\
         It would get:     {}, as {agent}, and no more than {agent} may\nThe page was opened from {} at {}.\n\
         Only if you have just started this yourself: let it?",
        screen::line(&asks.client_name),
        screen::line(&asks.client_id),
        screen::line(&asks.redirect_host),
        word(asks.permission),
        word(given),
        screen::line(&asks.network),
        asks.asked_at,
    )
}

/// Asks for a yes.
fn agreed(question: &str) -> Result<(), CliError> {
    if !std::io::stdin().is_terminal() {
        return Err(CliError::Usage(format!("{question}\nthere is no terminal to ask on: say --yes")));
    }
    eprint!("{question} [y/N] ");
    let _ = std::io::stderr().flush();
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).map_err(|e| CliError::Other(e.to_string()))?;
    if matches!(line.trim(), "y" | "Y" | "yes") {
        return Ok(());
    }
    Err(CliError::Other("nothing was given; `agent consent decline` tells the client so".to_owned()))
}

/// Says of what nothing is there.
fn missing(what: &'static str, name: &str) -> impl Fn(ClientError) -> CliError {
    let name = name.to_owned();
    move |error| match error {
        ClientError::Refused { status: 404, .. } => CliError::Other(format!(
            "{name}: no {what} of this name; `oap-memory agent {what} list` shows them"
        )),
        error => error.into(),
    }
}

fn lists(list: &ConsentList) -> String {
    let waiting = list.waiting.iter().map(|one| {
        vec![
            one.waiting.to_string(),
            one.client_name.clone(),
            one.redirect_host.clone(),
            word(one.permission).to_owned(),
            one.network.clone(),
            one.asked_at.to_string(),
            one.client_id.clone(),
        ]
    });
    let given = list.given.iter().map(|one: &ConsentInfo| {
        vec![
            one.consent.to_string(),
            one.client_name.clone(),
            output::or_none(one.agent.as_ref()),
            word(one.permission).to_owned(),
            output::or_none(one.used_at),
            one.until.to_string(),
            one.client_id.clone(),
        ]
    });
    let waiting = output::table(
        &["waits", "client", "answer goes to", "asks to", "from", "since", "client_id"],
        waiting,
    );
    let given = output::table(&["consent", "client", "as", "may", "used", "until", "client_id"], given);
    format!("Waiting\n{waiting}\n\nGiven\n{given}")
}

fn clients(clients: &[ClientInfo]) -> String {
    let rows = clients
        .iter()
        .map(|one| vec![one.client_id.to_string(), one.created_at.to_string(), one.redirect_uris.join(" ")]);
    output::table(&["client_id", "added", "redirects"], rows)
}
