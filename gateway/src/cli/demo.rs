//! `oap-memory demo`: the main job, on two gateways that are thrown away.

use super::{CliError, Global, grant, output, query};
use crate::ambient::SystemClock;
use crate::client::ClientError;
use crate::client::grantee::Remote;
use crate::client::owner::{Caller, OwnerClient, http_client};
use crate::config::Config;
use crate::gateway::Gateway;
use crate::home::{Home, Init, resolver};
use crate::serve;
use crate::tls::Authority;
use oap_identity::{Clock, Did, DidDocument};
use oap_memory::evidence;
use oap_memory::import::locomo;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

const PROJECT: &str = include_str!("../../../examples/demo/project.json");
/// A receipt that is not there.
const EXAMPLE_RECEIPT: &str = "urn:oap:receipt:01J9V8B7H1ZK4D2A0M9R8F0KQX";
const CONVERSATION: &str = include_str!("../../../examples/demo/conversation.json");
/// Where real conversations are, beside the project.
const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/data/locomo-dev");

/// Show the whole story on a throw-away pair of gateways
#[derive(clap::Args)]
#[command(
    after_help = "Two principals' gateways run on loopback over TLS with a throw-away authority. One captures a
conversation, contacts and preferences, previews and issues a grant, and takes it back; the other queries as the
contractor and checks every proof. Nothing is left behind without --keep."
)]
pub(super) struct Demo {
    /// Leave the folder with everything in it
    #[arg(long)]
    keep: bool,
    /// A conversation in the form of LoCoMo to import
    #[arg(long, value_name = "FILE")]
    conversation: Option<PathBuf>,
}

/// One principal with a running gateway.
struct Party {
    name: &'static str,
    did: Did,
    gateway: Arc<Gateway>,
    owner: OwnerClient,
    home: Home,
    stop: Option<oneshot::Sender<()>>,
    server: JoinHandle<()>,
}

/// Changes one thing at a time, checks the copy, and returns what was changed and what the check says. An item is
/// checked on its own too, as one who got it without the answer's signature would.
fn tampered(answer: &Value, owner_key: &DidDocument) -> Result<Vec<[String; 2]>, CliError> {
    let mut refusals = Vec::new();
    let mut refused = |what: &str, result: Result<(), String>| match result {
        Ok(()) => Err(CliError::Proof(format!("{what}: was accepted"))),
        Err(refusal) => {
            refusals.push([what.to_owned(), refusal]);
            Ok(())
        }
    };
    let whole = |change: &dyn Fn(&mut Value)| {
        let mut copy = answer.clone();
        change(&mut copy);
        evidence::answer(&copy, owner_key).map(drop).map_err(|e| e.to_string())
    };
    refused("an item left out", whole(&|copy| drop(copy["items"].as_array_mut().map(|i| i.pop()))))?;
    refused("another receipt id", whole(&|copy| copy["receipt"]["receipt_id"] = json!(EXAMPLE_RECEIPT)))?;
    let item = |change: &dyn Fn(&mut Value)| {
        let mut copy = answer["items"][0].clone();
        change(&mut copy);
        evidence::item(&copy, owner_key).map(drop).map_err(|e| e.to_string())
    };
    refused(
        "another confidence in what it shows",
        item(&|copy| copy["provenance"]["confidence"] = json!(1)),
    )?;
    refused(
        "a disclosure left out",
        item(&|copy| {
            let sd_jwt = copy["integrity"]["sd_jwt"].as_str().unwrap_or_default().to_owned();
            let cut = sd_jwt.trim_end_matches('~').rsplit_once('~').map_or("", |(rest, _)| rest);
            copy["integrity"]["sd_jwt"] = json!(format!("{cut}~"));
        }),
    )?;
    refused(
        "an earlier date in its chain",
        item(&|copy| {
            copy["integrity"]["chain"][0]["at"] = json!("2020-01-01T00:00:00.000Z");
        }),
    )?;
    refused(
        "the chain of another item",
        item(&|copy| {
            copy["integrity"]["chain"] = answer["items"][1]["integrity"]["chain"].clone();
        }),
    )?;
    Ok(refusals)
}

impl Demo {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        let folder = tempfile::Builder::new().prefix("oap-memory-demo-").tempdir().map_err(other)?;
        let story = self.story(folder.path(), global.json).await;
        if self.keep {
            let path = folder.keep();
            say(&format!("\nKept in {}", path.display()));
        }
        let report = story?;
        if global.json {
            output::print(true, &report, |_| String::new());
        }
        Ok(())
    }

    async fn story(&self, folder: &Path, quiet: bool) -> Result<Value, CliError> {
        let say = |text: &str| {
            if !quiet {
                say(text)
            }
        };
        let step = |n: u32, text: &str| say(&format!("\n{n}. {text}\n"));
        step(1, "Two principals, each with a gateway of their own, over TLS on loopback");
        let authority = Authority::new().map_err(other)?;
        output::write(&folder.join("ca.pem"), &authority.pem())?;
        let mut alice = Party::start("Alice", folder, &authority).await?;
        let mut contractor = Party::start("The contractor", folder, &authority).await?;
        for party in [&alice, &contractor] {
            say(&format!("   {:<15} {}", party.name, party.did));
        }
        let told = tell(self, folder, &mut alice, &mut contractor, &say, &step).await;
        alice.stop().await;
        contractor.stop().await;
        told
    }
}

