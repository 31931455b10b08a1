//! `oap-memory recall` and `oap-memory incidents`

use super::{CliError, Global, output, screen, values};
use crate::api::recall::{LieList, ListLies, RecallItems, RecallQuery, Recollection};
use oap_agents::foreign::{AskedPeer, FromPeers, Via};
use oap_federation::verdict::{MAX_DEADLINE, PeerStanding};
use oap_memory::Kind;

/// Search your own memory and those that you were granted to read, at once
#[derive(clap::Args)]
#[command(after_help = "Examples:
  oap-memory recall \"meeting times\"
  oap-memory recall budget --limit 10 --deadline 10
  oap-memory recall tea --kind preference --own-only --json

Your own memory is asked, and under every live grant of `grant received` its granter's, all at once. They are sent your
words. Every answer is proved before it is believed; whoever is slow, refuses or lies is named, and the rest comes all the
same. Each memory has its turn in the list; what comes from others is theirs, external and at most half sure, and is not
kept.")]
pub(super) struct Recall {
    /// The words
    text: String,
    /// Only of this kind; may be given several times
    #[arg(long, value_parser = values::kind())]
    kind: Vec<Kind>,
    /// At most so many of all together
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=100))]
    limit: u16,
    /// Wait so many seconds for others at most
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 5,
        value_parser = clap::value_parser!(u64).range(1..=MAX_DEADLINE.as_secs())
    )]
    deadline: u64,
    /// Ask nobody else
    #[arg(long)]
    own_only: bool,
}

impl Recall {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        if self.text.trim().is_empty() {
            return Err(CliError::Usage("TEXT: say at least one word".to_owned()));
        }
        let query = RecallQuery {
            text: self.text,
            kinds: self.kind,
            limit: Some(self.limit.into()),
            deadline: Some(self.deadline),
            own_only: self.own_only,
        };
        let found = global.owner().await?.send::<RecallItems>((), &query).await?;
        output::print(global.json, &found, list);
        Ok(())
    }
}

/// What was found, in the order of the whole list, and who did not answer.
fn list(found: &Recollection) -> String {
    let nobody = FromPeers::default();
    let from_peers = found.from_peers.as_ref().unwrap_or(&nobody);
    let mut theirs = from_peers.items.iter().map(|item| {
        let says = item.content.clone().or_else(|| item.structured.as_ref().map(output::pretty));
        let row = vec![
            item.item_id.to_string(),
            item.kind.to_string(),
            whose(&item.shown_by),
            item.confidence.to_string(),
            screen::line(&says.unwrap_or_default()),
        ];
        (item.place, row)
    });
    let mut own = found.items.iter().map(|item| {
        let also = from_peers.also_shown.iter().find(|also| also.item_id == item.item_id);
        let also = also.map(|also| format!(", {}", whose(&also.shown_by))).unwrap_or_default();
        vec![
            item.item_id.to_string(),
            output::or_none(item.kind),
            format!("own{also}"),
            String::new(),
            item.snippet.clone().unwrap_or_default(),
        ]
    });
    let (mut rows, mut next) = (Vec::new(), theirs.next());
    loop {
        match next.take_if(|(place, _)| *place <= rows.len() + 1) {
            Some((_, row)) => {
                rows.push(row);
                next = theirs.next();
            }
            None => match own.next() {
                Some(row) => rows.push(row),
                None => break,
            },
        }
    }
    rows.extend(next.into_iter().chain(theirs).map(|(_, row)| row));
    let mut text = if rows.is_empty() {
        "nothing found".to_owned()
    } else {
        output::table(&["item", "kind", "whose", "confidence", "says"], rows)
    };
    for asked in &from_peers.peers {
        if let Some(line) = told(asked) {
            text.push_str(&format!("\n{}: {line}", asked.peer));
        }
    }
    if from_peers.not_asked > 0 {
        text.push_str(&format!("\n{} more grants were not asked under", from_peers.not_asked));
    }
    text
}

/// Whose memories showed an item.
fn whose(shown_by: &[Via]) -> String {
    shown_by.iter().map(|via| via.peer.to_string()).collect::<Vec<_>>().join(", ")
}

/// What there is to say of one that was asked, beside what it showed.
fn told(asked: &AskedPeer) -> Option<String> {
    let reason = asked.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
    match asked.verdict {
        PeerStanding::Answered if asked.stopped + asked.left == 0 => None,
        PeerStanding::Answered => Some(format!(
            "{} left out that read as orders to whoever reads them, {} more than --limit lets in",
            asked.stopped, asked.left
        )),
        PeerStanding::Slow => Some("did not answer in time; --deadline waits longer".to_owned()),
        PeerStanding::Refused => Some(format!("refused{reason}")),
        PeerStanding::Lied => {
            Some(format!("its answer does not hold{reason}; `oap-memory incidents` has it"))
        }
        PeerStanding::Unreachable => Some(format!("no answer{reason}")),
    }
}

/// See what other gateways said that is not so
#[derive(clap::Args)]
#[command(after_help = "Examples:
  oap-memory incidents
  oap-memory incidents --json

An answer whose signature, chain, receipt or disclosure does not hold, that was given under another grant, to another query
or to somebody else, is not believed. It stands here with its hash and its first bytes (--json).")]
pub(super) struct IncidentsCommand {}

impl IncidentsCommand {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        let found = global.owner().await?.get::<ListLies>((), &()).await?;
        output::print(global.json, &found, lies);
        Ok(())
    }
}

fn lies(found: &LieList) -> String {
    if found.lies.is_empty() {
        return "no incidents: what others said held".to_owned();
    }
    let rows = found.lies.iter().map(|lie| {
        vec![
            lie.last_at.to_string(),
            lie.times.to_string(),
            lie.peer.to_string(),
            lie.lie.to_string(),
            lie.grant.to_string(),
            screen::line(&lie.says),
        ]
    });
    output::table(&["last", "times", "peer", "lie", "grant", "why"], rows)
}
