//! What a grantee has, and what they were ever shown: as the grants and the receipts say.

pub use crate::api::disclosures::{DisclosedAs, Times, WhoQuery};
use crate::api::disclosures::{GrantLine, Grantee, LastQuery, ShownItem};
use crate::api::grants::GrantInfo;
use crate::api::items::Brief;
use crate::error::Error;
use crate::service::brief::brief;
use crate::service::{Audit, Grants};
use crate::state::owner::Owner;
use crate::state::owner::mark::{Admin, Permits};
use crate::state::schema::{self, RECEIPTS_OF};
use oap_identity::{Did, Hash, ItemId, Timestamp};
use oap_memory::receipt::{Action, Outcome, Receipt, read_tag};
use oap_store::Range;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Most receipts that one question looks at; the answer says whether it has seen all.
pub const MAX_RECEIPTS: usize = 100_000;
/// Most items of one page, and most grants.
pub const MAX_PAGE: usize = 1000;

impl Times {
    /// One time more, or the first.
    pub(crate) fn count(known: Option<Self>, at: Timestamp, disclosed_as: Option<DisclosedAs>) -> Self {
        let mut times = known.unwrap_or(Self { times: 0, first: at, last: at, seen_at: BTreeSet::new() });
        times.times += 1;
        times.first = times.first.min(at);
        times.last = times.last.max(at);
        times.seen_at.extend(disclosed_as);
        times
    }
}

impl GrantLine {
    fn of(info: &GrantInfo) -> Self {
        Self {
            delegated: info.delegated,
            disclosed: info.disclosed,
            expires_at: info.grant.expires_at,
            grant_id: info.grant.grant_id,
            max_items: info.grant.max_items,
            profile: info.grant.redaction_profile.clone(),
            purpose: info.grant.purpose.clone(),
            revoked_at: info.revoked_at,
            state: info.state,
            trust_level: info.grant.trust_level,
        }
    }
}

/// A receipt of a grantee's, as far as it is of use here.
pub(crate) struct Asked {
    pub(crate) receipt: Receipt,
}

impl Asked {
    fn fact(&self, name: &str) -> Option<&Value> {
        self.receipt.policy_decisions.first()?.more.get(name)
    }

    /// How it was shown.
    pub(crate) fn disclosed_as(&self) -> Option<DisclosedAs> {
        Some(DisclosedAs {
            level: self.fact("trust_level")?.as_u64()?,
            profile: self.fact("profile")?.as_str()?.to_owned(),
        })
    }

    fn is_refused(&self) -> bool {
        self.receipt.policy_decisions.first().is_some_and(|decision| decision.outcome == Outcome::Block)
    }

    /// What was shown: each item, and the commitment of its version.
    pub(crate) fn shown(&self) -> impl Iterator<Item = (ItemId, Hash)> {
        // An entry that rests on no grant disclosed nothing.
        let tags = self.fact("consumed_grant_id").map(|_| self.receipt.provenance_tags_out.as_slice());
        tags.unwrap_or_default().iter().filter_map(|tag| read_tag(tag))
    }
}

impl Audit<'_> {
    /// Reads what a grantee asked, newest first within each chain, at most `room` receipts; whether that was all.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub(crate) fn asked_by(
        self,
        grantee: &Did,
        room: &mut usize,
        mut take: impl FnMut(&Asked),
    ) -> Result<bool, Error> {
        let of = Range::under(&schema::agent(grantee.as_str())).descending();
        for key in RECEIPTS_OF.keys(&self.0.store, of) {
            let (_, place) = key?;
            let Some(left) = room.checked_sub(1) else { return Ok(false) };
            *room = left;
            let receipt = self.receipt_at(place)?;
            if receipt.agent_did == grantee.as_str() {
                take(&Asked { receipt });
            }
        }
        Ok(true)
    }

    /// Everything about a grantee: grants to them, newest first; the items that they were ever shown, newest first, a page of them; their
    /// last query; refusals in number.
    ///
    /// # Errors
    /// [`Error::NothingMatched`] for somebody who has no grant and never asked.
    pub fn who(self, owner: &Owner<impl Permits<Admin>>, wanted: &WhoQuery) -> Result<Grantee, Error> {
        let limit = wanted.limit.unwrap_or(50).clamp(1, MAX_PAGE);
        let mut grants = Grants(self.0).grant_list(owner);
        grants.retain(|info| info.grant.grantee == wanted.did);
        let mut shown: BTreeMap<ItemId, Times> = BTreeMap::new();
        let (mut queries, mut refusals, mut last_refusal) = (0u64, 0u64, None::<Timestamp>);
        let mut last_query = None::<LastQuery>;
        let mut room = MAX_RECEIPTS;
        let complete = self.asked_by(&wanted.did, &mut room, |asked| {
            let at = asked.receipt.timestamp;
            if asked.is_refused() {
                refusals += 1;
                last_refusal = last_refusal.max(Some(at));
                return;
            }
            if asked.receipt.action_id.as_deref() == Some(Action::Query.as_str()) {
                queries += 1;
                if last_query.as_ref().is_none_or(|last| last.at < at) {
                    let grant_id = asked.fact("consumed_grant_id").and_then(Value::as_str);
                    last_query = Some(LastQuery {
                        at,
                        grant_id: grant_id.and_then(|id| id.parse().ok()),
                        items: asked.receipt.provenance_tags_out.len(),
                        receipt_id: asked.receipt.receipt_id,
                    });
                }
            }
            for (item, _) in asked.shown() {
                let known = shown.remove(&item);
                shown.insert(item, Times::count(known, at, asked.disclosed_as()));
            }
        })?;
        if grants.is_empty() && room == MAX_RECEIPTS {
            return Err(Error::NothingMatched);
        }
        let count = shown.len();
        let mut page =
            shown.iter().rev().filter(|(item, _)| wanted.before.is_none_or(|before| **item < before));
        let items = page.by_ref().take(limit).map(|(item, times)| self.shown_line(*item, times));
        let items = items.collect::<Result<Vec<_>, _>>()?;
        let next = page.next().and(items.last()).map(|last| last.item_id);
        Ok(Grantee {
            complete,
            did: wanted.did.clone(),
            grants_count: grants.len(),
            grants: grants.iter().take(limit).map(GrantLine::of).collect(),
            last_query,
            last_refusal,
            next,
            queries,
            receipts: MAX_RECEIPTS - room,
            refusals,
            shown: items,
            shown_count: count,
        })
    }

    fn shown_line(self, item: ItemId, times: &Times) -> Result<ShownItem, Error> {
        let Brief { captured_at, gist, kind, labels, status, .. } = match self.0.heads.get(item) {
            Some(head) => brief(self.0, &head)?,
            None => Brief::erased(item),
        };
        let Times { times, first, last, seen_at } = times.clone();
        Ok(ShownItem { captured_at, first, gist, item_id: item, kind, labels, last, seen_at, status, times })
    }
}