async fn tell(
    demo: &Demo,
    folder: &Path,
    alice: &mut Party,
    contractor: &mut Party,
    say: &impl Fn(&str),
    step: &impl Fn(u32, &str),
) -> Result<Value, CliError> {
    step(2, "Alice's assistant captures what it knows");
    let (conversation, source) = demo.conversation()?;
    let mut items: Vec<Value> = serde_json::from_str(PROJECT).map_err(other)?;
    let about_project = items.len();
    items.extend(locomo::items(&conversation, &["conversation"]));
    let began = SystemClock.now();
    for batch in items.chunks(500) {
        alice.owner.call("POST", "/oap/owner/items", &[], Some(&json!({"items": batch}))).await?;
    }
    let millis = SystemClock.now().millis() - began.millis();
    say(&format!(
        "   {about_project} facts, preferences and contacts about a project; {} turns of {source}",
        items.len() - about_project
    ));
    say(&format!("   {} items signed, sealed and receipted in {millis} ms", items.len()));

    step(3, "Alice previews a grant: the contractor, items about the redesign, contacts at level 2");
    let draft = json!({
        "grantee": contractor.did, "purpose": "Brief the contractor on the website redesign project.",
        "filter": {"labels_any": ["website_redesign"]}, "max_items": 500,
        "expires_at": SystemClock.now().plus(Duration::from_secs(30 * 86_400)),
        "redaction_profile": "oap.profile.projection.contact.v1", "trust_level": 2,
    });
    let preview = alice.owner.call("POST", "/oap/owner/grants/preview", &[], Some(&draft)).await?;
    say(&grant::preview(&preview));

    step(4, "Alice signs the grant and hands it over");
    let issued = alice.owner.call("POST", "/oap/owner/grants", &[], Some(&draft)).await?;
    let document = &issued["grant"];
    output::write(&folder.join("grant.json"), &output::pretty(document))?;
    say(&format!(
        "   {} until {}, signed by {}",
        output::text(document, "/grant_id"),
        output::text(document, "/expires_at"),
        alice.did
    ));

    step(5, "The contractor exchanges the grant for a token bound to its key, and asks");
    let config = Config::load(contractor.home.path(), &BTreeMap::new())?;
    let resolver = Arc::new(resolver(&config, Arc::new(SystemClock))?);
    let client = http_client(&config, &contractor.home)?;
    let remote = Remote::discover(client, resolver, alice.gateway.origin()).await?;
    let session = remote.exchange(&mut contractor.owner, document, &[]).await?;
    let token = session.token();
    say(&format!("   a {} token for {} seconds", token.token_type, token.expires_in));
    let question = json!({"query": "what is the budget and when are meetings preferred?", "max_results": 10});
    let checked = session.query(&mut contractor.owner, &question, &contractor.did).await?;
    output::write(&folder.join("answer.json"), &output::pretty(&checked.answer))?;
    say(&query::answer(&checked.answer));

    step(6, "What was shown and what was hidden, item by item");
    let all = session.query(&mut contractor.owner, &json!({"max_results": 100}), &contractor.did).await?;
    let shown = all.answer["items"].as_array().cloned().unwrap_or_default();
    let mut hidden_places = 0;
    for item in &shown {
        let hidden = hidden_of(&preview, item);
        hidden_places += hidden.len();
        say(&format!("   {} ({})", output::text(item, "/item_id"), output::text(item, "/kind")));
        say(&format!("      shown   {}", output::short(&output::gist(item), 90)));
        say(&format!("      hidden  {}", hidden.join(", ")));
    }
    say(&format!(
        "   {} of {} items are in the contractor's view; to the contractor the others do not exist",
        shown.len(),
        items.len()
    ));

    step(7, "Every proof holds, offline, with Alice's public key alone");
    let document_bytes = serde_json::to_vec(&alice.gateway.published().did).map_err(other)?;
    let owner_key = DidDocument::parse(&document_bytes, &alice.did).map_err(other)?;
    let verified = evidence::answer(&all.answer, &owner_key).map_err(ClientError::from)?;
    if let Some(first) = verified.items.first() {
        for line in evidence::explain(first) {
            say(&format!("   {line}"));
        }
    }
    say(&format!(
        "   answer signature, receipt {}, {} SD-JWTs, chains and capture receipts: all hold",
        verified.receipt.receipt_id.short(),
        verified.items.len()
    ));

    step(8, "A tampered copy does not");
    let refusals = tampered(&all.answer, &owner_key)?;
    say(&output::table(&["what was changed", "what the check says"], refusals.iter().map(|r| r.to_vec())));

    step(9, "Alice takes the grant back; the next answer is a refusal");
    let id = output::text(document, "/grant_id");
    let path = format!("/oap/owner/grants/{id}/revoke");
    alice.owner.call("POST", &path, &[], Some(&json!({}))).await?;
    let refused = match session.query(&mut contractor.owner, &question, &contractor.did).await {
        Err(ClientError::Refused { status: 403, message, .. }) => message,
        Err(error) => return Err(error.into()),
        Ok(_) => return Err(CliError::Proof("a revoked grant was answered".to_owned())),
    };
    say(&format!("   403: {refused}"));

    step(10, "Alice's audit log has it all, and every chain holds");
    let log = alice.owner.call("GET", "/oap/audit", &[("limit", "1000".to_owned())], None).await?;
    let chains = alice.owner.call("GET", "/oap/owner/audit/verify", &[], None).await?;
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for receipt in log["receipts"].as_array().into_iter().flatten() {
        let key = format!(
            "{} {}",
            output::text(receipt, "/action_id"),
            output::text(receipt, "/policy_decisions/0/outcome")
        );
        *counts.entry(key).or_default() += 1;
    }
    let rows = counts.iter().map(|(what, n)| vec![what.clone(), n.to_string()]);
    say(&output::table(&["of the last 1000 receipts", ""], rows));
    for chain in chains["chains"].as_array().into_iter().flatten() {
        say(&format!(
            "   chain {:<12} {} entries, verified to its head",
            output::text(chain, "/chain"),
            output::text(chain, "/length")
        ));
    }
    Ok(json!({
        "captured": items.len(), "shown": shown.len(), "hidden_places": hidden_places,
        "tampered_refused": refusals, "revoked_refused": refused, "chains": chains["chains"],
    }))
}

