//! A write that its caller may repeat: it is decided in the transaction that would store it whether it was done before.

use super::Prepared;
use crate::api::items::Written;
use crate::error::Error;
use crate::service::Items;
use crate::state::commits::{Writing, until_it_holds};
use crate::state::gateway::blocking;
use crate::state::owner::Acting;
use crate::state::policy::Admitted;
use crate::state::repeatable::Repeatable;
use oap_memory::record::Meta;
use serde_json::Value;
use std::sync::Arc;

impl Items<'_> {
    /// Writes a new item with this record behind it, unless the same call wrote one before: then what that was answered is the
    /// answer. `answer` makes it of what was written. With it comes whether it was written now.
    ///
    /// # Errors
    /// As [`Items::capture`]; [`Error::NotKept`]; [`Error::Conflict`] where another call has the key of this one.
    pub(crate) async fn capture_once_for(
        self,
        acting: Acting,
        item: &Value,
        record: Meta,
        admitted: Admitted,
        call: Repeatable,
        answer: impl Fn(&Written) -> Result<Vec<u8>, Error> + Clone + Send + 'static,
    ) -> Result<(Vec<u8>, bool), Error> {
        let body = Arc::new(self.parse_new(item, self.0.clock.now())?);
        until_it_holds(|| async {
            let (gateway, body) = (self.0.clone(), body.clone());
            let prepared: Prepared = blocking(move || {
                let words: Vec<String> = body.people();
                let contacts = gateway.contact_names.of_and(&gateway.heads, &words);
                let now = gateway.clock.now();
                Items(&gateway).prepare_capture((*body).clone(), &contacts, now)
            })
            .await?;
            let (record, admitted, answer) = (record.clone(), admitted.clone(), answer.clone());
            let store = move |w: &mut Writing<'_, '_>| {
                if let Some(before) = w.answered(&call)? {
                    return Ok((before, false));
                }
                admitted.holds(w.tx)?;
                let written = w.store_capture_as(prepared, record)?;
                let answer = answer(&written)?;
                w.keep_answer(&call, written.item_id, answer.clone())?;
                Ok((answer, true))
            };
            let (answer, is_new) = self.0.commit_for(acting.clone(), store).await?;
            metrics::counter!("oap_items_captured_total").increment(u64::from(is_new));
            Ok((answer, is_new))
        })
        .await
    }
}
