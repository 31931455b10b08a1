//! Items: written, read, listed, corrected, taken back and put back.

use crate::Error;
use crate::api::items::{
    ConfirmItem, Confirmation, CorrectItem, Correction, ExplainItem, ListItems, NewItems, RejectItem,
    RelabelItem, Relabelling, ResealItem, Resealed, Resealing, RestoreItem, RetractItem, ShowItem,
    WriteItems, WrittenItems,
};
use crate::error::MemberError;
use crate::http::door::{Answer, Call};
use crate::service::Items;
use oap_identity::json;
use oap_memory::chain::Event;
use serde_json::{Value, json};

/// Reads new items: `items`, or one without anything around it.
pub(in crate::http) fn new_items(body: &[u8]) -> Result<NewItems, Error> {
    let mut body = json::parse(body)?;
    let items = match body.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) => items,
        Some(_) => return Err(Error::Member("items", MemberError::NotArray)),
        None => vec![body],
    };
    Ok(NewItems { items })
}

pub(in crate::http) async fn write(call: Call<WriteItems>) -> Answer<WriteItems> {
    Ok(WrittenItems { items: Items(&call.gateway).capture(&call.owner, &call.body.items).await? })
}

pub(in crate::http) async fn list(call: Call<ListItems>) -> Answer<ListItems> {
    Items(&call.gateway).list(&call.owner, &call.query)
}

pub(in crate::http) async fn show(call: Call<ShowItem>) -> Answer<ShowItem> {
    Items(&call.gateway).item(&call.owner, call.place)
}

pub(in crate::http) async fn explain(call: Call<ExplainItem>) -> Answer<ExplainItem> {
    Items(&call.gateway).explain(&call.owner, call.place, &call.query)
}

pub(in crate::http) async fn correct(call: Call<CorrectItem>) -> Answer<CorrectItem> {
    let Correction { item, version } = call.body;
    Items(&call.gateway).correct(&call.owner, call.place, item, version, Event::Correct).await
}

pub(in crate::http) async fn relabel(call: Call<RelabelItem>) -> Answer<RelabelItem> {
    let Relabelling { labels } = call.body;
    let changes = json!({"labels": labels});
    Items(&call.gateway).correct(&call.owner, call.place, changes, None, Event::Relabel).await
}

pub(in crate::http) async fn retract(call: Call<RetractItem>) -> Answer<RetractItem> {
    Items(&call.gateway).mark(&call.owner, call.place, Event::Retract).await
}

pub(in crate::http) async fn reject(call: Call<RejectItem>) -> Answer<RejectItem> {
    Items(&call.gateway).reject(&call.owner, call.place, call.body).await
}

pub(in crate::http) async fn restore(call: Call<RestoreItem>) -> Answer<RestoreItem> {
    Items(&call.gateway).mark(&call.owner, call.place, Event::Restore).await
}

pub(in crate::http) async fn confirm(call: Call<ConfirmItem>) -> Answer<ConfirmItem> {
    let Confirmation { version } = call.body;
    Items(&call.gateway).confirm(&call.owner, call.place, version).await
}

pub(in crate::http) async fn reseal(call: Call<ResealItem>) -> Answer<ResealItem> {
    let (items, Resealing { dry_run, always, at }) = (Items(&call.gateway), call.body);
    Ok(if dry_run {
        Resealed::Would { would_reseal: items.would_reseal(&call.owner, call.place).await? }
    } else {
        Resealed::Done { resealed: items.reseal(&call.owner, call.place, always, at).await? }
    })
}
