//! `oap-memory query`

mod witnessed;

use super::output::{OutFile, VisibleItem};
use super::{CliError, Global, output, screen, values};
use crate::api::access::{AnswerNote, NoteAnswer};
use crate::client::HomeProver;
use crate::system::clock::{SystemClock, SystemRandom};
use crate::system::config::Config;
use crate::system::home::{HomeError, resolver, web_policy};
use crate::system::outgoing;
use oap_client::{ClientError, KeyProver, Prover, Remote, keyfile, locate};
use oap_grants::grant::UnverifiedGrant;
use oap_identity::{Clock, Did, Hash};
use oap_memory::item::Kind;
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;

/// Query another gateway as a grantee
#[derive(clap::Args)]
#[command(after_help = "Examples:
  oap-memory query --key my.key --grant grant.json \"preferred meeting times\"
  oap-memory query --key my.key --grant grant.json --max-results 50 --save answer.json
  oap-memory query --key my.key --grant grant.json --export slice.bundle
  oap-memory query https://localhost:8443 --key my.key --grant grant.json --allow-local-dids --trust-ca ca.pem
  oap-memory query --grant to-my-gateway.json \"budget\"      (with the keys of the home)

The grant leads to its granter's gateway; a URL is needed only where it does not. Who asks is the grantee: by a key
of `oap-memory key new`, or by the keys of the home. Every answer is checked before it is shown.")]
pub(super) struct Query {
    /// The question; without one the newest items are listed. A URL before it names the granter's gateway
    #[arg(value_name = "TEXT", num_args = 0..=2)]
    asked: Vec<String>,
    /// The grant, as its granter handed it over
    #[arg(long, value_name = "FILE")]
    grant: PathBuf,
    /// The grants that it was made from, first one first, where it is a delegated one
    #[arg(long, value_name = "FILE")]
    chain: Vec<PathBuf>,
    /// Ask with this key, without a home
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// At most so many items, 1 to 100
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=100))]
    max_results: u16,
    /// Only items of this kind; may be given several times
    #[arg(long, value_parser = values::kind())]
    kind: Vec<Kind>,
    /// Only items with one of these labels
    #[arg(long, value_parser = values::short)]
    label: Vec<String>,
    /// The purpose, one of the codes that the grant names
    #[arg(long, value_name = "CODE", value_parser = values::purpose_code)]
    purpose: Option<String>,
    /// Ask for embeddings
    #[arg(long)]
    include_embeddings: bool,
    /// Go on where an answer ended
    #[arg(long, value_parser = values::cursor)]
    cursor: Option<String>,
    /// Fetch everything that the grant shows as a bundle instead; the grant must allow exports
    #[arg(long, value_name = "FILE")]
    export: Option<PathBuf>,
    /// Keep the answer, for `oap-memory verify`
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Show the answer only once so many witnesses signed that its receipt is in the granter's log; that takes a minute or two
    #[arg(long, value_name = "N", conflicts_with = "export", value_parser = clap::value_parser!(u8).range(1..=16))]
    witnesses: Option<u8>,
    /// A witness that counts; may be given several times [default: those that you demand of the granter, see `witness demand`]
    #[arg(long, value_name = "DID", requires = "witnesses")]
    witness: Vec<Did>,
}

