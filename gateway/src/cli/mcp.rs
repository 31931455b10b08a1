//! `oap-memory mcp`: the memory tools for an assistant, over standard input and output.
//!
//! Where a gateway has the home open, calls go to it over the owner's socket. Where none has, this process opens the home and answers on
//! that socket, too, until it ends: other commands, and other assistants, find it there.

mod clients;
pub(super) mod install;

use super::{CliError, Global, Kept};
use crate::Error;
use crate::api::agents::{AgentInfo, AgentRef, CallTool, ListAgents, ShowAgent, ToolAnswer, ToolCall};
use crate::client::{Caller as Commanding, HomeClient};
use crate::http::App;
use crate::mcp::{CallError, Caller, Server, Turns, stdio};
use crate::state::gateway::Gateway;
use crate::system::home::{Home, HomeError};
use crate::system::lock::{Held, PATIENCE, Wait};
use crate::system::serve;
use crate::system::socket::{NAME, OwnerSocket, SocketClient};
use oap_client::ClientError;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::sync::Arc;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

/// Serve your memory to an assistant over standard input and output (Model Context Protocol)
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "Examples:
  oap-memory mcp --agent scout
  oap-memory mcp install --client claude-desktop
  oap-memory mcp install --client codex --print

Assistants start this by themselves, once `mcp install` told them how. It answers as the agent that is named, with that
agent's permission and no more: one that `oap-memory agent add NAME` made and nobody removed, or this ends at once, as it
does without --agent where there is none, or more than one. It speaks to the running gateway; without one it opens the
home itself, and other commands reach that through it until the assistant ends it. A home without a key file has to be unlocked or served before.")]
pub(super) struct Mcp {
    #[command(subcommand)]
    command: Option<McpCommand>,
    /// The agent's name, or its DID; without it, the only one that there is
    #[arg(long, env = "OAP_MEMORY_AGENT", value_name = "NAME")]
    agent: Option<AgentRef>,
    /// As Trails has it, `server --transport stdio`; there is no other here
    #[arg(long = "transport", hide = true, value_parser = ["stdio"])]
    _transport: Option<String>,
}

#[derive(clap::Subcommand)]
enum McpCommand {
    /// Tell an assistant how to start this
    Install(install::Install),
}

impl Mcp {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        if let Some(McpCommand::Install(install)) = self.command {
            return install.run(global).await;
        }
        if std::io::stdin().is_terminal() {
            // Standard output is the protocol's.
            let _ = writeln!(
                std::io::stderr(),
                "oap-memory: this speaks with assistants, not with people; `oap-memory mcp install --client NAME` connects one"
            );
        }
        let assistant = Arc::new(Assistant {
            home: global.home(),
            flags: global.flags(),
            kept: global.kept.clone(),
            agent: self.agent,
            line: Mutex::default(),
        });
        tokio::select! {
            begun = assistant.begin() => if let Err(error) = begun {
                assistant.close().await;
                return Err(error);
            },
            () = serve::stop_signal() => {
                assistant.close().await;
                return Ok(());
            }
        }
        let server = Server::new(assistant.clone(), Turns::default());
        let served = stdio(server, tokio::io::stdin(), tokio::io::stdout(), serve::stop_signal()).await;
        assistant.close().await;
        served.map_err(|error| CliError::Other(error.to_string()))
    }
}

/// The way of an assistant's calls to the gateway of a home.
struct Assistant {
    home: Home,
    flags: BTreeMap<String, Value>,
    kept: Kept,
    agent: Option<AgentRef>,
    line: Mutex<Line>,
}

#[derive(Default)]
struct Line {
    /// The gateway, where it was this process that opened the home.
    open: Option<Open>,
    /// Who the calls go to, and as whom.
    to: Option<(Arc<HomeClient>, AgentRef)>,
}

/// A home that this process has open.
struct Open {
    gateway: Arc<Gateway>,
    socket: OwnerSocket,
    sweeper: JoinHandle<()>,
}

impl Assistant {
    /// That the agent is there, where the home can be asked: a locked one is asked with the first call. A model would read what its
    /// tools answer without one as an empty memory.
    async fn begin(&self) -> Result<(), CliError> {
        let client = match self.line().await {
            Ok((client, _)) => client,
            // Nobody said which agent is meant, and there is not one alone.
            Err(error @ CliError::Usage(_)) => return Err(error),
            Err(_) => return Ok(()),
        };
        let Some(agent) = &self.agent else { return Ok(()) };
        match client.get::<ShowAgent>(agent.clone(), &()).await {
            Ok(AgentInfo { removed_at: Some(_), .. }) | Err(ClientError::Refused { status: 404, .. }) => {
                Err(CliError::Other(Error::NoAgent(agent.clone()).to_string()))
            }
            // What else is wrong is told with the first call.
            _ => Ok(()),
        }
    }

