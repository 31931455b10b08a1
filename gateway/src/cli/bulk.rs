//! `oap-memory item relabel`, `item retract`: of one item, or of many by selectors.

use super::selectors::{Act, Asking, Selectors, confirmed, select};
use super::{CliError, Global, ids, output, values};
use crate::api::items::{RelabelItem, Relabelling, RetractItem, ShowItem};
use crate::api::prefix::ItemPrefix;
use crate::api::selections::{
    BulkRelabel, BulkRetract, Changed, NewLabels, RelabelItems, RetractItems, Selection,
};
use crate::service::bulk::MAX_BULK;
use oap_client::ClientError;
use oap_client::OwnerClient;
use oap_identity::ItemId;
use oap_memory::Status;

/// Change the labels of an item, or of many
#[derive(clap::Args)]
#[command(after_help = "Examples:
  oap-memory item relabel mem_01... --label website --label dates
  oap-memory item relabel mem_01... --clear
  oap-memory item relabel --with-label web --add website --remove web --dry-run
  oap-memory item relabel --provenance imported_from=chatgpt --since 2025-01-01 --add old --yes

Different selectors intersect: --with-label a --subject p is what has label a AND is about p. The same one given twice is
either. 1000 items are one transaction, changed all or none. Of more, what is done stays done when the rest is stopped: give
the same command again, and items that are so already are left alone.")]
pub(super) struct Relabel {
    /// These items, by their ids or the beginnings of them; with selectors, those of them that fit
    #[arg(value_name = "ID")]
    ids: Vec<ItemPrefix>,
    /// The labels, in place of those that are there; may be given several times
    #[arg(long = "label", value_name = "LABEL", value_parser = values::short, conflicts_with_all = ["add", "remove", "clear"])]
    labels: Vec<String>,
    /// Add this label to those that are there
    #[arg(long, value_name = "LABEL", value_parser = values::short)]
    add: Vec<String>,
    /// Take this label away
    #[arg(long, value_name = "LABEL", value_parser = values::short)]
    remove: Vec<String>,
    /// Take all labels away
    #[arg(long, conflicts_with_all = ["add", "remove"])]
    clear: bool,
    /// Items that have this label
    #[arg(long, value_name = "LABEL", value_parser = values::short)]
    with_label: Vec<String>,
    #[command(flatten)]
    selectors: Selectors,
    /// Everything, or everything of the times that --since and --until say
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    asking: Asking,
}

/// Take items back: out of every view at once, erased after the retention time
#[derive(clap::Args)]
#[command(after_help = "Examples:
  oap-memory item retract mem_01...
  oap-memory item retract --label website --until 2025-01-01 --dry-run
  oap-memory item restore mem_01...

Different selectors intersect: --label a --subject p is what has label a AND is about p. The same one given twice is
either. 1000 items are one transaction, all or none. Of more, what is done stays done when the rest is stopped: give the same
command again.")]
pub(super) struct Retract {
    /// These items, by their ids or the beginnings of them; with selectors, those of them that fit
    #[arg(value_name = "ID")]
    ids: Vec<ItemPrefix>,
    /// Items with this label
    #[arg(long, value_parser = values::short)]
    label: Vec<String>,
    #[command(flatten)]
    selectors: Selectors,
    /// Everything, or everything of the times that --since and --until say
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    asking: Asking,
}

impl Relabel {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        let labels = match (&self.labels, &self.add, &self.remove) {
            _ if self.clear => NewLabels { set: Some(Vec::new()), ..NewLabels::default() },
            (set, _, _) if !set.is_empty() => NewLabels { set: Some(set.clone()), ..NewLabels::default() },
            (_, add, remove) if !add.is_empty() || !remove.is_empty() => {
                NewLabels { set: None, add: add.clone(), remove: remove.clone() }
            }
            _ => {
                let fix = "say the labels with --label, or --add and --remove; --clear takes all away";
                return Err(CliError::Usage(fix.to_owned()));
            }
        };
        let many = Many {
            act: Act::Relabel,
            labels: Some(labels),
            ids: &self.ids,
            with: &self.with_label,
            selectors: &self.selectors,
            all: self.all,
            asking: &self.asking,
        };
        many.run(global).await
    }
}

