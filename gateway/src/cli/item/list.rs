//! `oap-memory item list`

use crate::api::Document;
use crate::api::items as api;
use crate::api::items::{ItemPage, ListQuery};
use crate::api::prefix::ItemPrefix;
use crate::cli::names::Names;
use crate::cli::when::{self, When};
use crate::cli::{CliError, ids, output, values};
use oap_client::OwnerClient;
use oap_identity::{Did, ScopeId, Timestamp};
use oap_memory::Status;
use oap_memory::item::Kind;

/// Items of one page.
const PAGE: usize = 500;

/// List items, newest first
#[derive(clap::Args)]
pub(in crate::cli) struct List {
    /// Only of this kind
    #[arg(long, value_parser = values::kind())]
    kind: Option<Kind>,
    /// Only with this label
    #[arg(long, value_parser = values::short)]
    label: Option<String>,
    /// Only of this scope
    #[arg(long)]
    scope: Option<ScopeId>,
    /// Only about this subject
    #[arg(long, value_parser = values::short)]
    subject: Option<String>,
    /// Only in this state
    #[arg(long, value_parser = values::listed(), default_value = "current")]
    status: Status,
    /// Only those that an agent wrote and that wait for your confirmation
    #[arg(long)]
    waiting: bool,
    /// Only older than this item
    #[arg(long, value_name = "ID")]
    before: Option<ItemPrefix>,
    /// Only captured at or after this time
    #[arg(long, value_name = "TIME")]
    since: Option<When>,
    /// Only captured until this time
    #[arg(long, value_name = "TIME")]
    until: Option<When>,
    /// At most so many
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
}

impl List {
    fn query(&self) -> ListQuery {
        ListQuery {
            kind: self.kind,
            label: self.label.clone(),
            scope: self.scope.clone(),
            subject: self.subject.clone(),
            status: Some(self.status),
            waiting: self.waiting,
            ..ListQuery::default()
        }
    }

    /// The items, and where to go on.
    pub(super) async fn page(&self, owner: &OwnerClient) -> Result<ItemPage, CliError> {
        let mut before = match &self.before {
            Some(before) => Some(ids::one(owner, before).await?),
            None => None,
        };
        let timed = self.since.is_some() || self.until.is_some();
        let limit = usize::from(self.limit);
        let now = when::now();
        let (since, until) = (self.since.map(|t| t.since(now)), self.until.map(|t| t.until(now)));
        let mut found: Vec<Document<api::Item>> = Vec::new();
        // The gateway lists by the time of writing; the time of capture is another, and may be any.
        loop {
            let query = ListQuery { limit: Some(if timed { PAGE } else { limit }), before, ..self.query() };
            let page = owner.get::<api::ListItems>((), &query).await?;
            if !timed {
                return Ok(page);
            }
            found.extend(page.items.into_iter().filter(|item| captured(item, since, until)));
            before = page.next;
            if before.is_none() || found.len() > limit {
                break;
            }
        }
        let more = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| more).map(|item| item.item_id);
        Ok(ItemPage { items: found, next })
    }
}

/// Whether an item was captured in this time: from its beginning, to before its end.
fn captured(item: &api::Item, since: Option<Timestamp>, until: Option<Timestamp>) -> bool {
    let at = item.provenance.captured_at;
    at.is_some_and(|at| since.is_none_or(|since| at >= since) && until.is_none_or(|until| at < until))
}

/// The agent that wrote an item, if one did.
fn by(item: &Document<api::Item>, names: &Names) -> Option<String> {
    let is_owners = item.whole()["owner_did"].as_str() == item.author.as_ref().map(Did::as_str);
    item.author.as_ref().filter(|_| !is_owners).map(|author| names.who(author))
}

/// The authors of a page.
pub(super) fn authors(page: &ItemPage) -> impl Iterator<Item = &str> {
    page.items.iter().filter_map(|item| item.author.as_ref()).map(Did::as_str)
}

/// A page, for people.
pub(in crate::cli) fn table(page: &ItemPage, names: &Names) -> String {
    // Where none waits there is nothing to tell.
    let waits = page.items.iter().any(|item| item.waiting);
    let agents = page.items.iter().any(|item| by(item, names).is_some());
    let header = ["item", "kind", "scope", "labels", "by", "waits", "content"];
    let shown = |column: &str| (waits || column != "waits") && (agents || column != "by");
    let rows = page.items.iter().map(|item| {
        let cells = [
            item.item_id.to_string(),
            output::or_none(item.kind),
            output::or_none(item.scope_id.as_ref()),
            item.labels.join(" "),
            by(item, names).unwrap_or_default(),
            if item.waiting { "yes" } else { "" }.to_owned(),
            output::says(&item.content),
        ];
        header.into_iter().zip(cells).filter(|(column, _)| shown(column)).map(|(_, cell)| cell).collect()
    });
    let columns: Vec<&str> = header.into_iter().filter(|column| shown(column)).collect();
    let mut text = output::table(&columns, rows);
    if let Some(next) = page.next {
        text.push_str(&format!("\nmore: --before {next}"));
    }
    text
}
