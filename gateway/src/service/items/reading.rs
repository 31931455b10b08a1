//! Items as their owner reads them, and as bundles carry them.

use crate::api::Document;
use crate::api::items::{ExplainQuery, Explanation, Item, ItemPage, ListQuery, WholeItem};
use crate::error::Error;
use crate::service::Items;
use crate::service::entries::said_in;
use crate::state::owner::Owner;
use crate::state::owner::mark::{Permits, Read};
use crate::state::schema::{self, whole};
use crate::state::views;
use oap_agents::staleness::Staleness;
use oap_identity::ItemId;
use oap_memory::project::{explain, project};
use oap_memory::record::{Head, ItemRecord, Status};
use serde_json::{Map, Value, json};
use std::sync::Arc;

impl Items<'_> {
    /// An item as its owner sees it: wire form, record, chain.
    ///
    /// # Errors
    /// [`Error::NotFound`]; an erased item has its chain alone.
    pub fn item(self, _: &Owner<impl Permits<Read>>, item: ItemId) -> Result<WholeItem, Error> {
        let links = views::links(&self.0.store, item)?;
        if links.is_empty() {
            return Err(Error::NotFound);
        }
        let chain = links.into_iter().map(Document::read).collect::<Result<_, _>>()?;
        let Some(head) = self.0.heads.get(item) else {
            let item = Document::read(json!({"item_id": item, "status": Status::Erased}))?;
            return Ok(WholeItem { chain, item, record: None, superseded: None });
        };
        let mut versions = Vec::new();
        for (seq, _) in &head.replaced {
            if let Ok(committed) = schema::version(&self.0.store, item, *seq) {
                let mut version = whole(&committed)?;
                version.insert("status".into(), json!(Status::Superseded));
                versions.push(Value::Object(version));
            }
        }
        let item = self.owner_item(&head)?;
        let mut record = serde_json::to_value(&head.meta)?;
        if self.is_stale(&head, &item)? {
            record["stale"] = json!(true);
        }
        Ok(WholeItem {
            chain,
            item: Document::read(item)?,
            record: Some(Document::of(record, head.meta.clone())),
            superseded: Some(versions),
        })
    }

    /// Whether an item can be relied on no more, as its writer said.
    fn is_stale(self, head: &Head, item: &Value) -> Result<bool, Error> {
        let Some(staleness) = item.as_object().and_then(Staleness::of) else { return Ok(false) };
        let said = said_in(&self.0.store, head.item_id, head.version_seq)?;
        Ok(said.is_some_and(|link| staleness.is_past(link.at, self.0.clock.now())))
    }

    /// What each rule of a profile does to an item at a level.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an item that is not there, [`Error::Limit`] for an unknown profile.
    pub fn explain(
        self,
        _: &Owner<impl Permits<Read>>,
        item: ItemId,
        wanted: &ExplainQuery,
    ) -> Result<Explanation, Error> {
        let head = self.0.heads.get(item).ok_or(Error::NotFound)?;
        let unknown = || oap_grants::limits::LimitError::UnknownProfile(wanted.profile.clone());
        let profile = self.0.profile(&wanted.profile).ok_or_else(unknown)?;
        let committed = schema::version(&self.0.store, item, head.version_seq)?;
        let shown = project(&committed, profile, wanted.level, false)?;
        Ok(Explanation {
            item_id: item,
            level: wanted.level,
            profile: profile.name().to_owned(),
            rules: explain(&committed, profile, wanted.level)?,
            visible: serde_json::to_value(shown.item())?,
        })
    }

    /// The wire form of an item with everything shown.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Corrupt`].
    pub(crate) fn owner_item(self, head: &Head) -> Result<Value, Error> {
        let committed = schema::version(&self.0.store, head.item_id, head.version_seq)?;
        let mut item = whole(&committed)?;
        item.insert("status".into(), json!(head.status));
        item.insert("version".into(), json!(head.version_seq + 1));
        Ok(Value::Object(item))
    }

    /// Items newest first, as their owner sees them; and where to go on.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub fn list(self, _: &Owner<impl Permits<Read>>, wanted: &ListQuery) -> Result<ItemPage, Error> {
        let limit = wanted.limit.unwrap_or(50).clamp(1, 1000);
        let mut heads = self.0.heads.all();
        heads.retain(|head| wanted.admits(head));
        heads.reverse();
        let next = heads.get(limit - 1).map(|head| head.item_id).filter(|_| heads.len() > limit);
        let read = |head: &Arc<Head>| {
            let mut item = self.owner_item(head)?;
            item["author"] = json!(head.meta.author);
            item["waiting"] = json!(head.meta.needs_verification);
            item["tier"] = json!(head.meta.tier);
            for (name, said) in
                [("namespace", head.meta.namespace.as_deref()), ("key", head.meta.key.as_deref())]
            {
                if let Some(said) = said {
                    item[name] = json!(said);
                }
            }
            if self.is_stale(head, &item)? {
                item["stale"] = json!(true);
            }
            Ok(Document::<Item>::read(item)?)
        };
        let items = heads.iter().take(limit).map(read).collect::<Result<_, Error>>()?;
        Ok(ItemPage { items, next })
    }
}

impl ListQuery {
    fn admits(&self, head: &Head) -> bool {
        head.status == self.status.unwrap_or(Status::Current)
            && (!self.waiting || head.meta.needs_verification)
            && self.before.is_none_or(|before| head.item_id < before)
            && self.kind.is_none_or(|kind| head.kind == kind)
            && self.label.as_ref().is_none_or(|label| head.labels.contains(label))
            && self.scope.as_ref().is_none_or(|scope| *head.scope_id == *scope)
            && self.subject.as_ref().is_none_or(|subject| head.subject_entity_id.as_deref() == Some(subject))
    }
}

/// An item with everything shown and everything that proves it, as bundles carry it.
pub(crate) fn proved(whole_item: &ItemRecord, status: Status) -> Result<Map<String, Value>, Error> {
    let mut item = whole(&whole_item.committed)?;
    let chain: Vec<Value> =
        whole_item.chain.iter().map(|link| serde_json::from_str(link)).collect::<Result<_, _>>()?;
    let capture: Value = serde_json::from_str(&whole_item.capture_receipt)?;
    item.insert("status".to_owned(), json!(status));
    item.insert(
        "integrity".to_owned(),
        json!({"sd_jwt": whole_item.committed.whole()?, "chain": chain, "capture_receipt": capture}),
    );
    Ok(item)
}