    /// Who answers, connected to.
    async fn line(&self) -> Result<(Arc<HomeClient>, AgentRef), CliError> {
        let mut line = self.line.lock().await;
        let answers = SocketClient::connect(self.home.path()).await.map_err(HomeError::from)?.is_some();
        if let (true, Some(to)) = (answers, &line.to) {
            return Ok(to.clone());
        }
        if !answers {
            line.to = None;
            if let Some(open) = self.open().await? {
                line.open = Some(open);
            }
        }
        let caller = Commanding { command: "mcp", ..Commanding::default() };
        let client = HomeClient::connect(self.home.clone(), &self.flags, caller).await?;
        let agent = match &self.agent {
            Some(agent) => agent.clone(),
            None => only(&client).await?,
        };
        let to = (Arc::new(client), agent);
        line.to = Some(to.clone());
        Ok(to)
    }

    /// Opens the home, unless somebody else does meanwhile.
    async fn open(&self) -> Result<Option<Open>, CliError> {
        let mut wait = Wait::new(PATIENCE, &|_: &Held| {});
        let lock = loop {
            if SocketClient::connect(self.home.path()).await.map_err(HomeError::from)?.is_some() {
                return Ok(None);
            }
            match self.home.lock("mcp")? {
                Ok(lock) => break lock,
                Err(held) => wait.a_moment(held).await.map_err(HomeError::Held)?,
            }
        };
        let gateway = self.home.open(&self.flags).await?;
        // Until the process ends: its threads may work on what they have of the home.
        drop(self.kept.0.set(lock));
        self.home.renew_admin(&gateway)?;
        let app = App::new(gateway.clone());
        let failed = |e: std::io::Error| CliError::File(self.home.file(NAME), e.to_string());
        let socket = || OwnerSocket::open(self.home.path(), app.clone());
        let socket = gateway.store.space().finish(socket).map_err(failed)?;
        let sweeper = tokio::spawn(serve::sweep(gateway.clone(), app));
        Ok(Some(Open { gateway, socket, sweeper }))
    }

    /// Lets go of the home, where this process has it.
    async fn close(&self) {
        let mut line = self.line.lock().await;
        line.to = None;
        if let Some(Open { gateway, socket, sweeper }) = line.open.take() {
            serve::wind_down(&gateway, socket, sweeper).await;
        }
    }

    /// What the gateway answers to a call, where one is reached.
    async fn ask(&self, call: &ToolCall) -> Result<Result<ToolAnswer, ClientError>, CliError> {
        let (client, agent) = self.line().await?;
        let asked = client.send::<CallTool>(agent.clone(), call).await;
        Ok(match asked {
            // The token that this process has was ended by a rotation of keys: nothing was done. The home has its successor.
            Err(ClientError::Refused { status: 401, .. }) => {
                self.line.lock().await.to = None;
                let (client, agent) = self.line().await?;
                client.send::<CallTool>(agent, call).await
            }
            asked => asked,
        })
    }
}

impl Caller for Assistant {
    async fn call(&self, call: ToolCall) -> Result<ToolAnswer, CallError> {
        let asked = self.ask(&call).await.map_err(|error| match error {
            CliError::Home(HomeError::NoMaster) => CallError::Locked,
            CliError::Usage(message) => CallError::Refused { code: "invalid_input".to_owned(), message },
            error => CallError::Other(Box::new(error)),
        })?;
        // As the gateway says it: a field is a tool's, and not a flag.
        asked.map_err(|error| match error {
            ClientError::Refused { code, message, .. } => CallError::Refused { code, message },
            error => CallError::Other(Box::new(error)),
        })
    }
}

/// Agents that are named where there are several.
const MAX_NAMED: usize = 10;

/// The only agent that there is.
async fn only(client: &HomeClient) -> Result<AgentRef, CliError> {
    let list = client.get::<ListAgents>((), &()).await?;
    let there: Vec<AgentInfo> = list.agents.into_iter().filter(|agent| agent.removed_at.is_none()).collect();
    match there.as_slice() {
        [agent] => Ok(AgentRef::Did(agent.did.clone())),
        [] => Err(CliError::Usage("there is no agent yet: `oap-memory agent add NAME` makes one".to_owned())),
        several => {
            let mut names: Vec<String> =
                several.iter().take(MAX_NAMED).map(|agent| agent.name.to_string()).collect();
            if several.len() > MAX_NAMED {
                names.push(format!("{} more", several.len() - MAX_NAMED));
            }
            let names = names.join(", ");
            Err(CliError::Usage(format!(
                "there are several agents, {names}: say which one with --agent NAME"
            )))
        }
    }
}
