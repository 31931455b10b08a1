//! `oap-memory agent consent` and `oap-memory agent client`: clients that come over OAuth.

use super::agent::{permission, word};
use super::{CliError, Global, output};
use crate::api::agents::AgentRef;
use crate::api::oauth as api;
use crate::api::oauth::{
    ClientInfo, ConsentCode, ConsentId, ConsentInfo, ConsentList, NewClient, NewConsent,
};
use crate::api::permission::Permission;
use crate::oauth::client::ClientName;
use oap_client::ClientError;

/// Clients that ask for your memory in a browser (OAuth): what you say to them
#[derive(clap::Subcommand)]
#[command(after_help = "Examples:
  oap-memory agent consent list
  oap-memory agent consent approve KQ7D-2M9X --as scout
  oap-memory agent consent approve KQ7D-2M9X --as scout --permission read
  oap-memory agent consent decline KQ7D-2M9X
  oap-memory agent consent end 3f9a01c2

A client that is connected to https://YOUR-GATEWAY/mcp opens a page in your browser. The page shows who the client says it is, where the
answer goes, and a code. With that code you say yes or no here. The list does not show codes: say yes to a page that you see, and only
where you have started it yourself. A yes ends with `consent end`, and when the agent is removed or gets another API key.")]
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
        /// What it may do; all that it asks for and the agent may, if left out
        #[arg(long, value_parser = permission())]
        permission: Option<Permission>,
    },
    /// Say no to the client whose page shows a code
    Decline {
        /// The code on the page
        code: ConsentCode,
    },
    /// Take a yes back: the client's tokens end at once
    End {
        /// Its id, as the list shows it
        id: ConsentId,
    },
}

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
            Self::Approve { code, agent, permission } => {
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
            Self::Decline { code } => {
                let done = owner.send::<api::DeclineConsent>(code, &()).await?;
                output::print(global.json, &done, |_| "the client was told no".to_owned());
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
    let waiting =
        output::table(&["waits", "answer goes to", "asks to", "from", "since", "client_id"], waiting);
    let given = output::table(&["consent", "client", "as", "may", "used", "until", "client_id"], given);
    format!("Waiting\n{waiting}\n\nGiven\n{given}")
}

fn clients(clients: &[ClientInfo]) -> String {
    let rows = clients
        .iter()
        .map(|one| vec![one.client_id.to_string(), one.created_at.to_string(), one.redirect_uris.join(" ")]);
    output::table(&["client_id", "added", "redirects"], rows)
}
