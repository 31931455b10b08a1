//! `oap-memory demo`: what somebody else sees of one's memory, on a gateway that is thrown away.
//!
//! The first part is for a reader who knows none of the words; the proofs are in the second.

mod house;
mod proofs;
mod screen;

use super::{CliError, Global, output};
use crate::api::grants::{IssueGrant, Issuing, RevokeGrant};
use crate::api::items::{NewItems, WriteItems};
use crate::system::clock::{SystemClock, SystemRandom};
use crate::system::home::{HomeError, web_policy};
use crate::system::tls::Authority;
use house::House;
use oap_client::ClientError;
use oap_client::grantee::{Remote, Session};
use oap_client::{KeyProver, Prover, keyfile, locate};
use oap_formats::import::locomo;
use oap_identity::{Clock, GrantId, ItemId};
use screen::Screen;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const PROJECT: &str = include_str!("../../../examples/demo/project.json");
const CONVERSATION: &str = include_str!("../../../examples/demo/conversation.json");
/// What the contractor is curious about, and where Alice has it.
const CURIOUS: [(&str, &str); 3] = [
    ("the password itself", "correct-horse-42"),
    ("Alice's health", "migraine medication"),
    ("what her family does", "Sunday dinners"),
];

/// Show the whole story on a throw-away gateway
#[derive(clap::Args)]
#[command(after_help = "Examples:
  oap-memory demo

A made-up person's gateway runs on loopback over TLS with a throw-away authority. She lets a contractor see a part of
what it holds; the contractor has a key and nothing else, asks for more, and checks every proof. Nothing is left behind
without --keep.")]
pub(super) struct Demo {
    /// Leave the folder with everything in it
    #[arg(long)]
    keep: bool,
}

/// What the story showed.
struct Shown {
    seen: usize,
    held: usize,
    hidden: usize,
}

impl Demo {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        let folder = tempfile::Builder::new().prefix("oap-memory-demo-").tempdir().map_err(other)?;
        let screen = Screen { quiet: global.json };
        let told = story(folder.path(), screen).await;
        if self.keep {
            let path = folder.keep();
            screen.say(&format!("\nKept in {}", path.display()));
        }
        let report = told?;
        if global.json {
            output::print(true, &report, |_| String::new());
        }
        Ok(())
    }
}

async fn story(folder: &Path, screen: Screen) -> Result<Value, CliError> {
    let authority = Authority::new().map_err(other)?;
    output::write(&folder.join("ca.pem"), &authority.pem())?;
    let mut alice = House::start(folder, &authority).await?;
    let told = tell(folder, &mut alice, screen).await;
    alice.stop().await;
    told
}

async fn tell(folder: &Path, alice: &mut House, screen: Screen) -> Result<Value, CliError> {
    screen.text(
        "Your assistant knows things about you. Here is how somebody else gets to see a part of them, and that part \
         alone. The people are made up; everything runs on this machine and is gone afterwards.",
    );
    screen.title("1. What Alice's assistant has noted");
    let notes: Vec<Value> = serde_json::from_str(PROJECT).map_err(other)?;
    let conversation: Value = serde_json::from_str(CONVERSATION).map_err(other)?;
    let turns = locomo::items(&conversation, &["conversation"]);
    let held: Vec<Value> = notes.iter().chain(&turns).cloned().collect();
    let written = alice.owner.send::<WriteItems>((), &NewItems { items: held }).await?.items;
    let ids: Vec<ItemId> = written.iter().map(|item| item.item_id).collect();
    screen.text(&format!(
        "{} notes about her work and her life, and {} turns of a conversation. They are sealed in a gateway of her own.",
        notes.len(),
        turns.len()
    ));

    screen.title("2. She lets a contractor see what is about the new website");
    let key_file = folder.join("my.key");
    let signer = keyfile::create(&key_file, None, &SystemRandom).map_err(ClientError::from)?;
    let draft = serde_json::from_value(json!({
        "grantee": signer.did(), "purpose": "Brief the contractor on the website redesign project.",
        "filter": {"labels_any": ["website_redesign"]}, "max_items": 500,
        "expires_at": SystemClock.now().plus(Duration::from_secs(30 * 86_400)),
        "redaction_profile": "oap.profile.projection.contact.v1", "trust_level": 2,
    }));
    let draft = draft.map_err(other)?;
    let issued = alice.owner.ask::<IssueGrant>(&(), &Issuing::default(), &draft).await?;
    let grant = issued.grant.whole();
    output::write(&folder.join("grant.json"), &output::pretty(grant))?;
    screen.text(
        "She signs a grant: for this contractor alone, for 30 days, only notes with the label website_redesign, personal \
         details hidden. The contractor asks with it, and gets the right side of this:",
    );
    screen.gap();
    let contractor = KeyProver::new(signer, Arc::new(SystemClock), Arc::new(SystemRandom));
    let remote = remote(alice, grant).await?;
    let session = remote.exchange(&contractor, grant, &[]).await?;
    let all = session.query(&contractor, &json!({"max_results": 100})).await?;
    output::write(&folder.join("answer.json"), &output::pretty(&all.answer))?;
    let shown = side_by_side(&notes, &ids, turns.len(), &all.answer, screen);

    screen.title("3. The contractor asks for more");
    let mut rows = Vec::new();
    for (what, words) in CURIOUS {
        let checked = session.query(&contractor, &json!({"query": words, "max_results": 100})).await?;
        let leaked = checked.answer.to_string().contains(words);
        let found = checked.verified.items.len();
        if leaked || found > 0 {
            return Err(CliError::Proof(format!("{what}: the contractor got {found} notes")));
        }
        rows.push([format!("{what}: \"{words}\""), "nothing found".to_owned()]);
    }
    screen.pairs(&rows);
    screen.gap();
    screen.text(
        "What the contractor may not see does not exist for them: it is not found, not counted, and changes no answer.",
    );

    screen.title("4. Alice takes the grant back");
    let refused = take_back(alice, issued.grant.grant_id, &session, &contractor).await?;
    screen.text(&format!("The contractor asks again, and is told: {refused}"));

    screen.title("In one line");
    screen.text(&format!(
        "The contractor saw {} of Alice's {} notes, personal details hidden; asked {} times for more and got nothing; and sees \
         nothing any more.",
        shown.seen,
        shown.held,
        CURIOUS.len()
    ));
    screen.title("Do it yourself");
    screen.commands(COMMANDS);

    screen.title("Part two, for those who want it exact: the proofs");
    let first = ids.first().copied().ok_or_else(|| other("nothing was written"))?;
    let proved = proofs::tell(alice, &all.answer, first, screen).await?;
    Ok(json!({
        "captured": shown.held, "shown": shown.seen, "hidden_places": shown.hidden, "asked_for_more": CURIOUS.len(),
        "revoked_refused": refused, "tampered_refused": proved.refusals, "chains": proved.chains,
    }))
}