impl Query {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        let (url, question) = self.asked()?;
        let home = global.home();
        let config = Config::load(home.path(), &global.flags())?;
        let grant = self.document()?;
        let granter = locate::granter(&grant)
            .map_err(|_| CliError::Usage(format!("--grant: {}: not a grant", self.grant.display())))?;
        let chain = self.chain.iter().map(|path| output::read_json_of("--chain", path));
        let chain = chain.collect::<Result<Vec<_>, _>>()?;
        let file = self.export.as_ref().or(self.save.as_ref());
        let file = file.map(|path| OutFile::create(path)).transpose()?;
        let clock = Arc::new(SystemClock);
        let resolver = Arc::new(resolver(&config, clock.clone())?);
        // Whose signatures would count: before the prover has the home open.
        let demanded = match self.witnesses {
            Some(need) => Some(self.demanded(global, &granter, need, &resolver).await?),
            None => None,
        };
        let prover = self.prover(global, &config, &grant).await?;
        let outgoing = outgoing::of_home(&config, &home)?;
        let (client, origin) = match url {
            Some(url) => (outgoing.unguarded(), url),
            None => {
                let policy = web_policy(&config);
                let origin = locate::origin(&grant, &chain, &resolver, policy, clock.now()).await?;
                (outgoing.guarded(policy), origin.to_string())
            }
        };
        let client = client.map_err(HomeError::from)?;
        let remote = Remote::discover(client, resolver, clock.clone(), &origin, &granter).await?;
        let session = remote.exchange(&*prover, &grant, &chain).await?;
        if let Some(path) = &self.export {
            let bytes = session.export(&*prover).await?;
            if let Some(file) = file {
                file.write(&bytes)?;
            }
            let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
            // Beside them a header and a trailer.
            let items = lines.saturating_sub(2);
            output::print(global.json, &json!({"file": path, "items": items}), |_| {
                format!("{items} items in {}; check it with `verify`", path.display())
            });
            return Ok(());
        }
        let checked = session.query(&*prover, &self.body(question)).await?;
        if let Some(demanded) = &demanded {
            if !global.json {
                eprintln!("waiting for the witnesses' signatures; that takes a minute or two, three at most");
            }
            demanded.wait(&session, &*prover, &checked.answer, &*clock).await?;
        }
        if let Some(file) = file {
            file.write((output::pretty(&checked.answer) + "\n").as_bytes())?;
        }
        let hash = Hash::of_canonical(&grant).map_err(ClientError::from)?;
        let (principal, items) = (remote.principal().clone(), checked.verified.items.len());
        let receipt = checked.answer.get("receipt").cloned();
        // It may have the home open.
        drop(prover);
        if self.key.is_none() {
            note(global, hash, items, receipt).await;
        }
        output::print(global.json, &checked.answer, answer);
        if !global.json {
            eprintln!(
                "{} item(s) of {}: signature, receipt, disclosures and chains verified",
                items, principal
            );
            if let Some(demanded) = &demanded {
                eprintln!("{demanded}");
            }
        }
        Ok(())
    }

    /// The grant's document; one that is named as in the wallet is written out first.
    fn document(&self) -> Result<Value, CliError> {
        let named =
            self.grant.to_str().filter(|name| name.starts_with("mgr_") || name.starts_with("sha256:"));
        match named {
            Some(name) if !self.grant.exists() => Err(CliError::Usage(format!(
                "--grant: {name} is no file: `oap-memory grant received show {name} --out grant.json` writes the grant to one"
            ))),
            _ => output::read_json_of("--grant", &self.grant),
        }
    }

    /// The gateway's address, if it is named, and the question.
    fn asked(&self) -> Result<(Option<String>, &str), CliError> {
        let is_scheme = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        let is_address = |text: &str| {
            text.split_once("://")
                .is_some_and(|(before, _)| !before.is_empty() && before.chars().all(is_scheme))
        };
        let address =
            |text: &str| values::url(text).map_err(|e| CliError::Usage(format!("URL: {text:?}: {e}")));
        let (url, question) = match self.asked.as_slice() {
            [] => (None, ""),
            [one] if is_address(one) => (Some(address(one)?), ""),
            [one] => (None, one.as_str()),
            [url, question, ..] if is_address(url) => (Some(address(url)?), question.as_str()),
            _ => return Err(CliError::Usage("a question of several words stands in quotes".to_owned())),
        };
        if self.export.is_some() && !question.is_empty() {
            return Err(CliError::Usage("--export takes no question: it fetches everything".to_owned()));
        }
        Ok((url, question))
    }

    /// Who asks: the key of --key, or the keys of the home.
    async fn prover(
        &self,
        global: &Global,
        config: &Config,
        grant: &Value,
    ) -> Result<Box<dyn Prover>, CliError> {
        let home = global.home();
        let to = || {
            let to = UnverifiedGrant::parse(grant.clone()).map(|grant| grant.unverified().grantee.clone());
            to.map_err(|e| CliError::Proof(format!("--grant: {}: {e}", self.grant.display())))
        };
        let Some(path) = &self.key else {
            let grantee = config.principal(home.path()).map_err(|e| {
                CliError::Other(format!("{e}; or ask with --key FILE, a key of `oap-memory key new`"))
            })?;
            let to = to()?;
            if to != grantee {
                return Err(CliError::Usage(format!(
                    "--grant: is made out to {to}, and this is the home of {grantee}: ask with --key FILE, or --home DIR"
                )));
            }
            return Ok(Box::new(HomeProver::new(grantee, global.owner().await?)));
        };
        let signer = keyfile::read(path).map_err(|e| CliError::File(path.clone(), e.to_string()))?;
        let to = to()?;
        if to != *signer.did() {
            let whose = signer.did();
            return Err(CliError::Usage(format!("--key: is of {whose}, and the grant is made out to {to}")));
        }
        Ok(Box::new(KeyProver::new(signer, Arc::new(SystemClock), Arc::new(SystemRandom))))
    }

    fn body(&self, question: &str) -> Value {
        let mut body = json!({"query": question, "max_results": self.max_results});
        let mut set = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                body[name] = value;
            }
        };
        set("kinds", (!self.kind.is_empty()).then(|| json!(self.kind)));
        set("labels_any", (!self.label.is_empty()).then(|| json!(self.label)));
        set("purpose", self.purpose.as_ref().map(|p| json!(p)));
        set("include_embeddings", self.include_embeddings.then_some(json!(true)));
        set("cursor", self.cursor.as_ref().map(|c| json!(c)));
        body
    }
}

/// Notes in the wallet that an answer came and held, where the grant is there.
async fn note(global: &Global, grant: Hash, items: usize, receipt: Option<Value>) {
    let items = u32::try_from(items).unwrap_or(u32::MAX);
    let noted = match global.owner().await {
        Ok(owner) => match owner.send::<NoteAnswer>(grant, &AnswerNote { items, receipt }).await {
            // It was handed over as a file, and never taken in.
            Err(error) if error.is_gone() => Ok(()),
            noted => noted.map(drop).map_err(CliError::from),
        },
        Err(error) => Err(error),
    };
    // The answer is here all the same.
    if let Err(error) = noted {
        let why = screen::plain(&error.to_string());
        eprintln!("oap-memory: the wallet does not know of this answer: {why}");
    }
}

/// What people are shown of an answer.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Listed {
    items: Vec<VisibleItem>,
    next_cursor: Option<String>,
}

/// What an answer shows to people. Also the demonstration's.
pub(super) fn answer(answer: &Value) -> String {
    let Listed { items, next_cursor } = oap_identity::json::from_value(answer.clone()).unwrap_or_default();
    let rows = items.iter().map(|item| {
        vec![
            output::or_none(item.item_id),
            output::or_none(item.kind),
            output::or_none(item.relevance),
            item.epistemic.clone().unwrap_or_default(),
            output::says(&item.content),
        ]
    });
    let mut text = output::table(&["item", "kind", "relevance", "attitude", "content"], rows);
    if let Some(cursor) = next_cursor {
        text.push_str(&format!("\nmore: --cursor {cursor}"));
    }
    text
}