impl Demo {
    /// A real conversation where there is one, else the small original one.
    fn conversation(&self) -> Result<(Value, String), CliError> {
        let given = self.conversation.clone();
        let real = || {
            [Path::new("../shared/data/locomo-dev"), Path::new(DATA)]
                .iter()
                .map(|folder| folder.join("26.json"))
                .find(|path| path.is_file())
        };
        match given.or_else(real) {
            Some(path) => Ok((output::read_json(&path)?, format!("the conversation {}", path.display()))),
            None => {
                Ok((serde_json::from_str(CONVERSATION).map_err(other)?, "a small conversation".to_owned()))
            }
        }
    }
}

impl Party {
    async fn start(name: &'static str, folder: &Path, authority: &Authority) -> Result<Self, CliError> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(other)?;
        let address = listener.local_addr().map_err(other)?;
        let did = Did::web(&format!("localhost:{}", address.port())).map_err(other)?;
        let path = folder.join(name.to_lowercase().replace(' ', "-"));
        let home = Home::new(path.clone());
        let settings = BTreeMap::from([
            ("listen".to_owned(), json!(address)),
            ("trust_ca".to_owned(), json!(folder.join("ca.pem"))),
            ("tls_cert".to_owned(), json!(path.join("cert.pem"))),
            ("tls_key".to_owned(), json!(path.join("key.pem"))),
            ("allow_local_dids".to_owned(), json!(true)),
        ]);
        let key_file = Some(folder.join(format!("{}.key", address.port())));
        let did = home.init(Init { did: Some(did), settings, key_file }).await?;
        let (certificate, key) = authority.issue("localhost").map_err(other)?;
        output::write(&path.join("cert.pem"), &certificate)?;
        crate::home::write_private(&path.join("key.pem"), key.as_bytes())?;
        let gateway = home.open(&BTreeMap::new()).await?;
        let (stop, stopped) = oneshot::channel();
        let server = tokio::spawn({
            let (gateway, home) = (gateway.clone(), home.clone());
            async move {
                let stopped = async { drop(stopped.await) };
                if let Err(error) = serve::serve(gateway, &home, listener, stopped).await {
                    tracing::error!(%error, "the demonstration's server failed");
                }
            }
        });
        // The store is open in this process: the client goes over the socket in the home, as every command does.
        let owner = OwnerClient::connect(home.clone(), &BTreeMap::new(), Caller::default()).await?;
        Ok(Self { name, did, gateway, owner, home, stop: Some(stop), server })
    }

    async fn stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        let _ = (&mut self.server).await;
    }
}

/// What the preview says is hidden of an item.
fn hidden_of(preview: &Value, item: &Value) -> Vec<String> {
    let previewed = preview["items"].as_array().into_iter().flatten();
    previewed
        .filter(|p| p["visible"]["item_id"] == item["item_id"])
        .flat_map(|p| p["hidden"].as_array().cloned().unwrap_or_default())
        .filter_map(|place| place.as_str().map(str::to_owned))
        .collect()
}

fn say(text: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stdout(), "{}", text.trim_end());
}

fn other(error: impl std::fmt::Display) -> CliError {
    CliError::Other(error.to_string())
}