impl Retract {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        let many = Many {
            act: Act::Retract,
            labels: None,
            ids: &self.ids,
            with: &self.label,
            selectors: &self.selectors,
            all: self.all,
            asking: &self.asking,
        };
        many.run(global).await
    }
}

/// Whether an item was taken back.
async fn is_retracted(owner: &OwnerClient, id: ItemId) -> bool {
    owner.get::<ShowItem>(id, &()).await.is_ok_and(|shown| shown.item.status == Status::Retracted)
}

/// A change of many items.
struct Many<'a> {
    act: Act,
    /// The labels, of a relabelling.
    labels: Option<NewLabels>,
    ids: &'a [ItemPrefix],
    with: &'a [String],
    selectors: &'a Selectors,
    all: bool,
    asking: &'a Asking,
}

impl Many<'_> {
    async fn run(&self, global: &Global) -> Result<(), CliError> {
        // Items that are named one by one need no question: it can be taken back.
        let by_selector = self.all || !(self.with.is_empty() && self.selectors.is_empty());
        self.selectors.check(self.ids, self.with, self.all)?;
        let owner = global.owner().await?;
        let named = ids::all(&owner, self.ids).await?;
        let selection = self.selectors.selection(named.clone(), self.with, self.all);
        if !by_selector && !self.asking.dry_run {
            if let [id] = named.as_slice() {
                return self.one(global, &owner, *id).await;
            }
            return self.change(global, &owner, &selection, &named).await;
        }
        let selected = select(&owner, &selection, self.act).await?;
        if !self.asking.goes_on(global, self.act, &selected)? {
            return Ok(());
        }
        self.change(global, &owner, &selection, &selected.items).await
    }

    /// One item: what is wrong with it is said.
    async fn one(&self, global: &Global, owner: &OwnerClient, id: ItemId) -> Result<(), CliError> {
        let written = match &self.labels {
            None => match owner.send::<RetractItem>(id, &()).await {
                Err(ClientError::Refused { own, status: 409, code, .. }) if is_retracted(owner, id).await => {
                    let message = "the item is retracted already".to_owned();
                    return Err(ClientError::Refused { own, status: 409, code, message }.into());
                }
                written => written?,
            },
            Some(NewLabels { set: Some(labels), .. }) => {
                owner.send::<RelabelItem>(id, &Relabelling { labels: labels.clone() }).await?
            }
            Some(_) => return self.change(global, owner, &Selection::default(), &[id]).await,
        };
        super::item::done(global, &written);
        Ok(())
    }

    /// One transaction's items.
    async fn some(&self, owner: &OwnerClient, selection: Selection) -> Result<Changed, ClientError> {
        match self.labels.clone() {
            Some(labels) => owner.send::<RelabelItems>((), &BulkRelabel { selection, labels }).await,
            None => owner.send::<RetractItems>((), &BulkRetract { selection }).await,
        }
    }

    /// The items that were shown, one transaction after the other.
    async fn change(
        &self,
        global: &Global,
        owner: &OwnerClient,
        selection: &Selection,
        items: &[ItemId],
    ) -> Result<(), CliError> {
        let mut done = Changed { changed: Vec::new(), left: 0 };
        for some in items.chunks(MAX_BULK) {
            let answer = self.some(owner, confirmed(selection, some)).await.inspect_err(|_| {
                if !done.changed.is_empty() && !global.json {
                    let of = items.len();
                    eprintln!(
                        "oap-memory: stopped after {} of {of} items; the same command goes on",
                        done.changed.len()
                    );
                }
            })?;
            done.changed.extend(answer.changed);
            done.left += answer.left;
            if items.len() > MAX_BULK && !global.json {
                eprintln!("{} of {} items", done.changed.len() + done.left, items.len());
            }
        }
        output::print(global.json, &done, |done| {
            let what = if self.labels.is_some() { "relabelled" } else { "retracted" };
            let rest = match done.left {
                0 => String::new(),
                n => format!("; {n} left alone: so already, not current, or changed meanwhile"),
            };
            format!("{} item(s) {what}{rest}", done.changed.len())
        });
        Ok(())
    }
}