/// The way from the grant to Alice's gateway, as `query` goes it.
async fn remote(alice: &House, grant: &Value) -> Result<Remote, CliError> {
    let config = alice.config()?;
    let resolver = Arc::new(crate::system::home::resolver(&config, Arc::new(SystemClock))?);
    let policy = web_policy(&config);
    let origin = locate::origin(grant, &[], &resolver, policy, SystemClock.now()).await?;
    let client = alice.outgoing(&config)?.guarded(policy).map_err(HomeError::from)?;
    let granter = locate::granter(grant)?;
    Ok(Remote::discover(client, resolver, Arc::new(SystemClock), origin.as_str(), &granter).await?)
}

/// Prints what Alice holds beside what the contractor got.
fn side_by_side(notes: &[Value], ids: &[ItemId], turns: usize, answer: &Value, screen: Screen) -> Shown {
    let seen = answer["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut hidden = 0;
    let mut rows = Vec::new();
    for (note, id) in notes.iter().zip(ids) {
        let right = seen.iter().find(|item| item["item_id"] == json!(id)).map(screen::plain);
        hidden += right.as_deref().map_or(0, screen::marks);
        rows.push([screen::plain(note), right.unwrap_or_else(|| "-".to_owned())]);
    }
    rows.push([format!("({turns} turns of a conversation)"), "-".to_owned()]);
    screen.columns(["What Alice holds", "What the contractor sees"], &rows);
    Shown { seen: seen.len(), held: notes.len() + turns, hidden }
}

/// Revokes the grant; what the contractor is told then.
async fn take_back(
    alice: &mut House,
    grant: GrantId,
    session: &Session<'_>,
    contractor: &dyn Prover,
) -> Result<String, CliError> {
    alice.owner.send::<RevokeGrant>(grant, &()).await?;
    match session.query(contractor, &json!({"max_results": 100})).await {
        Err(ClientError::Refused { status: 403, message, .. }) => Ok(message),
        Err(error) => Err(error.into()),
        Ok(_) => Err(CliError::Proof("a revoked grant was answered".to_owned())),
    }
}

/// How to do the same for good.
const COMMANDS: &str = "\
The contractor makes a key, and tells you the DID that this prints:

  oap-memory key new --out my.key

You, with a name of your own where others reach it:

  oap-memory init --did did:web:memory.example.org --key-file ./master.key
  oap-memory item add --kind preference --label website \\
      --text \"Meetings on Tuesday mornings\"
  oap-memory grant issue --to did:key:z6Mk... --purpose \"Website redesign\" \\
      --label website --until 30d --trust-level 2 --out grant.json
  oap-memory serve

The contractor, with the file that you hand over:

  oap-memory query --key my.key --grant grant.json \"when to meet\"

And when the work is done:

  oap-memory grant revoke mgr_...";

fn other(error: impl std::fmt::Display) -> CliError {
    CliError::Other(error.to_string())
}
