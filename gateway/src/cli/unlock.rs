//! `oap-memory unlock` and `lock`: the passphrase once for a while.
//!
//! Nothing is kept on disk. A process of its own has the home open, as `serve` has, and answers on the owner's socket alone,
//! with no address for others. Commands find it there, and it ends by itself.

use super::when::{Span, WhenError};
use super::{CliError, Global, output};
use crate::api::lock::{Lock as End, Locked};
use crate::http::App;
use crate::system::config::Config;
use crate::system::home::{self, HomeError, master};
use crate::system::serve;
use crate::system::socket::{OwnerSocket, SocketClient};
use oap_client::ClientError;
use oap_store::Master;
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use zeroize::Zeroizing;

/// Longest time to stay unlocked.
const MAX_TIME: Duration = Duration::from_secs(12 * 3600);
/// Longest passphrase that is handed on, in bytes.
const MAX_PASSPHRASE: u64 = 4096;
/// What the process says once it answers.
const READY: &str = "unlocked";

/// Ask for the passphrase once, and not again for a while
#[derive(clap::Args)]
#[command(after_help = "Examples:
  oap-memory unlock
  oap-memory unlock --for 2h
  oap-memory lock

A process in the background keeps the gateway open and answers your commands over a socket in the home (0600). The passphrase
and the keys are in its memory alone. Until it ends, every program that runs as you can do what you can, without
the passphrase. `serve` does the same while it runs, and needs no `unlock`.")]
pub(super) struct Unlock {
    /// For how long, at most 12h: 90s, 15m or 2h
    #[arg(long = "for", value_name = "TIME", default_value = "15m", value_parser = time)]
    time: Duration,
    /// Be the process in the background; the passphrase comes over standard input
    #[arg(long, hide = true)]
    background: bool,
}

/// End `unlock` before its time
#[derive(clap::Args)]
#[command(after_help = "Examples:
  oap-memory lock")]
pub(super) struct Lock {}

/// Why a text is no time that a home stays open.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum TimeError {
    /// Not a span.
    #[error(transparent)]
    Span(#[from] WhenError),
    /// Too short, or too long.
    #[error("at most 12h, and not nothing")]
    Bounds,
}

fn time(text: &str) -> Result<Duration, TimeError> {
    let Span(time) = text.parse()?;
    if time.is_zero() || time > MAX_TIME { Err(TimeError::Bounds) } else { Ok(time) }
}

impl Unlock {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        if self.background {
            let held = self.hold(global).await;
            if let Err(error) = &held {
                let _ = writeln!(std::io::stdout(), "{error}");
            }
            return held;
        }
        let home = global.home();
        let config = Config::load(home.path(), &global.flags())?;
        config.principal(home.path())?;
        if SocketClient::connect(home.path()).await.map_err(HomeError::from)?.is_some() {
            output::print(global.json, &json!({"unlocked": true}), |_| "is unlocked already".to_owned());
            return Ok(());
        }
        let passphrase = match &config.key_file {
            Some(_) => Zeroizing::default(),
            None => home::passphrase("Passphrase: ")?,
        };
        self.start(global, &passphrase)?;
        let seconds = self.time.as_secs();
        output::print(global.json, &json!({"unlocked": true, "seconds": seconds}), |_| {
            format!("unlocked for {} minute(s); `oap-memory lock` ends it", seconds.div_ceil(60))
        });
        Ok(())
    }

    /// Starts the process in the background, and waits until it answers.
    fn start(&self, global: &Global, passphrase: &str) -> Result<(), CliError> {
        let failed = |e: std::io::Error| CliError::Other(format!("the process in the background: {e}"));
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        command.arg("--home").arg(std::path::absolute(global.home().path()).map_err(failed)?);
        if let Some(path) = &global.trust_ca {
            command.arg("--trust-ca").arg(std::path::absolute(path).map_err(failed)?);
        }
        command.args(global.allow_local_dids.then_some("--allow-local-dids"));
        command.args(["unlock", "--background", "--for", &format!("{}s", self.time.as_secs())]);
        command.env_remove(home::PASSPHRASE).env_remove("OAP_MEMORY_HOME");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        // Its own group: what is typed in the terminal does not reach it.
        let mut child = command.process_group(0).spawn().map_err(failed)?;
        if let Some(mut stdin) = child.stdin.take() {
            // One that ended already says why on its standard output.
            let _ = stdin.write_all(passphrase.as_bytes());
        }
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line).map_err(failed)?;
        }
        match line.trim() {
            READY => Ok(()),
            "" => Err(CliError::Other("the process in the background ended without a word".to_owned())),
            why => Err(CliError::Other(why.to_owned())),
        }
    }

    /// Has the home open until the time is over, or somebody ends it.
    async fn hold(&self, global: &Global) -> Result<(), CliError> {
        let mut passphrase = Zeroizing::new(String::new());
        let read = std::io::stdin().take(MAX_PASSPHRASE).read_to_string(&mut passphrase);
        read.map_err(|_| HomeError::NoMaster)?;
        let home = global.home();
        global.keep(global.lock().await?);
        let ask = |config: &Config| match &config.key_file {
            Some(_) => master(config),
            None => Ok(Master::Passphrase(passphrase)),
        };
        let gateway = home.open_with(&global.flags(), ask).await?;
        home.renew_admin(&gateway)?;
        let app = App::new(gateway.clone());
        let end = Arc::new(Notify::new());
        let router = app.clone().with_lock(end.clone()).owner_router();
        let failed =
            |e: std::io::Error| CliError::File(home.file(crate::system::socket::NAME), e.to_string());
        let socket = || OwnerSocket::open_with(home.path(), router.clone());
        let socket = gateway.store.space().finish(socket).map_err(failed)?;
        let sweeper = tokio::spawn(serve::sweep(gateway.clone(), app));
        let mut out = std::io::stdout();
        writeln!(out, "{READY}").and_then(|()| out.flush()).map_err(failed)?;
        tokio::select! {
            () = tokio::time::sleep(self.time) => {}
            () = end.notified() => {}
            () = serve::stop_signal() => {}
        }
        serve::wind_down(&gateway, socket, sweeper).await;
        Ok(())
    }
}

impl Lock {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        let home = global.home();
        let done = Locked { locked: true };
        if SocketClient::connect(home.path()).await.map_err(HomeError::from)?.is_none() {
            output::print(global.json, &done, |_| "is locked already".to_owned());
            return Ok(());
        }
        let owner = global.owner().await?;
        match owner.send::<End>((), &()).await {
            Ok(done) => {
                drop(owner);
                // Once this returns, the process is gone and its memory with it.
                drop(global.lock().await?);
                output::print(global.json, &done, |_| "locked".to_owned());
            }
            Err(ClientError::Refused { status: 404, .. }) => {
                let why = "a server has this gateway open, not `unlock`: end the server instead";
                return Err(CliError::Other(why.to_owned()));
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        for (text, seconds) in [("90s", 90), ("15m", 900), ("12h", 43_200)] {
            assert_eq!(time(text), Ok(Duration::from_secs(seconds)));
        }
        for text in ["", "m", "0m", "13h", "1d", "-1m", "1.5h", "1µ"] {
            assert!(time(text).is_err(), "{text}");
        }
    }
}
